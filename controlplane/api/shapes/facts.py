"""Snapshots, clients and incidents: what became of what was written."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from controlplane.api.fields import Flag, StrictSerializer, Text, Whole
from controlplane.api.shapes.changes import HELD_HELP, DifferentResourceOut, HeldBackThenOut, IncidentOut
from controlplane.api.shapes.common import FindingOut, LossOut
from controlplane.catalog.choices import ChangeKind
from controlplane.clients.facts import SubscriptionState
from controlplane.explain.standings import ClientStatus
from controlplane.explain.values import Has, RungState
from controlplane.incidents.muting import MAX_MUTE_REASON_CHARS
from controlplane.incidents.values import IncidentState
from controlplane.incidents.verdict import Outcome
from xdscore.client_kinds import ClientFamily

MAX_REASON_CHARS = 500  # the quarantine's column


class SnapshotChangeOut(serializers.Serializer[Any]):
    """A change that a snapshot was built for: who wrote it, and why."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in ChangeKind])
    author = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class SnapshotOut(serializers.Serializer[Any]):
    """A snapshot: what an environment serves, or served, at one epoch."""

    epoch = serializers.IntegerField()
    lineage = serializers.UUIDField(help_text="Renewed by a restore; epochs count within it.")
    generation = serializers.IntegerField(help_text="The last change it covers.")
    published_at = serializers.DateTimeField()
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Served resources by type.")
    changes = SnapshotChangeOut(
        many=True, help_text="The first 20 that it was built for, newest first; none where that is not kept any more."
    )
    change_count = serializers.IntegerField(help_text="How many changes it was built for.")


@extend_schema_serializer(deprecate_fields=("held", "held_count"))
class SnapshotDetailOut(SnapshotOut):
    """One snapshot with what its build held back."""

    root = serializers.CharField(  # type: ignore[assignment]  # the metaclass takes fields out of the class
        help_text="The address of its content: equal content, equal root."
    )
    held_back = HeldBackThenOut(many=True, help_text="The first 1,000 by type and name.")
    held_back_count = serializers.IntegerField()
    held = HeldBackThenOut(many=True, help_text=HELD_HELP)
    held_count = serializers.IntegerField(help_text="`held_back_count`, as it was called; gone in the next release.")
    findings = FindingOut(many=True, help_text="What was found beside that: the first 500, worst first.")
    finding_counts = serializers.DictField(child=serializers.IntegerField(), help_text="How many resources, by code.")
    stage_ms = serializers.DictField(child=serializers.FloatField(), help_text="How long each stage of the build took.")


class SnapshotEntryOut(serializers.Serializer[Any]):
    """One resource of a snapshot."""

    type = serializers.CharField()
    name = serializers.CharField()
    version = serializers.CharField(help_text="The version on the wire.")
    size = serializers.IntegerField(help_text="Bytes.")
    manifest = serializers.DictField(required=False, help_text="With `manifests=true`.")


class DifferenceOut(serializers.Serializer[Any]):
    """The resources that differ between two states of an environment."""

    diff = DifferentResourceOut(many=True, help_text="The first 1,000 by type and name.")
    count = serializers.IntegerField(help_text="How many resources differ.")


class RollbackIn(StrictSerializer):
    """The earlier epoch to go back to, and why."""

    to_epoch = Whole(min_value=1)
    reason = Text(max_length=MAX_REASON_CHARS)
    hold = Flag(required=False, default=True, help_text="Refuse later changes until the hold is released.")


class TypeStateOut(serializers.Serializer[Any]):
    """What a client subscribes to and has of one resource type, over all its streams."""

    type = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in SubscriptionState])
    wildcard = serializers.BooleanField()
    names = serializers.IntegerField()


class ClientOut(serializers.Serializer[Any]):
    """A client: one identity and node id in one environment."""

    id = serializers.CharField()
    environment = serializers.CharField()
    identity = serializers.CharField(allow_blank=True, help_text="Verified; empty when nothing was.")
    node_id = serializers.CharField()
    node_cluster = serializers.CharField(allow_blank=True)
    family = serializers.ChoiceField(choices=[family.value for family in ClientFamily])
    user_agent = serializers.CharField(allow_blank=True)
    user_agent_version = serializers.CharField(allow_blank=True)
    standing = serializers.ChoiceField(
        choices=[status.value for status in ClientStatus],
        help_text="How it stands as a whole, what needs attention most first.",
    )
    connected = serializers.BooleanField()
    streams = serializers.IntegerField(help_text="Open ones.")
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()
    labels = serializers.DictField(
        child=serializers.CharField(allow_blank=True), help_text="What people gave it to be found by."
    )
    types = TypeStateOut(many=True)


class StreamOut(serializers.Serializer[Any]):
    """A stream of a client to one ADS process."""

    id = serializers.CharField()
    replica = serializers.CharField()
    variant = serializers.CharField()
    peer = serializers.CharField(allow_blank=True)
    opened_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)
    cause = serializers.CharField(allow_blank=True)


class ClientDetailOut(ClientOut):
    """A client with its streams, newest first."""

    recent_streams = StreamOut(many=True)


class SubscriptionOut(serializers.Serializer[Any]):
    """The subscription of one open stream to one resource type."""

    stream = serializers.CharField()
    type = serializers.CharField()
    wildcard = serializers.BooleanField()
    names = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(choices=[state.value for state in SubscriptionState])
    sent = serializers.CharField(allow_blank=True, help_text="The version sent last.")
    sent_at = serializers.DateTimeField(allow_null=True)
    acked = serializers.CharField(allow_blank=True, help_text="The version acknowledged last.")
    acked_at = serializers.DateTimeField(allow_null=True)


class SubscriptionsOut(serializers.Serializer[Any]):
    """The subscriptions of a client's open streams."""

    results = SubscriptionOut(many=True)


class RungOut(serializers.Serializer[Any]):
    """One question of an explanation with its answer. The questions are asked in order; the first that fails
    decides.
    """

    number = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in RungState])
    text = serializers.CharField()


class LinkOut(serializers.Serializer[Any]):
    """A link to a path of this API where there is more to read."""

    title = serializers.CharField()
    href = serializers.CharField(help_text="A path of this API.")


class ExplainOut(serializers.Serializer[Any]):
    """Why a client does, or does not, have a resource."""

    environment = serializers.CharField()
    client = serializers.CharField(allow_blank=True, help_text="As it was asked for.")
    type = serializers.CharField()
    name = serializers.CharField()
    at = serializers.IntegerField(
        allow_null=True, help_text="The epoch that was asked about, or that was the newest at `time`; null: now."
    )
    time = serializers.DateTimeField(allow_null=True, help_text="The time that was asked about; null: none was.")
    answer = serializers.ChoiceField(choices=[each.value for each in Has])
    code = serializers.CharField(
        allow_blank=True, help_text="What clients are told; empty where they are told nothing."
    )
    sentence = serializers.CharField()
    told = serializers.CharField(allow_blank=True, help_text="The text in `resource_errors`, word for word.")
    rungs = RungOut(many=True)
    next = serializers.ListField(child=serializers.CharField())
    links = LinkOut(many=True)


class RefusingClientOut(serializers.Serializer[Any]):
    """A client that refused a revision."""

    id = serializers.CharField()
    identity = serializers.CharField(allow_blank=True)
    node_id = serializers.CharField()
    revision = serializers.IntegerField()
    now = serializers.CharField(
        allow_blank=True, help_text="What it has instead, such as `goes on with r7`; empty where that is not known."
    )
    count = serializers.IntegerField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()


class SampleOut(serializers.Serializer[Any]):
    """The text of one NACK."""

    client = serializers.CharField()
    node_id = serializers.CharField()
    version = serializers.CharField(allow_blank=True)
    code = serializers.IntegerField()
    text = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()


class VerdictOut(serializers.Serializer[Any]):
    """What follows for all clients from the refusals of a revision: nothing, a quarantine, or that a person has to
    decide.
    """

    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    reason = serializers.CharField(help_text="Why, with the counts: who refused it, and who acknowledged it.")
    suggested = serializers.BooleanField(
        help_text="Whether an operator is to decide on a quarantine: the policy says so, or clients cannot decide."
    )


class ReferrerOut(serializers.Serializer[Any]):
    """A resource that refers to another one."""

    type = serializers.CharField()
    name = serializers.CharField()
    pointer = serializers.CharField(allow_blank=True, help_text="RFC 6901 pointer to the field that names the other.")


class IncidentDetailOut(IncidentOut):
    """An incident with its refusing clients, samples and referrers."""

    loss = LossOut(allow_null=True, help_text="What clients lost; null where they refuse something.")
    algorithm = serializers.CharField()
    fingerprint = serializers.CharField()
    normalised = serializers.CharField(allow_blank=True)
    family = serializers.ChoiceField(choices=[family.value for family in ClientFamily])
    author = serializers.CharField(allow_blank=True)
    assignee = serializers.CharField(allow_blank=True, help_text="The name of who is to look after it; empty: nobody.")
    mended_by = serializers.CharField(
        allow_blank=True, help_text="Who said that the next revision of the resource mends it; empty where nobody did."
    )
    revision = serializers.IntegerField(help_text="The refused revision; 0 where none is known.")
    quarantined = serializers.BooleanField()
    verdict = VerdictOut(allow_null=True, help_text="Null until it was judged.")
    suspects = serializers.ListField(child=serializers.CharField())
    used_by = ReferrerOut(
        many=True, help_text="What refers to the refused resource: it gets what stands in for it, or misses it."
    )
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    opened_epoch = serializers.IntegerField()
    resolved_epoch = serializers.IntegerField(allow_null=True)
    refusing = RefusingClientOut(many=True)
    samples = SampleOut(many=True)


class IncidentPatchIn(StrictSerializer):
    """The new state of an incident."""

    state = serializers.ChoiceField(choices=[state.value for state in IncidentState])
    in_next_revision = Flag(
        required=False,
        help_text="With `resolved`: the next revision of the resource mends it. It is resolved once one is published; "
        "until then it is `acknowledged`, and assigned to you.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields, unchanged. Raises ValidationError where a state other than `resolved` is to come with the next
        revision.
        """
        if attrs.get("in_next_revision") and attrs["state"] != IncidentState.RESOLVED:
            raise serializers.ValidationError({"in_next_revision": "This goes with the state `resolved` alone."})
        return attrs


class AssignIn(StrictSerializer):
    """Who is to look after an incident: one of the two, null for nobody."""

    person = Text(required=False, allow_null=True, max_length=150, help_text="The login of a person.")
    team = Text(required=False, allow_null=True, max_length=150, help_text="An owner of resources.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields, unchanged. Raises ValidationError unless exactly one is there."""
        if len(attrs) != 1:
            raise serializers.ValidationError("Say who: either `person` or `team`; null for nobody.")
        return attrs


class MuteIn(StrictSerializer):
    """Until when channels are told nothing of an incident, and why."""

    until = Text(
        max_length=40, help_text="A time, or how long from now on: `1h`, `8h`, `1d`, `1w`. At most 30 days ahead."
    )
    reason = Text(max_length=MAX_MUTE_REASON_CHARS)


class ReasonIn(StrictSerializer):
    """The reason for an action, for the record."""

    reason = Text(max_length=MAX_REASON_CHARS)
