"""Explain for requests: where one goes, and why (interfaces.md section 8)."""

from collections.abc import Mapping
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from controlplane.api.fields import StrictSerializer, Text, Whole
from xdscore.routing.values import Answer, State
from xdscore.routing.well_formed import (
    MAX_EPOCH,
    MAX_HEADERS,
    MAX_ID_CHARS,
    MAX_METHOD_CHARS,
    MAX_VALUE_CHARS,
    SCHEMES,
    authority_problem,
    header_problem,
    method_problem,
    path_problem,
)

_HEADERS: Final = {
    "type": "object",
    "maxProperties": MAX_HEADERS,
    "additionalProperties": {"type": "string", "maxLength": MAX_VALUE_CHARS},
}


@extend_schema_field(_HEADERS)
class HeadersField(serializers.Field[Any, Any, Any, Any]):
    """A field for the headers of a request, by name. Values of one name are joined by commas, as they are matched."""

    def to_internal_value(self, data: object) -> dict[str, str]:
        """The headers, with names in lower case. Raises ValidationError for what no request has."""
        if not isinstance(data, Mapping):
            raise ValidationError('This must be an object such as {"x-user": "1"}.', code="wrong_type")
        if len(data) > MAX_HEADERS:
            raise ValidationError(f"A request has at most {MAX_HEADERS} headers here.")
        found: dict[str, str] = {}
        for name, value in data.items():
            if not isinstance(value, str):
                raise ValidationError("A header's value must be a string.", code="wrong_type")
            if problem := header_problem(name, value):
                raise ValidationError(problem)
            if name.lower() in found:
                raise ValidationError("A header is given twice. Join its values by a comma.")
            found[name.lower()] = value
        return found

    def to_representation(self, value: object) -> object:
        """The value as it is: this field is only ever read."""
        return value


class AskedIn(StrictSerializer):
    """A request as a client makes it, and the listener that it comes to."""

    scheme = serializers.ChoiceField(choices=list(SCHEMES), required=False, default="http")
    method = Text(required=False, default="GET", max_length=MAX_METHOD_CHARS)
    authority = Text(max_length=MAX_ID_CHARS, help_text="Host and port; of gRPC the target behind `xds:///`.")
    path = Text(required=False, default="/", max_length=MAX_VALUE_CHARS, help_text="With its query.")
    headers = HeadersField(required=False, default=dict, help_text="By name, without pseudo-headers.")
    listener = Text(
        required=False,
        default="",
        allow_blank=True,
        max_length=MAX_ID_CHARS,
        help_text="The listener that it comes to. Without: the one that has its port, or is its gRPC target.",
    )

    def validate_path(self, path: str) -> str:
        """Check that the path is one that a request can have."""
        if problem := path_problem(path):
            raise ValidationError(problem)
        return path

    def validate_method(self, method: str) -> str:
        """Check that the method is a word that a request can have."""
        if problem := method_problem(method):
            raise ValidationError(problem)
        return method

    def validate_authority(self, authority: str) -> str:
        """Check that the authority is host and port alone."""
        if problem := authority_problem(authority):
            raise ValidationError(problem)
        return authority


class RequestIn(AskedIn):
    """A request as a client makes it, and by whose view it is explained."""

    client = Text(
        required=False,
        default="",
        allow_blank=True,
        max_length=MAX_ID_CHARS,
        help_text="By what this client has: its id or node id. Without: by what is published.",
    )
    at = Whole(required=False, default=None, allow_null=True, min_value=1, max_value=MAX_EPOCH, help_text="An epoch.")


class _PlaceOut(serializers.Serializer[Any]):
    """Where something stands: in which resource, and there where."""

    type = serializers.CharField(help_text="Of the resource in which it stands.")
    resource = serializers.CharField()
    pointer = serializers.CharField(allow_blank=True, help_text="The JSON Pointer, in the manifest, of what decided.")
    line = serializers.IntegerField(
        allow_null=True, help_text="Its line in the YAML of that revision's manifest, from 1; null: not known."
    )


class LostOut(_PlaceOut):
    """A candidate that was not chosen, and why."""

    name = serializers.CharField(allow_blank=True)
    text = serializers.CharField(help_text="What it wants and the request does not have, as the end of a sentence.")


class RequestRungOut(_PlaceOut):
    """One choice on the way of the request."""

    title = serializers.CharField()
    state = serializers.ChoiceField(choices=[each.value for each in State])
    text = serializers.CharField()
    type = serializers.CharField(allow_null=True, help_text="Of the resource that decided; null: none did.")
    resource = serializers.CharField(allow_null=True)
    pointer = serializers.CharField(allow_null=True)
    lost = LostOut(many=True)
    more = serializers.IntegerField(help_text="How many others lost, besides those in `lost`.")


class WeightedOut(_PlaceOut):
    """A cluster, and what share of requests like this it gets; and where the route names it."""

    cluster = serializers.CharField()
    percent = serializers.FloatField()


class RequestEndpointOut(_PlaceOut):
    """An endpoint of a cluster that the request goes to."""

    address = serializers.CharField()
    health = serializers.CharField()
    locality = serializers.CharField(allow_blank=True, help_text="Region, zone and sub-zone.")


class RequestExplainedOut(serializers.Serializer[Any]):
    """Where a request goes. Members are null where the way ended before."""

    answer = serializers.ChoiceField(choices=[each.value for each in Answer])
    listener = serializers.CharField(allow_null=True)
    filter_chain = serializers.CharField(allow_null=True)
    route = serializers.CharField(allow_null=True, help_text="The name of the route configuration.")
    virtual_host = serializers.CharField(allow_null=True)
    route_index = serializers.IntegerField(allow_null=True, help_text="Of the route in its virtual host, from 0.")
    cluster = serializers.CharField(required=False, help_text="Where it goes to one cluster.")
    weighted = WeightedOut(many=True, required=False, help_text="Where it goes to one of several.")
    endpoints = RequestEndpointOut(many=True)
    rungs = RequestRungOut(many=True, help_text="One choice after the other.")
    unsupported = serializers.ListField(
        child=serializers.CharField(),
        help_text="What was not judged: type, name and JSON Pointer. Where the answer depends on it, it is `unknown`.",
    )
