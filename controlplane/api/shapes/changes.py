"""Changes and applies."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from controlplane.api.fields import Flag, StrictSerializer, Text, Whole
from controlplane.api.shapes.common import EditOut, FindingOut, LossOut, NotJudgedOut, ResourceRefOut
from controlplane.api.shapes.labels import LabelsMovedOut, OwnerMovedOut
from controlplane.builder.selectors import ChangeState
from controlplane.catalog.choices import ChangeKind
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.values import IncidentCause, IncidentState
from controlplane.status.changes import Outcome, Progress

# What is saved waits, and what was built was published or made no difference: a change that is read has one of these.
_STATUSES: Final = [
    *(each.value for each in Outcome),
    *(each.value for each in Progress if each not in {Progress.SAVED, Progress.BUILT}),
]

# Both spellings are answered until the release after the one that brought the new (docs/reference/versions.md).
HELD_HELP: Final = "`held_back`, as it was called; gone in the next release."


class HeldBackOut(serializers.Serializer[Any]):
    """A name of which the revision that the change wrote is not served."""

    type = serializers.CharField()
    name = serializers.CharField()
    reason = serializers.CharField()
    served = serializers.BooleanField(help_text="Whether an older revision is served meanwhile.")
    findings = FindingOut(many=True, help_text="Everything that speaks against it.")


class HeldBackThenOut(serializers.Serializer[Any]):
    """A name that the build of a snapshot held back: the build did not serve its newest revision of that time."""

    type = serializers.CharField()
    name = serializers.CharField()
    code = serializers.CharField(help_text="`XDSnnnn`")
    reason = serializers.CharField()
    served = serializers.BooleanField(help_text="Whether an older revision was served instead.")


class RevertedOut(ResourceRefOut):
    """A resource that a rollout took back."""

    incident = serializers.CharField(allow_null=True, help_text="The incident that tells why.")


class ImpactOut(serializers.Serializer[Any]):
    """How many clients an incident is about, and of how many: those that refuse a revision, of those that were sent it;
    or those that lost something, of those that were connected.
    """

    nacked = serializers.IntegerField()
    sent = serializers.IntegerField()


class AssigneeOut(serializers.Serializer[Any]):
    """A person, or a team, that is to look after an incident."""

    kind = serializers.ChoiceField(choices=["person", "team"])
    name = serializers.CharField()
    gone = serializers.BooleanField(help_text="Whether they may not see it any more.")


class MuteOut(serializers.Serializer[Any]):
    """The time in which channels are told nothing of an incident."""

    until = serializers.DateTimeField()
    by = serializers.CharField()
    reason = serializers.CharField()


class IncidentOut(serializers.Serializer[Any]):
    """An incident: NACKs for one cause, or what connected clients lost by one change."""

    id = serializers.UUIDField()
    cause = serializers.ChoiceField(choices=[cause.value for cause in IncidentCause])
    environment = serializers.CharField()
    type = serializers.CharField()
    name = serializers.CharField(
        allow_blank=True, help_text="Empty where nobody is named. Of a loss: the name that most clients lost."
    )
    state = serializers.ChoiceField(choices=[state.value for state in IncidentState])
    confidence = serializers.ChoiceField(choices=[each.value for each in Confidence])
    change = serializers.CharField(allow_blank=True, help_text="The suspect change; empty where none is known.")
    message = serializers.CharField(
        allow_blank=True, help_text="The client's own words; of a loss a sentence that tells who lost how much by whom."
    )
    clients = ImpactOut()
    assigned = AssigneeOut(allow_null=True, help_text="Who is to look after it; null: nobody.")
    muted = MuteOut(allow_null=True, help_text="Null while channels are told of it.")


class ChangeRowOut(serializers.Serializer[Any]):
    """A change in a list; `GET /changes/{change_id}` has the rest."""

    id = serializers.UUIDField()
    environment = serializers.CharField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in ChangeKind])
    generation = serializers.IntegerField()
    author = serializers.CharField(help_text="What they were called then.")
    author_id = serializers.CharField(allow_null=True, help_text="Null: not known, or older than ids.")
    message = serializers.CharField(allow_blank=True)
    owner = serializers.CharField(allow_blank=True)
    request_id = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    edit_count = serializers.IntegerField(help_text="How many resources it wrote.")
    status = serializers.ChoiceField(
        choices=[*(each.value for each in Outcome), *(each.value for each in Progress)],
        help_text="What is wrong with it, or how far it has come. `built`: the change itself says what became of it.",
    )
    refused_by = serializers.IntegerField(help_text="How many clients refuse something of it now.")
    lost_by = serializers.IntegerField(help_text="How many clients lost something by it; 0 once it is taken back.")
    undoes = serializers.CharField(allow_null=True, help_text="The change that this one took back.")
    undone_by = serializers.CharField(allow_null=True, help_text="The change that took this one back.")


class CountsOut(serializers.Serializer[Any]):
    """How many clients were sent content of a change, acknowledged it, or refused it. The others have not answered, or
    left.
    """

    clients = serializers.IntegerField()
    acked = serializers.IntegerField()
    nacked = serializers.IntegerField()
    silent = serializers.IntegerField(help_text="Without an answer for 30 s.")
    not_in_use = serializers.IntegerField(
        help_text="Of those that acknowledged it: how many have had some of it for 30 s and did not ask for what that "
        "needs, such as the route of a listener, so that they do not use it yet."
    )


class NotInUseOut(serializers.Serializer[Any]):
    """A resource of the change that clients acknowledged and do not use yet."""

    type = serializers.CharField()
    name = serializers.CharField()
    clients = serializers.IntegerField(help_text="How many clients.")
    message = serializers.CharField(help_text="What they did not ask for, in a sentence.")


class UnservedOut(serializers.Serializer[Any]):
    """An ADS process that does not serve the change's snapshot yet, so that its clients have not been sent it."""

    replica = serializers.CharField(help_text="host/pid")
    epoch = serializers.IntegerField(help_text="The snapshot that it serves; 0 for none.")
    reason = serializers.CharField()


@extend_schema_serializer(deprecate_fields=("held",))
class ChangeOut(serializers.Serializer[Any]):
    """One atomic set of edits, and how far the builder and the clients have come with it."""

    id = serializers.UUIDField()
    environment = serializers.CharField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in ChangeKind])
    state = serializers.ChoiceField(
        choices=[*(state.value for state in ChangeState), "settled"],
        help_text="How far it has come with the builder and the fleet, whatever became of it.",
    )
    status = serializers.ChoiceField(
        choices=_STATUSES,
        help_text="How it stands: what is wrong with it or with what it wrote, or else how far it has come.",
    )
    generation = serializers.IntegerField()
    epoch = serializers.IntegerField(allow_null=True, help_text="The snapshot that serves it; null until it is built.")
    author = serializers.CharField()
    author_id = serializers.CharField(allow_null=True, help_text="Who it was, for good. Null: older than ids.")
    message = serializers.CharField(allow_blank=True)
    owner = serializers.CharField(allow_blank=True)
    request_id = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    edits = EditOut(many=True, help_text="The first 1,000 by type and name.")
    edit_count = serializers.IntegerField()
    labels = LabelsMovedOut(many=True, help_text="Whose labels it moved; the first 1,000.")
    owners = OwnerMovedOut(many=True, help_text="Whose owner it moved; the first 1,000.")
    counts = CountsOut()
    not_in_use = NotInUseOut(
        many=True, help_text="What clients acknowledged and do not use yet; the first 100, by which most clients first."
    )
    unserved = UnservedOut(many=True, help_text="While there are any, the change is not settled.")
    held_back = HeldBackOut(many=True, help_text="What it wrote that is not served as written.")
    held = HeldBackOut(many=True, help_text=HELD_HELP)
    findings = FindingOut(many=True)
    loss = LossOut(
        allow_null=True,
        help_text="What connected clients lose by it once it is published; null where they lose nothing.",
    )
    incidents = IncidentOut(
        many=True, help_text="Those of which this change is the suspect, or because of which a rollout took it back."
    )
    rollout = serializers.CharField(
        allow_null=True, help_text="The rollout that has something of it, or had it last; null: none did."
    )
    reverted = RevertedOut(many=True, help_text="What a rollout took back of it.")
    undoes = serializers.UUIDField(allow_null=True, help_text="The change that it took back, of an undo.")
    undone_by = serializers.UUIDField(
        allow_null=True, help_text="The undo or rollback because of which it is not in force any more."
    )
    detail = serializers.CharField(allow_blank=True, help_text="Why it failed.")


class ChangeMadeOut(ChangeOut):
    """The change that a write made."""

    changed = serializers.BooleanField()


class ChangeMadeBeforeOut(ChangeOut):
    """A change that had the same effect before, by whoever made it; nothing was changed now."""

    changed = serializers.BooleanField(help_text="False.")


class UnchangedOut(serializers.Serializer[Any]):
    """The answer to a write that had nothing to do: everything was already as asked."""

    changed = serializers.BooleanField()


class FieldOut(serializers.Serializer[Any]):
    """A field of a manifest that differs, with its value before and after; null where it had none."""

    pointer = serializers.CharField(allow_blank=True, help_text="RFC 6901 pointer into the manifest.")
    # Any value of JSON, null among them: with `allow_null` the schema would ask for exactly one of "any" and "null".
    before = serializers.JSONField()
    after = serializers.JSONField()


class DifferentResourceOut(serializers.Serializer[Any]):
    """A resource that was, or would be, created, updated or deleted, and which of its fields differ."""

    type = serializers.CharField()
    name = serializers.CharField()
    action = serializers.ChoiceField(choices=["created", "updated", "deleted"])
    # A declared field hides no attribute: the metaclass takes it out of the class.
    fields = FieldOut(many=True, required=False, help_text="Of an update: the first 200.")  # type: ignore[assignment]
    fields_omitted = serializers.IntegerField(required=False, help_text="How many more there are.")
    text = serializers.CharField(required=False, help_text="With `text=true`: a unified difference, as YAML.")


class PlannedEditOut(DifferentResourceOut):
    """What an apply would do to one resource, and the number of the revision that it would write."""

    revision = serializers.IntegerField()


class NamedOut(serializers.Serializer[Any]):
    """A resource by type and name."""

    type = serializers.CharField()
    name = serializers.CharField()


class GroupImpactOut(serializers.Serializer[Any]):
    """How an apply would affect the connected clients of one client group."""

    key = serializers.CharField(allow_null=True, help_text="Null: the clients that are in no group.")
    connected = serializers.IntegerField()
    receive = serializers.IntegerField()
    lose = serializers.IntegerField()


class LosingOut(serializers.Serializer[Any]):
    """A client that would lose a resource that it asks for and may read now."""

    client = serializers.CharField(help_text="Its id.")
    identity = serializers.CharField(allow_blank=True)
    node_id = serializers.CharField(allow_blank=True)
    resources = NamedOut(many=True, help_text="The first 1,000.")


class ApplyImpactOut(serializers.Serializer[Any]):
    """How an apply would affect connected clients, if no revision of it were held back."""

    connected = serializers.IntegerField(help_text="Clients with an open stream.")
    receive = serializers.IntegerField(help_text="Those that would be sent something different.")
    lose = serializers.IntegerField(help_text="Those of them that would lose a resource.")
    groups = GroupImpactOut(
        many=True,
        help_text="Those with a client that would be sent something different. Groups over metadata hold nobody: it is "
        "not kept.",
    )
    losing = LosingOut(many=True, help_text="The first 100 by id.")
    losing_omitted = serializers.IntegerField(help_text="How many more there are.")


class NotAppliedOut(serializers.Serializer[Any]):
    """The answer to an apply that changed nothing: because everything was already as asked or, with `dry_run`, because
    it only says what it would do.
    """

    changed = serializers.BooleanField(help_text="Whether it would change anything.")
    dry_run = serializers.BooleanField(required=False)
    diff = PlannedEditOut(many=True, required=False, help_text="With `dry_run`.")
    impact = ApplyImpactOut(required=False, help_text="With `dry_run`, for who may read the environment as a whole.")
    labels = LabelsMovedOut(many=True, required=False, help_text="With `dry_run`.")
    loss = LossOut(required=False, help_text="With `dry_run`.")
    findings = FindingOut(many=True, required=False, help_text="With `dry_run`.")
    not_judged = NotJudgedOut(
        many=True, required=False, help_text="With `dry_run`: which of what would change no Envoy has read, and why."
    )


class ManifestField(serializers.JSONField):
    """A field for manifests, which is checked later, when they are parsed: the findings are more exact then."""


class DeletionIn(StrictSerializer):
    """A resource to delete."""

    type = Text(help_text="A type's word or type URL.")
    name = Text()


class ApplyIn(StrictSerializer):
    """Resources to store and delete as one change; sending it again changes nothing more."""

    resources = ManifestField(required=False, help_text="Manifests.")
    delete = DeletionIn(
        many=True, required=False, default=list, help_text="What to delete; what is not there is no error."
    )
    message = Text(required=False, allow_blank=True, default="", max_length=1000)
    owner = Text(required=False, allow_blank=False, allow_null=True, default=None, max_length=150)
    prune = Flag(required=False, default=False, help_text="Delete what this owner has and `resources` does not name.")
    base_epoch = Whole(
        required=False, allow_null=True, default=None, min_value=1, help_text="Refuse if resources moved on since."
    )
