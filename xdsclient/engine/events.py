"""What goes into the engine and what comes out of it: values only.

Decoding is the shell's: a response arrives with each of its resources either valid or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from xdsclient.engine.values import Resource, Status
from xdscore.resource_types import ResourceType


class Variant(Enum):
    """The two transport variants of xDS: state of the world and incremental."""

    SOTW = "sotw"
    DELTA = "delta"


# Requests, as `Engine.request` gives them.


@dataclass(frozen=True, slots=True)
class Nack:
    """A request's `error_detail`: its presence, and nothing else, makes a NACK (protocol.md B2)."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class SotwRequest:
    """A DiscoveryRequest. `names` is the full list. `version` is the last one that the client accepted from this
    server. `nack`: None in an ACK and in a request that only changes names.
    """

    kind: ResourceType
    names: tuple[str, ...]
    nonce: str = ""
    version: str = ""
    nack: Nack | None = None


@dataclass(frozen=True, slots=True)
class DeltaRequest:
    """A DeltaDiscoveryRequest. `initial_versions`: the versions of what the client has, by name, in the first request
    of a stream. `nack`: None in an ACK and in a request that only changes names.
    """

    kind: ResourceType
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    initial_versions: Mapping[str, str] = field(default_factory=dict)
    nonce: str = ""
    nack: Nack | None = None


Request = SotwRequest | DeltaRequest


# Parts of a response.


@dataclass(frozen=True, slots=True)
class Valid:
    """A resource that can be used. `version`: the resource's own in delta, the response's in SotW. `raw`: its
    serialised message. `ttl_s`: for how many seconds it may be kept; 0: for ever (protocol.md G1).
    """

    name: str
    version: str
    value: object
    raw: bytes
    ttl_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Invalid:
    """A resource that cannot be used; `text` says why. `name` is empty when it could not be read."""

    name: str
    version: str
    text: str
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A resource without content: the one of this version may be kept for `ttl_s` seconds from now on, for ever if that
    is 0 (protocol.md G2).
    """

    name: str
    version: str = ""
    ttl_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ReportedError:
    """One entry of a response's `resource_errors`, as it came. An empty name or an OK status makes it malformed."""

    name: str
    status: Status


# Events.


@dataclass(frozen=True, slots=True)
class WatchStarted:
    """The client begins a watch: of a resource or, when `name` is that of a collection, of its members.

    `watch` is a number never used before; `name` is canonical (protocol.md H1).
    """

    watch: int
    kind: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class WatchStopped:
    """The client ended a watch; it must be told nothing more."""

    watch: int


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The stream that `Connect` asked for exists: requests can be written."""


@dataclass(frozen=True, slots=True)
class RequestWritten:
    """A request left the client: the timers that wait for the names in it start now (A57)."""

    request: Request


@dataclass(frozen=True, slots=True)
class Response:
    """A DiscoveryResponse or DeltaDiscoveryResponse, with each resource read. `removed`: names that the server removed,
    in delta only.
    """

    type_url: str
    version: str
    nonce: str
    resources: tuple[Valid | Invalid | Heartbeat, ...] = ()
    errors: tuple[ReportedError, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamClosed:
    """The stream ended with this status."""

    status: Status


@dataclass(frozen=True, slots=True)
class ChannelFailed:
    """The channel to the server reports TRANSIENT_FAILURE. When no stream was opened yet, the attempt to open one is
    over; an open stream goes on until `StreamClosed`.
    """

    status: Status


@dataclass(frozen=True, slots=True)
class Tick:
    """The time that `Engine.deadline` returned is reached."""


Event = WatchStarted | WatchStopped | StreamOpened | RequestWritten | Response | StreamClosed | ChannelFailed | Tick


# Effects.


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a stream to the server with this index in the list, after `after_s` seconds.

    Vary the wait at random: clients that lost one server together should not come back together.
    """

    server: int
    after_s: float


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End the stream, or the attempt to open one: nobody watches anything."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """Tell a watch a new version of a resource, or a Status: there is no resource, and the watcher must stop using what
    it had.

    `name` is what the watch is for or, for the watch of a collection, a member. Under the collection's own name the
    news is of the collection as a whole: a Resource without content says that the server answered.
    """

    watch: int
    name: str
    news: Resource | Status


@dataclass(frozen=True, slots=True)
class Ambient:
    """Tell a watch of an error that leaves the resource of this name in use; a status that is OK ends the last one."""

    watch: int
    name: str
    error: Status


@dataclass(frozen=True, slots=True)
class Gone:
    """Tell the watch of a collection that a resource is no member any more and must not be used as one."""

    watch: int
    name: str
    reason: Status


@dataclass(frozen=True, slots=True)
class Updates:
    """The numbers of valid and invalid resources in a response, for metrics (A78)."""

    kind: ResourceType
    valid: int
    invalid: int


@dataclass(frozen=True, slots=True)
class Connectivity:
    """The client gained (`up`) or lost a working stream to the server with this index (A78,
    `grpc.xds_client.connected`).
    """

    server: int
    up: bool


@dataclass(frozen=True, slots=True)
class Violated:
    """The server broke a rule of the protocol, such as "B7"; the message that broke it had no other effect."""

    rule: str
    detail: str


News = Deliver | Ambient | Gone
Effect = Connect | Disconnect | News | Updates | Connectivity | Violated
