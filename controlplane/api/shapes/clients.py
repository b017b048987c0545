"""Labels on clients, as they are asked for."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import StrictSerializer, Text
from controlplane.api.shapes.labels import LabelEditsField
from controlplane.clients.identity import CLIENT_ID_CHARS
from controlplane.clients.labelling import MAX_LABELLED
from xdscore.labels import MAX_SELECTOR_CHARS


class ClientPatchIn(StrictSerializer):
    """What is said about a client beside what it is; what is not given stays."""

    labels = LabelEditsField()


class ClientSelectIn(StrictSerializer):
    """Clients that are meant by what they have in common, as the list is filtered."""

    node_id = Text(required=False, allow_blank=False, max_length=1_024, help_text="Exactly this node id.")
    identity = Text(required=False, allow_blank=False, max_length=2_048, help_text="Exactly this verified identity.")
    connected = serializers.BooleanField(required=False, help_text="True: only those with an open stream.")
    label = Text(  # type: ignore[assignment]  # not what DRF calls a field's label: it takes fields out of the class
        required=False, allow_blank=False, max_length=MAX_SELECTOR_CHARS, help_text="A selector of labels."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields. Raises ValidationError where there are none: nobody means everything by saying nothing."""
        if not any(attrs.values()):
            raise ValidationError({"": "Give at least one of node_id, identity, connected and label."})
        return attrs


class ClientsBulkIn(StrictSerializer):
    """One act upon many clients."""

    act = serializers.ChoiceField(choices=["labels"])
    clients = serializers.ListField(
        child=Text(max_length=CLIENT_ID_CHARS),
        required=False,
        max_length=10 * MAX_LABELLED,
        help_text="The ids of those that are meant, or `select`.",
    )
    select = ClientSelectIn(required=False)
    labels = LabelEditsField()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields. Raises ValidationError where they do not go together."""
        if ("clients" in attrs) == ("select" in attrs):
            raise ValidationError({"clients": "Give either clients or select."})
        return attrs


class ClientsLabelledOut(serializers.Serializer[Any]):
    """What became of many clients."""

    clients = serializers.IntegerField(help_text="How many were meant.")
    changed = serializers.IntegerField(help_text="How many of them have other labels now.")
