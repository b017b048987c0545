"""Rehearsals: what some clients say of manifests that are no change yet (interfaces.md section 8)."""

from collections.abc import Mapping
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import StrictSerializer, Text
from controlplane.api.shapes.changes import DeletionIn, ManifestField
from controlplane.api.shapes.common import FindingOut
from controlplane.rollouts.rehearsal import (
    DEFAULT_WITHIN_S,
    MAX_CLIENTS,
    MAX_OF_A_KIND,
    MAX_WITHIN_S,
    MIN_WITHIN_S,
    RehearsalVerdict,
    ResultState,
)

_MAX_ID_CHARS: Final = 1_024
_CLIENTS: Final = {
    "oneOf": [
        {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": _MAX_ID_CHARS},
            "minItems": 1,
            "maxItems": MAX_CLIENTS,
        },
        {
            "type": "object",
            "properties": {"each_kind": {"type": "integer", "minimum": 1, "maximum": MAX_OF_A_KIND}},
            "required": ["each_kind"],
            "additionalProperties": False,
        },
    ]
}


@extend_schema_field(_CLIENTS)
class ClientsField(serializers.Field[Any, Any, Any, Any]):
    """A field for who rehearses: a list of node ids or client ids, or how many clients of each kind."""

    def to_internal_value(self, data: object) -> list[str] | int:
        """The ids without repeats, or the number. Raises ValidationError for anything else."""
        if isinstance(data, Mapping):
            number = data.get("each_kind")
            if data.keys() != {"each_kind"} or isinstance(number, bool) or not isinstance(number, int):
                raise ValidationError('This must be a list of clients, or {"each_kind": 1}.', code="wrong_type")
            if not 1 <= number <= MAX_OF_A_KIND:
                raise ValidationError(f"each_kind must be from 1 to {MAX_OF_A_KIND}.")
            return number
        if not isinstance(data, list) or not all(isinstance(each, str) for each in data):
            raise ValidationError('This must be a list of clients, or {"each_kind": 1}.', code="wrong_type")
        if not 1 <= len(data) <= MAX_CLIENTS or not all(0 < len(each) <= _MAX_ID_CHARS for each in data):
            raise ValidationError(f"This must name 1 to {MAX_CLIENTS} clients, by their node ids or ids.")
        return list(dict.fromkeys(data))

    def to_representation(self, value: object) -> object:
        """The value as it is: this field is only ever read."""
        return value


class RehearsalIn(StrictSerializer):
    """Resources that some clients are to try, and that are withdrawn at once."""

    resources = ManifestField(required=False, help_text="Manifests.")
    delete = DeletionIn(many=True, required=False, default=list, help_text="What to take from the clients meanwhile.")
    clients = ClientsField(
        help_text="Who tries them: node ids or ids of connected clients of the environment's rehearsal group, or so "
        "many of each kind of client."
    )
    within = Text(
        required=False,
        default=f"{DEFAULT_WITHIN_S}s",
        max_length=8,
        help_text=f"How long to wait for their answers, from {MIN_WITHIN_S}s to {MAX_WITHIN_S}s.",
    )


class RehearsalResultOut(serializers.Serializer[Any]):
    """What one client said of one resource."""

    client = serializers.CharField(help_text="The client's id.")
    node_id = serializers.CharField(allow_blank=True)
    kind = serializers.CharField(help_text="Family and version of its software, or `other`.")
    type = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(
        choices=[each.value for each in ResultState],
        help_text="`not_asked`: the client does not ask for it, or nobody can be sent it, as `message` says.",
    )
    message = serializers.CharField(allow_blank=True, help_text="In the client's own words where it refused.")


class RehearsalOut(serializers.Serializer[Any]):
    """What came of a rehearsal. Nothing of it is left in the environment."""

    verdict = serializers.ChoiceField(
        choices=[each.value for each in RehearsalVerdict],
        help_text="`refused`: a client refused something, or a blocking route case would not hold. `taken`: each "
        "client took all that it asks for, and asks for something. Else `inconclusive`.",
    )
    results = RehearsalResultOut(many=True)
    findings = FindingOut(
        many=True,
        help_text="What a write of it would be told, and what it would make of route cases: an error for each blocking "
        "one that would not hold any more.",
    )
