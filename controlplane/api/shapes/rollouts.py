"""Rollouts: how far what was written is on its way to the fleet, and who has it (interfaces.md section 8)."""

from enum import Enum
from typing import Any, Final

from rest_framework import serializers

from controlplane.api.fields import Whole
from controlplane.api.shapes.changes import RevertedOut
from controlplane.api.shapes.common import ResourceRefOut
from controlplane.api.shapes.facts import ReasonIn
from controlplane.catalog.rollout_settings import MAX_STEPS
from controlplane.rollouts.values import ClientState, Outcome, ResourceOutcome, RolloutState, Why
from xdscore.sides import Side


def _words(kind: type[Enum]) -> list[str]:
    return [str(each.value) for each in kind]


_VERDICT_HELP: Final = "What the clients' answers mean; null while answers are awaited."


class WebhookSecretOut(serializers.Serializer[Any]):
    """The secret with which rollouts of an environment sign what they ask webhooks: shown only now."""

    secret = serializers.CharField()


class AtStepIn(ReasonIn):
    """The reason for an action at one step, for the record."""

    step = Whole(
        min_value=1,
        max_value=MAX_STEPS,
        required=False,
        help_text="The number of the step that it is about: at a later one it changes nothing. Absent: the present.",
    )


class RolloutResourceOut(serializers.Serializer[Any]):
    """One resource of a rollout."""

    type = serializers.CharField()
    name = serializers.CharField()
    # `from` is a word of Python's; `get_fields` below names the member.
    to = serializers.IntegerField(allow_null=True, help_text="The revision that the cohort gets; null: it is deleted.")
    outcome = serializers.ChoiceField(choices=_words(ResourceOutcome), help_text="What became of it.")
    change = serializers.CharField(allow_blank=True, help_text="The id of the change that wrote it.")
    author = serializers.CharField(allow_blank=True)
    incident = serializers.CharField(allow_null=True, help_text="The incident that tells why it was taken back.")
    because = serializers.CharField(allow_blank=True, help_text="Why it was taken back, in a sentence.")

    def get_fields(self) -> dict[str, Any]:
        """The fields, with `from` among them."""
        fields = super().get_fields()
        before = serializers.IntegerField(allow_null=True, help_text="The revision before; null: the name is new.")
        return {"type": fields.pop("type"), "name": fields.pop("name"), "from": before, **fields}


class RolloutStepOut(serializers.Serializer[Any]):
    """One step of a rollout."""

    number = serializers.IntegerField()
    who = serializers.CharField(help_text="Who has it from this step on, in words.")
    clients = serializers.IntegerField(help_text="How many clients that meant when the rollout opened.")
    bake_s = serializers.IntegerField(help_text="For how many seconds the step goes on at least.")
    approve = serializers.BooleanField(help_text="Whether it asks for a person's word.")
    approvals = serializers.ListField(child=serializers.CharField(), help_text="Who gave it, in order.")
    verdict = serializers.ChoiceField(choices=_words(Outcome), allow_null=True, help_text="Null: it has not ended.")
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class RolloutKindOut(serializers.Serializer[Any]):
    """What clients of one kind said."""

    kind = serializers.CharField(help_text="Family and version of the software, such as `envoy 1.40`; or `other`.")
    connected = serializers.IntegerField(help_text="All connected clients of this kind.")
    cohort = serializers.IntegerField(help_text="Those of them that are on the candidate side.")
    exposed = serializers.IntegerField(help_text="Those of the cohort that ask for something that differs.")
    acked = serializers.IntegerField()
    refused = serializers.IntegerField()
    silent = serializers.IntegerField()
    lost = serializers.IntegerField(help_text="Their streams ended before they answered.")
    covered = serializers.BooleanField(help_text="Whether one of the kind was asked, or none of it asks for it.")


class RolloutOut(serializers.Serializer[Any]):
    """A rollout: the way of changes to the fleet, client by client."""

    id = serializers.CharField()
    environment = serializers.CharField()
    mode = serializers.CharField(help_text="`pilot` or `steps`.")
    state = serializers.ChoiceField(choices=_words(RolloutState))
    step = serializers.IntegerField(help_text="The number of the step, from 1.")
    steps = RolloutStepOut(many=True)
    changes = serializers.ListField(child=serializers.CharField(), help_text="The ids of its changes.")
    resources = RolloutResourceOut(many=True)
    cohort = serializers.IntegerField(help_text="Clients on the candidate side.")
    control = serializers.IntegerField(help_text="Connected clients on the stable side.")
    exposed = serializers.IntegerField(help_text="Of the cohort, those that ask for something that differs.")
    acked = serializers.IntegerField(help_text="Of these, those that took it.")
    refused = serializers.IntegerField()
    silent = serializers.IntegerField(help_text="Those that did not answer in time.")
    lost = serializers.IntegerField(help_text="Those whose streams ended before they answered.")
    verdict = serializers.ChoiceField(choices=_words(Outcome), allow_null=True, help_text=_VERDICT_HELP)
    reasons = serializers.ListField(child=serializers.CharField(), help_text="Why, in sentences.")
    reverted = RevertedOut(many=True, help_text="What was taken back.")
    uncovered = serializers.ListField(
        child=serializers.CharField(), help_text="Kinds of clients of which nobody was asked."
    )
    waits_for = serializers.CharField(allow_null=True, help_text="What it waits for, in a sentence.")
    until = serializers.DateTimeField(allow_null=True, help_text="Until when it waits for that.")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    because = serializers.CharField(allow_blank=True, help_text="Why it is paused, or why it ended.")


class RolloutDetailOut(RolloutOut):
    """A rollout with what each kind of client said."""

    kinds = RolloutKindOut(many=True, help_text="The same counts by kind of client.")


class RolloutActedOut(RolloutDetailOut):
    """A rollout after somebody acted on it."""

    changed = serializers.BooleanField(help_text="False: it was so already.")


class RolloutAnswerOut(ResourceRefOut):
    """What a client said of one resource that differs between the sides."""

    state = serializers.ChoiceField(choices=_words(ClientState))
    message = serializers.CharField(allow_blank=True, help_text="In the client's own words.")


class RolloutClientOut(serializers.Serializer[Any]):
    """A client of a rollout: on which side it is, why, and what it said."""

    client = serializers.CharField(help_text="The client's id.")
    node_id = serializers.CharField(allow_blank=True)
    identity = serializers.CharField(allow_blank=True, help_text="Verified; empty when nothing was.")
    kind = serializers.CharField(help_text="Family and version of its software, or `other`.")
    side = serializers.ChoiceField(choices=_words(Side))
    why = serializers.ChoiceField(choices=_words(Why), allow_null=True, help_text="Null on the stable side.")
    because = serializers.CharField(help_text="Why it is there, in a sentence.")
    step = serializers.IntegerField(help_text="With which step it came; 0 on the stable side.")
    state = serializers.ChoiceField(choices=_words(ClientState), help_text="What it said, as a whole.")
    answers = RolloutAnswerOut(many=True, help_text="Of each name, refusals first: at most 50.")
