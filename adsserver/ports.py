"""What the streams need from the rest of the world, as types: a directory of snapshots, content bytes, a place for
facts; and what the status service reads back of them.

`store` implements these against the database; tests implement them in memory.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Protocol

from adsserver.engine.events import Fact, Respond, Variant
from xdscore.environment_choice import EnvironmentChoice
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content, Snapshot


@dataclass(frozen=True, slots=True)
class ClientToken:
    """A bearer token of data planes: whom it names, the only environment it is good for (empty: any), and the Unix time
    at which it ends (infinite: never).
    """

    subject: str
    environment: str = ""
    expires_at: float = math.inf


@dataclass(frozen=True, slots=True)
class Directory:
    """Everything needed to answer streams at one moment: environments in order, the newest verified snapshot of each,
    and the tokens of data planes by the SHA-256 of their text.

    An environment without an entry in `snapshots` was never built, or nothing of it could be verified. `api_tokens` are
    those of operators, by the same hash, with the Unix time at which each ends; None: they were not read yet.
    """

    environments: tuple[EnvironmentChoice, ...] = ()
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    tokens: Mapping[str, ClientToken] = field(default_factory=dict)
    api_tokens: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """The identity of a stream, fixed at its first request. `id` is unique among all replicas; `identity` is empty when
    nothing is verified.
    """

    id: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    user_agent: str
    user_agent_version: str
    variant: Variant
    peer: str


class Contents(Protocol):
    """The bytes of contents, by address."""

    def any_bytes(self, content: Content) -> bytes:
        """The serialised google.protobuf.Any of this content; a secret's is decrypted here, at send time, and never
        kept.
        """
        ...


class ContentKeeper(Contents, Protocol):
    """The bytes of contents, which come and go with the snapshots that hold them."""

    def hold(self, addresses: frozenset[bytes]) -> None:
        """Keep these contents from now on, as far as they are here, also when no snapshot has them any more: a stream
        may be sent again what it acknowledged (protocol.md F17, F17a).
        """
        ...


class Facts(Protocol):
    """A receiver of facts about streams. Every call returns at once and never raises: the stream path does not wait for
    a database.
    """

    def opened(self, stream: StreamInfo) -> None:
        """Note that a stream received its first request."""
        ...

    def sent(self, stream: StreamInfo, response: Respond) -> None:
        """Note that a response was handed to the transport."""
        ...

    def learnt(self, stream: StreamInfo, fact: Fact) -> None:
        """Note what the engine learnt from a request."""
        ...

    def closed(self, stream: StreamInfo, cause: str) -> None:
        """Note that the stream ended, with the reason as an operator reads it."""
        ...


@dataclass(frozen=True, slots=True)
class Reader:
    """Someone who may read the status of the clients of these environments, and of no others."""

    name: str
    environments: frozenset[str]


@dataclass(frozen=True, slots=True)
class FleetClient:
    """A client that is connected to any server of the fleet. `id` is its public id, `environment` the key of its
    environment.
    """

    id: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    user_agent: str
    user_agent_version: str


class SyncState(Enum):
    """Where a client stands with the published content of a resource (envoy.service.status.v3.ConfigStatus)."""

    SYNCED = "synced"  # sent and acknowledged
    NOT_SENT = "not_sent"
    STALE = "stale"  # sent, not answered
    ERROR = "error"  # sent and rejected
    UNKNOWN = "unknown"  # the facts do not say


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The status of one resource of one client. `details` says why it is not in sync, as far as anything is known.

    `version` and `config` (a serialised Any without secrets) are those of the content that is published, and in state
    ERROR of the rejected one, which is the same. Both are empty where nothing is published; `config` also where it was
    not asked for. `updated_at` is the time of the response or request on which the state rests.
    """

    kind: ResourceType
    name: str
    state: SyncState
    version: str = ""
    config: bytes = b""
    details: str = ""
    updated_at: datetime | None = None


class FleetUnavailableError(Exception):
    """The status of the fleet cannot be read now. The text is sent (UNAVAILABLE)."""


class FleetStatus(Protocol):
    """The status of the clients of all servers, at most two seconds old (decisions U16).

    Calls but `knows` wait for the database: they are made from a thread, never on the event loop, and one at a time.
    Each raises FleetUnavailableError.
    """

    def knows(self, token: str) -> bool:
        """Whether there was such an API token when the tokens were last read, some two seconds ago at most. At once,
        from memory, on any thread; whether it still is good, and for what, is said by `reader`.
        """
        ...

    def reader(self, token: str) -> Reader | None:
        """The reader for whom this API token speaks; None when it is unknown, expired or revoked."""
        ...

    def clients(self) -> Sequence[FleetClient]:
        """Every connected client, by environment and node id."""
        ...

    def resources(
        self, clients: Sequence[FleetClient], *, contents: bool
    ) -> Iterator[tuple[FleetClient, tuple[ResourceStatus, ...]]]:
        """The resources of each of these clients, by type and name; without `contents`, only their status."""
        ...
