"""Discovery protos <-> engine events: bytes in, bytes out. Called by `servicers.stream`; decides nothing.

Requests are parsed by protobuf. Responses are never built as messages: protobuf messages concatenate, so a response is
a join of parts that were encoded once and are shared by many streams (performance.md law 1). Field numbers are those of
envoy/service/discovery/v3/discovery.proto and are written beside each tag.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from sys import getsizeof

from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import duration_pb2, struct_pb2
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from adsserver.engine.events import DeltaRequest, Nack, NamedContent, Respond, SotwRequest, Variant
from adsserver.ports import Contents
from adsserver.wire.fields import field_of, text_field, varint
from adsserver.wire.recent import Recent
from xdscore.errors import ResourceError
from xdscore.limits import Limits
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_url

# Tags of length-delimited fields: (field number << 3) | 2.
_VERSION_INFO = b"\x0a"  # 1: DiscoveryResponse.version_info, DeltaDiscoveryResponse.system_version_info
_RESOURCES = b"\x12"  # 2: resources, in both
_TYPE_URL = b"\x22"  # 4: type_url, in both
_NONCE = b"\x2a"  # 5: nonce, in both
_REMOVED_RESOURCES = b"\x32"  # 6: DeltaDiscoveryResponse.removed_resources
_CONTROL_PLANE = {Variant.SOTW: b"\x32", Variant.DELTA: b"\x3a"}  # 6 and 7: control_plane
_RESOURCE_ERRORS = {Variant.SOTW: b"\x3a", Variant.DELTA: b"\x4a"}  # 7 and 9: resource_errors
_RESOURCE_VERSION = b"\x0a"  # 1: Resource.version
_RESOURCE_RESOURCE = b"\x12"  # 2: Resource.resource
_RESOURCE_NAME = b"\x1a"  # 3: Resource.name
_RESOURCE_ALIASES = b"\x22"  # 4: Resource.aliases
_RESOURCE_TTL = b"\x32"  # 6: Resource.ttl
_CONTROL_PLANE_IDENTIFIER = b"\x0a"  # 1: ControlPlane.identifier
_ANY_TYPE_URL = b"\x0a"  # 1: Any.type_url
_ANY_VALUE = b"\x12"  # 2: Any.value
_ERROR_RESOURCE_NAME = b"\x0a"  # 1: ResourceError.resource_name
_ERROR_DETAIL = b"\x12"  # 2: ResourceError.error_detail
_RESOURCE_NAME_NAME = b"\x0a"  # 1: ResourceName.name
_STATUS_MESSAGE = b"\x12"  # 2: Status.message

# The client features that mean "I take resources wrapped in Resource, in SotW too" (protocol.md A9): what gRPC sends,
# and how the protocol's text spells it. Envoy sends neither, and Node fails on a wrapper.
_TAKES_WRAPPERS = frozenset({"xds.config.resource-in-sotw", "xds.config.supports-resource-in-sotw"})
# What a client says that reads the ttl of such a wrapper (protocol.md A9). Of delta, where Envoy reads it without a
# word, it proves nothing.
_TAKES_TTLS = "xds.config.supports-resource-ttl"
_WRAPPER_URL = "type.googleapis.com/envoy.service.discovery.v3.Resource"

ERROR_DOMAIN = "parley"


# What streams share: about nine full states of the largest allowed size (reliability (e): 3.5 MiB).
_MAX_BODY_BYTES = 32 * 1024 * 1024
# Whole responses, for as long as a fan-out lasts: two of the largest allowed size.
_MAX_RESPONSE_BYTES = 8 * 1024 * 1024
# Room for the ACKs of the responses of some minutes, for each type.
_MAX_REQUESTS = 4_096
_MAX_SHARED_REQUEST_BYTES = 512

# Declared facts of a node are kept for selectors and for people, not as an archive: metadata can hold whole templates.
_MAX_METADATA_FIELDS = 64
_MAX_FACT_CHARS = 256


class MalformedRequestError(Exception):
    """The bytes are not a discovery request this server can read. The text is sent to the client (INVALID_ARGUMENT)."""


class OversizedRequestError(Exception):
    """The request exceeds a limit of reliability (e). The text is sent to the client (RESOURCE_EXHAUSTED)."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a client says of itself in its node.

    metadata: its top-level strings, numbers and booleans, as texts.
    takes_wrappers: whether its client features say that it unwraps resources in SotW (protocol.md A9).
    takes_ttls: whether they say besides that it reads the ttl there.
    kept_bytes: the memory that all of this takes.
    """

    id: str
    cluster: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    user_agent: str = ""
    user_agent_version: str = ""
    takes_wrappers: bool = False
    takes_ttls: bool = False
    kept_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class UnknownTypeRequest:
    """A request for a type that this server does not know. `names` are the names it asks for (delta: those it newly
    subscribes to).
    """

    type_url: str
    names: tuple[str, ...]
    nonce: str


@dataclass(frozen=True, slots=True)
class Incoming:
    """One request: its node, or None if it has none, and its content. `type_url` may be empty only on a service of a
    single type.
    """

    node: NodeFacts | None
    type_url: str
    request: SotwRequest | DeltaRequest | UnknownTypeRequest


def decode(data: bytes, variant: Variant, service: ResourceType | None, limits: Limits) -> Incoming:
    """Read the bytes of one request. `service`: the type of a single-type service, None on the aggregated one (ADS).

    Raises MalformedRequestError (also for a missing type URL on ADS, and for a foreign one on a single-type service:
    protocol.md A2) and OversizedRequestError.
    """
    message = discovery_pb2.DiscoveryRequest() if variant is Variant.SOTW else discovery_pb2.DeltaDiscoveryRequest()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise MalformedRequestError(f"The request is not a {message.DESCRIPTOR.name}.") from error
    return incoming_of(message, variant, service, limits)


def incoming_of(
    message: "discovery_pb2.DiscoveryRequest | discovery_pb2.DeltaDiscoveryRequest",
    variant: Variant,
    service: ResourceType | None,
    limits: Limits,
) -> Incoming:
    """The request that a message of this variant holds. Arguments and errors are those of `decode`."""
    type_url: str = message.type_url
    kind = _kind(type_url, service)
    node = _node(message.node) if message.HasField("node") else None
    nack = Nack(message.error_detail.code, message.error_detail.message) if message.HasField("error_detail") else None
    if variant is Variant.SOTW:
        names = _names(message.resource_names, message.resource_locators, limits)
        if kind is None:
            return Incoming(node, type_url, UnknownTypeRequest(type_url, names, message.response_nonce))
        return Incoming(node, type_url, SotwRequest(kind, names, message.response_nonce, message.version_info, nack))
    subscribe = _names(message.resource_names_subscribe, message.resource_locators_subscribe, limits)
    if kind is None:
        return Incoming(node, type_url, UnknownTypeRequest(type_url, subscribe, message.response_nonce))
    unsubscribe = _names(message.resource_names_unsubscribe, message.resource_locators_unsubscribe, limits)
    versions = _versions(message.initial_resource_versions, limits)
    return Incoming(node, type_url, DeltaRequest(kind, subscribe, unsubscribe, versions, message.response_nonce, nack))


class Decoder:
    """Reads the requests of all streams of a process, on the event loop; requests with the same bytes are read once.

    Many ACKs of a fleet have the same bytes, because the nonces of a stream count up. Requests with a node are read
    each time.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: Recent[tuple[bytes, Variant, ResourceType | None], Incoming] = Recent(_MAX_REQUESTS, lambda _: 1)

    def decode(self, data: bytes, variant: Variant, service: ResourceType | None) -> Incoming:
        """Read one request as the function `decode` does; when the same bytes were read before, the result is
        reused.
        """
        known = self.known(data, variant, service)
        if known is not None:
            return known
        incoming = decode(data, variant, service, self._limits)
        if incoming.node is not None or len(data) > _MAX_SHARED_REQUEST_BYTES:
            return incoming
        return self._known.put((data, variant, service), incoming)

    def known(self, data: bytes, variant: Variant, service: ResourceType | None) -> Incoming | None:
        """The request in these bytes, if it was read before and is remembered."""
        return self._known.get((data, variant, service)) if len(data) <= _MAX_SHARED_REQUEST_BYTES else None


def _kind(type_url: str, service: ResourceType | None) -> ResourceType | None:
    if service is None:
        if not type_url:
            raise MalformedRequestError("A request on an aggregated stream must have a type_url.")
        return by_url.get(type_url)
    if type_url and type_url != service.url:
        raise MalformedRequestError(f"This service serves {service.url}; the request asks for another type.")
    return service


def _names(names: Sequence[str], locators: Sequence[discovery_pb2.ResourceLocator], limits: Limits) -> tuple[str, ...]:
    asked = len(names) + len(locators)
    if asked > limits.names_per_request:
        raise OversizedRequestError(f"The request has {asked} names; at most {limits.names_per_request} are allowed.")
    # A locator is a name here: no resource has variants that its parameters could choose from (protocol.md C9).
    read = (*names, *(locator.name for locator in locators))
    longest = max(map(len, read), default=0)
    # A character takes at most 4 bytes in UTF-8: only long names are worth measuring.
    if longest * 4 > limits.name_bytes and any(len(name.encode()) > limits.name_bytes for name in read):
        raise OversizedRequestError(f"The request has a name of more than {limits.name_bytes} bytes.")
    return read


def _versions(held: Mapping[str, str], limits: Limits) -> dict[str, str]:
    """The versions by name that a client says it has of one type. Raises OversizedRequestError for more names than an
    environment can have.
    """
    if len(held) > limits.resources_per_environment:
        raise OversizedRequestError(
            f"The request says that {len(held)} resources are held; "
            f"at most {limits.resources_per_environment} are allowed (resources_per_environment)."
        )
    versions = dict(held)
    if any(len(version.encode()) > limits.name_bytes for version in versions.values()):
        raise OversizedRequestError(f"The request has a version of more than {limits.name_bytes} bytes.")
    return versions


def _node(node: base_pb2.Node) -> NodeFacts:
    metadata = _metadata(node.metadata.fields)
    texts = (
        node.id,
        _printable(node.cluster),
        _printable(node.user_agent_name),
        _printable(node.user_agent_version) or _build_version(node.user_agent_build_version),
    )
    takes_wrappers = not _TAKES_WRAPPERS.isdisjoint(node.client_features)
    return NodeFacts(
        id=texts[0],
        cluster=texts[1],
        metadata=metadata,
        user_agent=texts[2],
        user_agent_version=texts[3],
        takes_wrappers=takes_wrappers,
        takes_ttls=takes_wrappers and _TAKES_TTLS in node.client_features,
        kept_bytes=getsizeof(metadata) + sum(map(str.__sizeof__, (*texts, *metadata, *metadata.values()))),
    )


def _metadata(values: Mapping[str, struct_pb2.Value]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for key in sorted(values):
        text = _scalar(values[key])
        if text is not None and len(key) <= _MAX_FACT_CHARS and len(text) <= _MAX_FACT_CHARS:
            facts[key] = text
        if len(facts) == _MAX_METADATA_FIELDS:
            break
    return facts


def _scalar(value: struct_pb2.Value) -> str | None:
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            return f"{value.number_value:g}"
        case "bool_value":
            return "true" if value.bool_value else "false"
        case _:
            return None


def _build_version(build: base_pb2.BuildVersion) -> str:
    version = build.version
    return f"{version.major_number}.{version.minor_number}.{version.patch}" if build.HasField("version") else ""


def _printable(text: str) -> str:
    shown = text[:_MAX_FACT_CHARS]
    if shown.isprintable():
        return shown
    return "".join(character if character.isprintable() else " " for character in shown)


class Layout(Enum):
    """The form of one entry of a response's `resources`: an Any, a Resource wrapper inside an Any, or a wrapper."""

    ANY = "any"  # SotW: the resource in an Any
    WRAPPED_ANY = "wrapped_any"  # SotW: a Resource in an Any
    EXPIRING_ANY = "expiring_any"  # the same, with a ttl where there is one
    WRAPPER = "wrapper"  # delta: a Resource, with a ttl where there is one
    HEARTBEAT = "heartbeat"  # delta: a Resource without content

    __hash__ = object.__hash__  # as of Variant


_Told = tuple[int, tuple[int, ...], tuple[tuple[str, ...], tuple[str, ...]], str, str, Layout]
"""A response: its resources and errors by their identities, names that are gone, version, nonce, layout."""


class Encoder:
    """Turns responses into bytes. One per process, used on the event loop only.

    `identifier` is the control plane's name in responses (control_plane.identifier), the same as long as the process
    lives (protocol.md A7).
    """

    def __init__(self, contents: Contents, identifier: str) -> None:
        self._contents = contents
        self.identifier = identifier
        control_plane = text_field(_CONTROL_PLANE_IDENTIFIER, identifier)
        self._tails = {
            variant: {
                kind.url: text_field(_TYPE_URL, kind.url) + field_of(_CONTROL_PLANE[variant], control_plane)
                for kind in RESOURCE_TYPES
            }
            for variant in Variant
        }
        self._control_plane = control_plane
        # By identity of the engine's tuple, which is held so that the identity stays its own.
        self._bodies: Recent[tuple[int, Layout], tuple[tuple[NamedContent, ...], bytes]] = Recent(
            _MAX_BODY_BYTES, lambda entry: len(entry[1])
        )
        # Streams that opened together have the same nonces, and are told the same with the same bytes. The engine's
        # resources and errors are known by their identities, and held so that these stay their own.
        self._responses: Recent[_Told, tuple[Respond, bytes]] = Recent(_MAX_RESPONSE_BYTES, lambda entry: len(entry[1]))

    def encode(self, variant: Variant, response: Respond, *, wrapped: bool = False, takes_ttls: bool = False) -> bytes:
        """The bytes of a DiscoveryResponse or DeltaDiscoveryResponse.

        `wrapped`: whether a SotW client takes Resource wrappers, in which case it is always sent them: with a wrapper a
        name may differ from the message's own, and a NACK names even what cannot be decoded (clients.md section 4).
        `takes_ttls`: whether it reads ttls; it is told of them in full states alone (protocol.md G3).
        """
        layout = _layout(variant, response, wrapped=wrapped, takes_ttls=takes_ttls)
        if not response.resources or response.kind.secret:
            return self._whole(variant, layout, response)
        errors = tuple(map(id, response.errors))
        gone = (response.removed, response.unresolved)
        key = (id(response.resources), errors, gone, response.version, response.nonce, layout)
        shared = self._responses.get(key)
        if shared is None:
            shared = self._responses.put(key, (response, self._whole(variant, layout, response)))
        return shared[1]

    def encode_errors(
        self, variant: Variant, type_url: str, nonce: str, version: str, errors: Iterable[ResourceError]
    ) -> bytes:
        """The bytes of a response with errors only, for a type that this server does not know (protocol.md A5)."""
        return b"".join(
            (
                text_field(_VERSION_INFO, version),
                text_field(_TYPE_URL, type_url),
                text_field(_NONCE, nonce),
                field_of(_CONTROL_PLANE[variant], self._control_plane),
                *self.error_entries(variant, errors),
            )
        )

    def error_entries(self, variant: Variant, errors: Iterable[ResourceError]) -> list[bytes]:
        """The bytes of each resource_errors entry."""
        tag = _RESOURCE_ERRORS[variant]
        return [field_of(tag, _error_entry(error)) for error in errors]

    def _whole(self, variant: Variant, layout: Layout, response: Respond) -> bytes:
        parts = [
            text_field(_VERSION_INFO, response.version),
            self._body(layout, response),
            self._tails[variant][response.kind.url],
            text_field(_NONCE, response.nonce),
        ]
        # removed_resources exists in delta only; a SotW client learns a removal from absence (protocol.md D1).
        if variant is Variant.DELTA:
            parts.extend(text_field(_REMOVED_RESOURCES, name) for name in response.removed)
            parts.extend(field_of(_RESOURCES, _unresolved(name)) for name in response.unresolved)
        parts.extend(self.error_entries(variant, response.errors))
        return b"".join(parts)

    def _body(self, layout: Layout, response: Respond) -> bytes:
        resources = response.resources
        if not resources:
            return b""
        if layout is Layout.HEARTBEAT:
            return self._joined(layout, resources, _heartbeats)
        if response.kind.secret:
            # Decrypted at send time and never kept (decisions A8).
            return self._join(layout, resources)
        return self._joined(layout, resources, partial(self._join, layout))

    def _joined(
        self,
        layout: Layout,
        resources: tuple[NamedContent, ...],
        join: Callable[[tuple[NamedContent, ...]], bytes],
    ) -> bytes:
        key = (id(resources), layout)
        shared = self._bodies.get(key)
        if shared is None:
            shared = self._bodies.put(key, (resources, join(resources)))
        return shared[1]

    def _join(self, layout: Layout, resources: tuple[NamedContent, ...]) -> bytes:
        any_bytes = self._contents.any_bytes
        parts: list[bytes] = []
        for resource in resources:
            data = any_bytes(resource.content)
            if layout is Layout.ANY:
                parts += (_RESOURCES, varint(len(data)), data)
                continue
            head = _head(resource, data, with_ttl=layout is not Layout.WRAPPED_ANY)
            size = len(head) + len(data)
            if layout is not Layout.WRAPPER:
                wrapper = b"".join((text_field(_ANY_TYPE_URL, _WRAPPER_URL), _ANY_VALUE, varint(size)))
                parts += (_RESOURCES, varint(len(wrapper) + size), wrapper, head, data)
            else:
                parts += (_RESOURCES, varint(size), head, data)
        return b"".join(parts)


def _layout(variant: Variant, response: Respond, *, wrapped: bool, takes_ttls: bool) -> Layout:
    if variant is Variant.DELTA:
        return Layout.HEARTBEAT if response.heartbeat else Layout.WRAPPER
    if not wrapped:
        return Layout.ANY
    # In other types Envoy crashes when a ttl runs out (protocol.md G3).
    return Layout.EXPIRING_ANY if takes_ttls and response.kind.full_state else Layout.WRAPPED_ANY


def _head(resource: NamedContent, data: bytes, *, with_ttl: bool) -> bytes:
    """The bytes of a Resource wrapper that stand before those of its content, `data`."""
    return b"".join((_identity(resource, with_ttl=with_ttl), _RESOURCE_RESOURCE, varint(len(data))))


def _heartbeats(resources: tuple[NamedContent, ...]) -> bytes:
    """The bytes of a wrapper without content for each of these resources (protocol.md G2)."""
    return b"".join(field_of(_RESOURCES, _identity(resource, with_ttl=True)) for resource in resources)


def _identity(resource: NamedContent, *, with_ttl: bool) -> bytes:
    """The bytes of a wrapper's name and version and, where it has one, ttl: each sending sets it anew (G1)."""
    name = text_field(_RESOURCE_NAME, resource.name)
    version = text_field(_RESOURCE_VERSION, resource.content.version)
    ttl_ms = resource.content.ttl_ms if with_ttl else 0
    return b"".join((name, version, _ttl(ttl_ms))) if ttl_ms else name + version


@lru_cache(maxsize=256)
def _ttl(ttl_ms: int) -> bytes:
    duration = duration_pb2.Duration()
    duration.FromMilliseconds(ttl_ms)
    return field_of(_RESOURCE_TTL, duration.SerializeToString())


def _unresolved(name: str) -> bytes:
    """The bytes of a Resource without content that says of a name that it is an alias of nothing (protocol.md E2)."""
    return text_field(_RESOURCE_NAME, name) + text_field(_RESOURCE_ALIASES, name)


def _error_entry(error: ResourceError) -> bytes:
    """The bytes of one ResourceError. Its `details` have the XDS code in a form that programs can read, and nothing
    that the text does not have.
    """
    before, after = _status(int(error.code), error.xds_code)
    status = b"".join((before, text_field(_STATUS_MESSAGE, error.text), after))
    return field_of(_ERROR_RESOURCE_NAME, text_field(_RESOURCE_NAME_NAME, error.name)) + field_of(_ERROR_DETAIL, status)


@lru_cache(maxsize=64)
def _status(code: int, xds_code: str) -> tuple[bytes, bytes]:
    """The bytes of a google.rpc.Status that stand before its message, and those that stand behind it."""
    status = status_pb2.Status()
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=xds_code, domain=ERROR_DOMAIN))
    after: bytes = status.SerializeToString(deterministic=True)
    before: bytes = status_pb2.Status(code=code).SerializeToString()
    return before, after
