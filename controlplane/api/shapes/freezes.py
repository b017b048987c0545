"""When an environment takes no changes, and who may write nevertheless, as bodies spell it (interfaces.md section 8).

The shapes describe; `catalog.freezes` reads, and finds everything that is wrong at once.
"""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.catalog.freezes import MAX_FREEZES, MAX_REASON_CHARS, Weekday
from controlplane.catalog.review import BREAKERS, MAX_APPROVALS

FREEZES_HELP: Final = (
    f"When writes of resources and of what clients may read are refused (409); at most {MAX_FREEZES}. Rollbacks, "
    "undos, quarantines and the other settings go through. Sent, the list replaces the one before."
)
REVIEW_HELP: Final = "What is asked of those who change the environment. Sent, it replaces all of these settings."
_TIME_HELP: Final = "`18:00`; a day begins at `00:00` and ends at `24:00`."


class _From(serializers.Serializer[Any]):
    """The base class of shapes with a member `from`, which is a word of Python's: `begins` becomes that."""

    def get_fields(self) -> dict[str, Any]:
        """The fields under their names in JSON."""
        return {"from" if name == "begins" else name: each for name, each in super().get_fields().items()}


class WeeklyOut(_From):
    """Hours of each week."""

    days = serializers.ListField(child=serializers.ChoiceField(choices=[each.value for each in Weekday]))
    begins = serializers.CharField(help_text=_TIME_HELP)
    until = serializers.CharField(help_text=f"{_TIME_HELP} Not later than `from`: on the next day.")
    zone = serializers.CharField(required=False, help_text="A time zone's IANA name, such as `Europe/Berlin`; `UTC`.")


class FreezeOut(_From):
    """A time in which an environment takes no changes: once, or the hours of each week between two times."""

    begins = serializers.DateTimeField(allow_null=True, help_text="Null, with `weekly`: since ever.")
    until = serializers.DateTimeField(allow_null=True, help_text="Null, with `weekly`: for ever.")
    reason = serializers.CharField(max_length=MAX_REASON_CHARS, help_text="What whoever is refused is told.")
    weekly = WeeklyOut(required=False)


class FrozenOut(FreezeOut):
    """A freeze that holds now."""

    ends_at = serializers.DateTimeField(help_text="When it ends; of a weekly one, this time.")


class ReviewSettingsOut(serializers.Serializer[Any]):
    """What is asked of those who change the environment."""

    # A declared field hides no attribute: the metaclass takes it out of the class.
    required = serializers.BooleanField(  # type: ignore[assignment]  # see above
        required=False, help_text="Resources are written by a change set alone, which others approved; false."
    )
    approvals = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_APPROVALS, help_text="How many people have to approve one; 1."
    )
    self_approval = serializers.BooleanField(
        required=False, help_text="Who made or edited a change set may approve it, too; false."
    )
    break_glass_role = serializers.ChoiceField(
        choices=[each.value for each in BREAKERS],
        required=False,
        help_text="Who may write during a freeze, and without review, with `break_glass` and a reason; `operator`.",
    )


@extend_schema_field(FreezeOut(many=True))
class FreezesField(serializers.JSONField):
    """A field for a list of freezes, which are read later: the findings are more exact then."""


@extend_schema_field(ReviewSettingsOut)
class ReviewField(serializers.JSONField):
    """A field for the settings of review, which are read later, too."""
