"""What the engine and its callers talk about: statuses, features of a server, the state of a cached resource."""

from dataclasses import dataclass
from enum import Enum, IntEnum

from xdscore.resource_types import ResourceType


class StatusCode(IntEnum):
    """The codes of gRPC statuses (google.rpc.Code)."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


# TP3, "Protocol Behavior": these two are data errors, every other code is transient.
_DATA_ERRORS = frozenset({StatusCode.NOT_FOUND, StatusCode.PERMISSION_DENIED})


@dataclass(frozen=True, slots=True)
class Status:
    """A google.rpc.Status. `code` may be a number that no Code has: servers may send one (TP3: it is transient)."""

    code: int
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether the status is no error."""
        return self.code == StatusCode.OK

    @property
    def is_data_error(self) -> bool:
        """Whether the status is a data error, for which a client may drop a resource it has (TP3, "Protocol Behavior";
        A88, "xDS Error Handling"). Otherwise the error is transient.
        """
        return self.code in _DATA_ERRORS

    def __str__(self) -> str:
        word = StatusCode(self.code).name if self.code in set(StatusCode) else str(self.code)
        return f"{word}: {self.message}" if self.message else word


OK = Status(StatusCode.OK)


class Absent(Enum):
    """The marker for "nothing": no resource is cached, or nothing was told yet."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


class ServerFeature(Enum):
    """The server features of a bootstrap, spelled as implementations read them (decisions C38)."""

    FAIL_ON_DATA_ERRORS = "fail_on_data_errors"
    RESOURCE_TIMER_IS_TRANSIENT_ERROR = "resource_timer_is_transient_error"
    TRUSTED_XDS_SERVER = "trusted_xds_server"
    # Deprecated by A88; means something only where A88 is switched off (A53).
    IGNORE_RESOURCE_DELETION = "ignore_resource_deletion"


class CacheState(Enum):
    """The six states of a cache entry (A88, "Cache Entry States"); the numbers are those of ClientResourceStatus."""

    REQUESTED = 1
    DOES_NOT_EXIST = 2
    ACKED = 3
    NACKED = 4
    RECEIVED_ERROR = 5
    TIMEOUT = 6


# A78, `grpc.xds.cache_state`, with the values A88 adds: (without, with) a cached resource.
_LABELS = {
    CacheState.REQUESTED: ("requested", "requested"),
    CacheState.DOES_NOT_EXIST: ("does_not_exist", "does_not_exist_but_cached"),
    CacheState.ACKED: ("acked", "acked"),
    CacheState.NACKED: ("nacked", "nacked_but_cached"),
    CacheState.RECEIVED_ERROR: ("received_error", "received_error_but_cached"),
    CacheState.TIMEOUT: ("timeout", "timeout"),
}


def cache_state_label(state: CacheState, *, cached: bool) -> str:
    """The value of the metric label `grpc.xds.cache_state` (A78, A88) for an entry in this state; `cached`: whether it
    has a resource.
    """
    return _LABELS[state][cached]


@dataclass(frozen=True, slots=True)
class Resource:
    """One accepted version of a resource. `value` is what watchers get; `raw` its serialised message, and equal bytes
    are the same content.

    `server` is the index of the server it came from in the list: a version means something only to that server.
    """

    version: str
    value: object
    raw: bytes
    server: int


@dataclass(frozen=True, slots=True)
class ResourceKey:
    """The identity of a resource: its type and its name, exactly as asked for."""

    kind: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One resource as the client knows it, at one moment.

    resource: the version in use, if any.
    error: the most recent error; OK where there is none.
    error_version: the version of the response that brought the error; empty where no response did.
    rejected: the bytes that the client refused last; empty where it refused none.
    updated_s: when the state was reached, in seconds on the caller's clock.
    """

    key: ResourceKey
    state: CacheState
    resource: Resource | Absent
    error: Status
    error_version: str
    rejected: bytes
    updated_s: float

    @property
    def label(self) -> str:
        """The value of the metric label `grpc.xds.cache_state` for this entry."""
        return cache_state_label(self.state, cached=isinstance(self.resource, Resource))
