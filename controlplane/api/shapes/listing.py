"""Saved views of the console's lists."""

from typing import Any

from rest_framework import serializers

from controlplane.api.fields import StrictSerializer, Text
from controlplane.listing.frames import MAX_QUERY_CHARS
from controlplane.listing.models import MAX_LIST_CHARS, MAX_NAME_CHARS

_QUERY = "The filters and the order, as the address of the list has them: `type=cluster&sort=-changed`. Empty: all."


class SavedViewOut(serializers.Serializer[Any]):
    """A view: filters and an order of a list under a name."""

    id = serializers.UUIDField()
    environment = serializers.CharField(allow_null=True, help_text="Null for a list that is of no environment.")
    list = serializers.CharField()
    name = serializers.CharField()
    query = serializers.CharField(allow_blank=True, help_text=_QUERY)
    author = serializers.CharField()
    shared = serializers.BooleanField(help_text="Whether everybody who reads the environment is offered it.")
    own = serializers.BooleanField(help_text="Whether it is yours to change.")
    default = serializers.BooleanField(help_text="Whether the list opens with it for you.")
    at = serializers.DateTimeField()


class SavedViewIn(StrictSerializer):
    """A view to keep."""

    environment = Text(required=False, max_length=63, help_text="Where the list is; none for one of no environment.")
    list = Text(max_length=MAX_LIST_CHARS, help_text="The word of the list, such as `resources` or `clients`.")
    name = Text(max_length=10 * MAX_NAME_CHARS)
    query = Text(allow_blank=True, max_length=2 * MAX_QUERY_CHARS, help_text=_QUERY)
    shared = serializers.BooleanField(required=False, default=False)
    default = serializers.BooleanField(required=False, default=False)


class SavedViewPatchIn(StrictSerializer):
    """What changes of a view; what is not given stays."""

    name = Text(required=False, max_length=10 * MAX_NAME_CHARS)
    query = Text(required=False, allow_blank=True, max_length=2 * MAX_QUERY_CHARS, help_text=_QUERY)
    shared = serializers.BooleanField(required=False)
    default = serializers.BooleanField(
        required=False, help_text="True: the list opens with it for you. False: it opens with everything."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The fields. Raises ValidationError where there are none."""
        if not attrs:
            raise serializers.ValidationError({"": "Give at least one of name, query, shared and default."})
        return attrs
