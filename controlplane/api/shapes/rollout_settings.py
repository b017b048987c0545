"""How changes of an environment reach its clients, as bodies spell it (interfaces.md section 8).

The shapes describe; `catalog.rollout_settings` reads, and finds everything that is wrong at once.
"""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.catalog.rollout_settings import (
    MAX_GROUPS,
    MAX_STEPS,
    MAX_WEBHOOKS,
    OnFailure,
    RolloutMode,
    Unexposed,
)

ROLLOUT_HELP: Final = (
    "How changes reach clients. It applies to the next rollout, never to the open one. Sent, it replaces all of these "
    "settings: what it does not name has its default, and without a mode changes go to all clients at once."
)
_DURATION_HELP: Final = "A whole number and a unit: `30s`, `5m`, `2h`, `1d`."


class RolloutGatesOut(serializers.Serializer[Any]):
    """What a step waits for beside its clients' answers; of a step, what differs from the environment."""

    # A declared field hides no attribute: the metaclass takes it out of the class.
    errors = serializers.BooleanField(  # type: ignore[assignment]  # see above
        required=False, help_text="Whether an error that is new to the cohort fails it; the default is true."
    )
    lost_percent = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="By how many percent points more of the cohort than of the others may lose their streams.",
    )
    webhooks = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text=f"URLs that are asked before the first step and after each; at most {MAX_WEBHOOKS}.",
    )


class RolloutStepSettingsOut(serializers.Serializer[Any]):
    """Which clients have it from a step on: exactly one of `kinds`, `clients` and `percent`, and whole groups beside.
    That must not fall from step to step.
    """

    kinds = serializers.IntegerField(required=False, help_text="So many clients of each kind.")
    clients = serializers.IntegerField(required=False, help_text="So many clients.")
    percent = serializers.FloatField(required=False, help_text="So many percent of the clients: 0.1 to 100.")
    groups = serializers.ListField(
        child=serializers.CharField(), required=False, help_text=f"All clients of these groups; at most {MAX_GROUPS}."
    )
    bake = serializers.CharField(required=False, help_text=f"How long it lasts at least. {_DURATION_HELP}")
    approve = serializers.BooleanField(required=False, help_text="Whether a person has to agree.")
    gates = RolloutGatesOut(required=False)


class RolloutSettingsOut(serializers.Serializer[Any]):
    """How changes of an environment reach its clients."""

    mode = serializers.ChoiceField(
        choices=[each.value for each in RolloutMode],
        required=False,
        help_text="`off`: all at once; `pilot`: first some clients of each kind; `steps`: as `steps` says.",
    )
    steps = RolloutStepSettingsOut(many=True, required=False, help_text=f"Of the mode `steps`; at most {MAX_STEPS}.")
    immediate = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Types that reach all clients at once, by their words."
    )
    on_failure = serializers.ChoiceField(
        choices=[each.value for each in OnFailure],
        required=False,
        help_text="What is taken back: the resources that clients refuse, or everything.",
    )
    unexposed = serializers.ChoiceField(
        choices=[each.value for each in Unexposed],
        required=False,
        allow_null=True,
        help_text="What follows where no client of the cohort asks for what differs; null: `promote` for a pilot, else "
        "`ask`.",
    )
    answer_within = serializers.CharField(required=False, help_text=f"How long an answer may take. {_DURATION_HELP}")
    silent_percent = serializers.IntegerField(required=False, help_text="So many percent may be silent.")
    prefer_group = serializers.CharField(
        required=False, allow_null=True, help_text="The group whose clients are chosen first."
    )
    rehearsal_group = serializers.CharField(
        required=False, allow_null=True, help_text="The group whose clients may rehearse."
    )
    four_eyes = serializers.BooleanField(required=False, help_text="Whether an author may not approve.")
    gates = RolloutGatesOut(required=False)


@extend_schema_field(RolloutSettingsOut)
class RolloutSettingsField(serializers.JSONField):
    """A field for the settings of rollouts, which are read later: the findings are more exact then."""
