"""What clients have of resources (interfaces.md section 8)."""

from typing import Any

from rest_framework import serializers

from xdscore.holdings import HoldingState


class HoldingOut(serializers.Serializer[Any]):
    """What one client has of one resource."""

    type = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in HoldingState])
    revision = serializers.IntegerField(
        allow_null=True, help_text="What it is to have or, once it answered, has; null: of no revision known here."
    )
    version = serializers.CharField(allow_null=True, help_text="The version on the wire of that.")
    acked_revision = serializers.IntegerField(allow_null=True, help_text="What it goes on with.")
    acked_version = serializers.CharField(allow_null=True, help_text="The version on the wire of that.")
    code = serializers.CharField(allow_null=True, help_text="Of the error that it was told.")
    message = serializers.CharField(
        allow_null=True, help_text="The error word for word; what the client said when it refused; else why it is so."
    )
    since = serializers.DateTimeField(allow_null=True, help_text="Since when, at the latest, it is so.")


class HolderOut(HoldingOut):
    """What one client has of the resource that was asked about."""

    client = serializers.CharField(help_text="The client's id.")
    node_id = serializers.CharField(allow_blank=True)


class ResourceClientsOut(serializers.Serializer[Any]):
    """How many connected clients have what of a resource, and a page of them."""

    counts = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()),
        help_text="Of all connected clients that ask for it, without the filters: by state, then by revision (`r12`), "
        "`other` for content of no revision known here, the code of an error, or `none`.",
    )
    next = serializers.CharField(allow_null=True)
    results = HolderOut(many=True)
