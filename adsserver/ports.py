"""What the streams need from the rest of the world, as types: a directory of snapshots, content bytes, a place for
facts; and what the status service reads back of them.

`store` implements these against the database; tests implement them in memory.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Protocol

from adsserver.engine.events import Fact, Respond, Variant
from adsserver.engine.holdings import Holdings
from xdscore.environment_choice import EnvironmentChoice
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content, Snapshot

MOVED_CAUSE: Final = "This client belongs to another environment now, or under another node id; reconnect."
"""The cause, for whoever is told that a stream ended, of the end of one whose client must come back elsewhere."""


@dataclass(frozen=True, slots=True)
class ClientToken:
    """A bearer token of data planes: the identity that it proves (`subject`), the only environment it is good for
    (empty: any), and the Unix time at which it ends (infinite: never).
    """

    subject: str
    environment: str = ""
    expires_at: float = math.inf


@dataclass(frozen=True, slots=True)
class Directory:
    """Everything needed to answer streams at one moment.

    environments: in the order in which a client's is chosen.
    snapshots: the newest verified one of each environment, by key. An environment without one was never built, or
      nothing of it could be verified.
    tokens: those of data planes, by the SHA-256 of their text.
    api_tokens: those of operators, by the same hash, with the Unix time at which each ends; None: not read yet.
    """

    environments: tuple[EnvironmentChoice, ...] = ()
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    tokens: Mapping[str, ClientToken] = field(default_factory=dict)
    api_tokens: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What is known of a stream from its first request on, and never changes. `id` is unique among all ADS processes;
    `identity` is empty when nothing is verified; `peer` is the address. `polls`: it is no stream on the wire, but a
    subscription of a client that asks again and again.
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
    polls: bool = False


class Contents(Protocol):
    """A source of the bytes of contents."""

    def any_bytes(self, content: Content) -> bytes:
        """The serialised google.protobuf.Any of this content. A secret is decrypted at this moment, and its plain bytes
        are not kept.
        """
        ...


class ContentKeeper(Contents, Protocol):
    """The bytes of contents, which are kept as long as a snapshot in use has them, or a stream needs them."""

    def hold(self, addresses: frozenset[bytes]) -> None:
        """Keep the contents at these addresses, those that are here, even when no snapshot has them any more; the call
        before is forgotten. A stream may be sent again what it acknowledged (protocol.md F17, F17a).
        """
        ...


class Facts(Protocol):
    """A receiver of facts about streams, which are written to the database later. Every call returns at once and never
    raises: streams do not wait for a database.
    """

    def opened(self, stream: StreamInfo) -> None:
        """Note that a stream received its first request."""
        ...

    def sent(self, stream: StreamInfo, response: Respond) -> None:
        """Note that a response was handed to the transport."""
        ...

    def learnt(self, stream: StreamInfo, fact: Fact, holdings: Holdings | None = None) -> None:
        """Note what a request meant, as the engine found: an ACK, a NACK, another subscription. `holdings`: what the
        client has of the type since then, where it said something of it.
        """
        ...

    def holds(self, stream: StreamInfo, kind: ResourceType, holdings: Holdings) -> None:
        """Note what the client has of a type, where that changed without a word of the client."""
        ...

    def closed(self, stream: StreamInfo, cause: str) -> None:
        """Note that the stream ended; `cause` is a sentence for an operator."""
        ...

    def awaited(self, stream: StreamInfo) -> None:
        """Note that a rollout's judge waits for what was just noted of this stream, because its client is on the
        candidate side: it is written within 50 ms, and the judge is told (rollouts.md R3).
        """
        ...


@dataclass(frozen=True, slots=True)
class Reader:
    """An operator or program that may read the status of the clients of these environments, and of no others."""

    name: str
    environments: frozenset[str]


@dataclass(frozen=True, slots=True)
class FleetClient:
    """A client that is connected to any of the ADS processes. `id` is its id in the REST API, `environment` the key of
    its environment.
    """

    id: str
    environment: str
    identity: str
    node_id: str
    node_cluster: str
    user_agent: str
    user_agent_version: str


class SyncState(Enum):
    """Whether a client has the published content of a resource (envoy.service.status.v3.ConfigStatus)."""

    SYNCED = "synced"  # what is published was sent and acknowledged
    NOT_SENT = "not_sent"
    STALE = "stale"  # sent, not answered
    ERROR = "error"  # sent and rejected
    UNKNOWN = "unknown"  # the facts do not say


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The status of one resource of one client.

    version: that of the content that the client has (SYNCED), was sent (STALE), refused (ERROR), may have (UNKNOWN) or,
      because it is published, is to be sent (NOT_SENT); empty where there is none. In SotW it is that of the response,
      for there contents have none on the wire.
    config: the same content as a serialised Any without secrets; empty also where it is not published or was not asked
      for.
    details: why the client does not have the content; empty where nothing is known.
    updated_at: the time of the response or request that the state follows from.
    """

    kind: ResourceType
    name: str
    state: SyncState
    version: str = ""
    config: bytes = b""
    details: str = ""
    updated_at: datetime | None = None


class FleetUnavailableError(Exception):
    """The status of the clients cannot be read now. The text is sent to the caller (UNAVAILABLE)."""


class FleetStatus(Protocol):
    """The status of the clients of all ADS processes, at most two seconds old (decisions U16).

    All methods but `knows` wait for the database: call them from a thread, never on the event loop, and one at a time.
    Each raises FleetUnavailableError.
    """

    def knows(self, token: str) -> bool:
        """Whether there was such an API token when the tokens were last read, some two seconds ago at most. Answers at
        once, from memory, on any thread. Whether the token is still valid, and for which environments, is said by
        `reader`.
        """
        ...

    def reader(self, token: str) -> Reader | None:
        """The reader that this API token stands for; None when the token is unknown, expired or revoked."""
        ...

    def clients(self) -> Sequence[FleetClient]:
        """Every connected client, in the order of environments and node ids."""
        ...

    def resources(
        self, clients: Sequence[FleetClient], *, contents: bool
    ) -> Iterator[tuple[FleetClient, tuple[ResourceStatus, ...]]]:
        """Each of these clients with its resources, in the order of types and names; without `contents`, `config` is
        empty.
        """
        ...
