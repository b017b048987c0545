"""Labels, and what else is said about a resource beside its content."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import StrictSerializer, Text
from xdscore.labels import LabelEdits, edit_problems

MAX_OWNER_CHARS: Final = 150
_MAX_EDITS: Final = 200


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {"type": ["string", "null"], "maxLength": 63},
        "description": "The value that each of these labels gets; null removes it. Others stay.",
    }
)
class LabelEditsField(serializers.Field[LabelEdits, Any, Any, Any]):
    """A field for edits of labels: an object whose values are texts, or null."""

    def to_internal_value(self, data: Any) -> LabelEdits:
        """The edits. Raises ValidationError with every problem."""
        if not isinstance(data, dict) or not all(value is None or isinstance(value, str) for value in data.values()):
            raise ValidationError("This must be an object of texts, or null for labels to remove.", code="wrong_type")
        if len(data) > _MAX_EDITS:
            raise ValidationError(f"At most {_MAX_EDITS} labels can be set at once.")
        if problems := edit_problems(data):
            raise ValidationError(list(problems))
        return data


class ResourcePatchIn(StrictSerializer):
    """What is said about a resource beside its content; what is not given stays."""

    labels = LabelEditsField(required=False)
    owner = Text(required=False, allow_blank=True, max_length=MAX_OWNER_CHARS, help_text="Empty: nobody's.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields. Raises ValidationError where there are none."""
        if not attrs:
            raise ValidationError({"": "Give labels, owner, or both."})
        return attrs


class LabelsMovedOut(serializers.Serializer[Any]):
    """A resource whose labels a change moved."""

    type = serializers.CharField()
    name = serializers.CharField()
    before = serializers.DictField(child=serializers.CharField(allow_blank=True))
    after = serializers.DictField(child=serializers.CharField(allow_blank=True))


class OwnerMovedOut(serializers.Serializer[Any]):
    """A resource whose owner a change moved."""

    type = serializers.CharField()
    name = serializers.CharField()
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)
