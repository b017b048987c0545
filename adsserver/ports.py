"""What the streams need from the rest of the world, as types: a directory of snapshots, content bytes, a place for
facts.

`store` implements these against the database; tests implement them in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from adsserver.engine.events import Fact, Respond, Variant
from xdscore.selectors import EnvironmentChoice
from xdscore.snapshot import Content, Snapshot


@dataclass(frozen=True, slots=True)
class Directory:
    """Everything needed to answer streams at one moment: environments in order, and the newest verified snapshot of
    each.

    An environment without an entry in `snapshots` was never built, or nothing of it could be verified.
    """

    environments: tuple[EnvironmentChoice, ...] = ()
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """Who a stream is, fixed at its first request. `id` is unique among all replicas; `identity` is empty when nothing
    is verified.
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
    """Content bytes by address."""

    def any_bytes(self, content: Content) -> bytes:
        """The serialised google.protobuf.Any of this content; a secret's is decrypted here, at send time, and never
        kept.
        """
        ...


class Facts(Protocol):
    """Where facts go. Every call returns at once and never raises: the stream path does not wait for a database."""

    def opened(self, stream: StreamInfo) -> None:
        """A stream got its first request."""
        ...

    def sent(self, stream: StreamInfo, response: Respond) -> None:
        """A response was handed to the transport."""
        ...

    def learnt(self, stream: StreamInfo, fact: Fact) -> None:
        """The engine learnt something from a request."""
        ...

    def closed(self, stream: StreamInfo, cause: str) -> None:
        """The stream ended, with the reason as an operator reads it."""
        ...
