"""Discovery messages to the engine's events, and its requests to discovery messages. Decoding happens here only."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from xdsclient.bootstrap import Node
from xdsclient.decoding import ClientType, InvalidResourceError
from xdsclient.engine.events import (
    DeltaRequest,
    Heartbeat,
    Invalid,
    ReportedError,
    Request,
    Response,
    SotwRequest,
    Valid,
    Variant,
)
from xdsclient.engine.values import Status
from xdscore.names import canonical
from xdscore.resource_types import TYPE_URL_PREFIX
from xdscore.schema.types_registry import new_message

log = logging.getLogger(__name__)

_WRAPPER = TYPE_URL_PREFIX + "envoy.service.discovery.v3.Resource"
_USER_AGENT = "Parley xdsclient"
_USER_AGENT_VERSION = "0.1.0"
# protocol.md A9: resources may come wrapped in SotW too, and with a ttl.
_FEATURES = ("xds.config.resource-in-sotw", "xds.config.supports-resource-ttl")
_SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

METHODS: Mapping[Variant, str] = {
    Variant.SOTW: _SERVICE + "StreamAggregatedResources",
    Variant.DELTA: _SERVICE + "DeltaAggregatedResources",
}

# A generated message; its fields are known by descriptor only.
AnyProto = Any


class MalformedResponseError(ValueError):
    """The bytes received are no discovery response."""


class Wire:
    """Encodes requests and decodes responses of one client, with its node and its resource types."""

    def __init__(self, node: Node, variant: Variant, types: Iterable[ClientType[object]]) -> None:
        self._node = node_message(node)
        self._variant = variant
        self._types = {each.kind.url: each for each in types}

    def request(self, request: Request, *, first: bool) -> bytes:
        """The bytes of a request. `first`: it is the first of a stream, which carries the node (protocol.md A3)."""
        message = _sotw(request) if isinstance(request, SotwRequest) else _delta(request)
        message.type_url = request.kind.url
        message.response_nonce = request.nonce
        if request.nack is not None:
            message.error_detail.code = request.nack.code
            message.error_detail.message = request.nack.message
        if first:
            message.node.CopyFrom(self._node)
        data: bytes = message.SerializeToString()
        return data

    def response(self, data: bytes) -> Response:
        """The response in these bytes, with each resource read. Raises MalformedResponseError when they cannot be
        parsed.
        """
        delta = self._variant is Variant.DELTA
        message = discovery_pb2.DeltaDiscoveryResponse() if delta else discovery_pb2.DiscoveryResponse()
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise MalformedResponseError("what the server sent is no discovery response") from error
        version = message.system_version_info if delta else message.version_info
        read = self._wrapped if delta else self._plain_or_wrapped
        return Response(
            type_url=message.type_url,
            version=version,
            nonce=message.nonce,
            resources=tuple(read(resource, message.type_url, version) for resource in message.resources),
            errors=tuple(_error(each) for each in message.resource_errors),
            removed=tuple(canonical(name) for name in message.removed_resources) if delta else (),
        )

    def _plain_or_wrapped(self, packed: AnyMessage, type_url: str, version: str) -> Valid | Invalid | Heartbeat:
        if packed.type_url != _WRAPPER:
            return self._content("", packed, type_url, version)
        wrapper = discovery_pb2.Resource()
        try:
            wrapper.ParseFromString(packed.value)
        except DecodeError:
            return Invalid("", version, "the Resource wrapper cannot be decoded", packed.value)
        # In SotW the version is the response's (protocol.md B8); the wrapper's own is for the delta variant.
        wrapper.version = version
        return self._wrapped(wrapper, type_url, version)

    def _wrapped(self, wrapper: AnyProto, type_url: str, _: str) -> Valid | Invalid | Heartbeat:
        name = canonical(wrapper.name or wrapper.resource_name.name)
        if not name:
            return Invalid("", wrapper.version, "the Resource wrapper has no name", wrapper.resource.value)
        ttl_s = wrapper.ttl.ToMilliseconds() / 1000
        if not wrapper.HasField("resource"):
            return Heartbeat(name, wrapper.version, ttl_s)
        return self._content(name, wrapper.resource, type_url, wrapper.version, ttl_s)

    def _content(
        self, name: str, packed: AnyMessage, type_url: str, version: str, ttl_s: float = 0.0
    ) -> Valid | Invalid:
        if packed.type_url != type_url:
            return Invalid(name, version, f"is a '{packed.type_url}' in a response of type '{type_url}'", packed.value)
        kind = self._types.get(type_url)
        if kind is None:
            # The engine refuses a response of such a type as a whole.
            return Invalid(name, version, "is of a type that was not asked for", packed.value)
        try:
            value = kind.read(packed.value)
        except Exception as error:
            name = name or _name_in(_readable(packed, kind), kind)
            if isinstance(error, InvalidResourceError):
                return Invalid(name, version, str(error), packed.value)
            log.exception("the type %s cannot read '%s'", type_url, name)
            return Invalid(name, version, f"the client's reader failed: {type(error).__name__}", packed.value)
        if not name:
            # The standard types' values are messages already; another type's message is decoded once more.
            name = _name_in(value if isinstance(value, Message) else _readable(packed, kind), kind)
        if not name:
            return Invalid("", version, "has no name", packed.value)
        return Valid(name, version, value, packed.value, ttl_s)


def node_message(node: Node) -> base_pb2.Node:
    """The node as protobuf, for requests and for CSDS."""
    message = base_pb2.Node(id=node.id, cluster=node.cluster, user_agent_name=_USER_AGENT)
    message.user_agent_version = _USER_AGENT_VERSION
    message.client_features.extend(_FEATURES)
    place = node.locality
    if place.region or place.zone or place.sub_zone:
        message.locality.region, message.locality.zone, message.locality.sub_zone = (
            place.region,
            place.zone,
            place.sub_zone,
        )
    if node.metadata:
        message.metadata.update(node.metadata)
    return message


def _sotw(request: SotwRequest) -> AnyProto:
    return discovery_pb2.DiscoveryRequest(version_info=request.version, resource_names=request.names)


def _delta(request: DeltaRequest) -> AnyProto:
    return discovery_pb2.DeltaDiscoveryRequest(
        resource_names_subscribe=request.subscribe,
        resource_names_unsubscribe=request.unsubscribe,
        initial_resource_versions=dict(request.initial_versions),
    )


def _error(entry: AnyProto) -> ReportedError:
    """One entry of `resource_errors`. Of the resource name it has, only the name counts, no parameters (clients.md 1).
    An entry without a status has the code OK, which the engine treats as malformed.
    """
    return ReportedError(
        canonical(entry.resource_name.name), Status(entry.error_detail.code, entry.error_detail.message)
    )


def _name_in(message: AnyProto, kind: ClientType[object]) -> str:
    """The name that a resource's message itself contains."""
    return canonical(str(getattr(message, kind.kind.name_field)))


def _readable(packed: AnyMessage, kind: ClientType[object]) -> AnyProto:
    """The message in an Any; an empty message when it cannot be decoded."""
    message: AnyProto = new_message(kind.kind.message)
    try:
        message.ParseFromString(packed.value)
    except DecodeError:
        message.Clear()
    return message
