"""One act upon many resources, as it is asked for and what it would do."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import StrictSerializer, Text, Whole
from controlplane.api.shapes.access import NameField, TypeField
from controlplane.api.shapes.common import EditOut, FindingOut, LossOut
from controlplane.api.shapes.facts import MAX_REASON_CHARS
from controlplane.api.shapes.labels import MAX_OWNER_CHARS, LabelEditsField, LabelsMovedOut, OwnerMovedOut
from controlplane.bulk.values import QUARANTINES, BulkAct
from controlplane.status.values import Status
from xdscore.labels import MAX_SELECTOR_CHARS


class ChosenIn(StrictSerializer):
    """A resource that is meant."""

    type = TypeField(help_text="A type's word or type URL.")
    name = NameField()
    revision = Whole(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        help_text="Refuse if it is at another revision by now.",
    )


class SelectIn(StrictSerializer):
    """Resources that are meant by what they have in common, as the list is filtered."""

    type = TypeField(required=False)
    owner = Text(required=False, allow_blank=True, max_length=MAX_OWNER_CHARS, help_text="Empty: nobody's.")
    name = Text(required=False, allow_blank=False, max_length=1_024, help_text="A part of the name.")
    status = serializers.ChoiceField(required=False, choices=[each.value for each in Status])
    label = Text(  # type: ignore[assignment]  # not what DRF calls a field's label: it takes fields out of the class
        required=False, allow_blank=False, max_length=MAX_SELECTOR_CHARS, help_text="A selector of labels."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields. Raises ValidationError where there are none: nobody means everything by saying nothing."""
        if not attrs:
            raise ValidationError({"": "Give at least one of type, owner, name, status and label."})
        return attrs


class _ManyIn(StrictSerializer):
    """The base of acts upon many resources: which of them are meant."""

    resources = ChosenIn(many=True, required=False, help_text="Those that are meant, or `select`.")
    select = SelectIn(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields. Raises ValidationError where they do not go together."""
        if problems := self.problems(attrs):
            raise ValidationError(problems)
        return attrs

    def problems(self, attrs: dict[str, Any]) -> dict[str, str]:
        """What is wrong with the fields together, a sentence by field."""
        if ("resources" in attrs) == ("select" in attrs):
            return {"resources": "Give either resources or select."}
        return {}


class BulkIn(_ManyIn):
    """One act upon many resources."""

    act = serializers.ChoiceField(choices=[each.value for each in BulkAct if each not in QUARANTINES])
    owner = Text(
        required=False, allow_blank=True, max_length=MAX_OWNER_CHARS, help_text="For `owner`: whose. Empty: nobody's."
    )
    labels = LabelEditsField(required=False)

    def problems(self, attrs: dict[str, Any]) -> dict[str, str]:
        """What is wrong with the fields together, a sentence by field."""
        found = super().problems(attrs)
        for field in ("owner", "labels"):
            if field == attrs["act"] and field not in attrs:
                found[field] = f"The act '{attrs['act']}' needs it."
            elif field != attrs["act"] and field in attrs:
                found[field] = f"The act '{attrs['act']}' does not take it."
        return found


class QuarantinesIn(_ManyIn):
    """The newest revisions of many resources, to be put into quarantine or released from it."""

    act = serializers.ChoiceField(choices=[each.value for each in BulkAct if each in QUARANTINES])
    reason = Text(max_length=MAX_REASON_CHARS)


class BulkNotDoneOut(serializers.Serializer[Any]):
    """The answer to a bulk act that changed nothing: because everything was already as asked or, with `dry_run`,
    because it only says what it would do.
    """

    changed = serializers.BooleanField(help_text="Whether it would change anything.")
    dry_run = serializers.BooleanField(required=False)
    edits = EditOut(many=True, required=False, help_text="With `dry_run`.")
    labels = LabelsMovedOut(many=True, required=False, help_text="With `dry_run`.")
    owners = OwnerMovedOut(many=True, required=False, help_text="With `dry_run`.")
    loss = LossOut(required=False, help_text="With `dry_run`.")
    findings = FindingOut(many=True, required=False, help_text="With `dry_run`.")
