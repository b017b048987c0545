"""Builders of what streams report, with defaults, and a database that takes it in memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from adsserver.engine.events import Acknowledged, Nack, NamedContent, Rejected, Respond, Subscribed, Variant
from adsserver.ports import StreamInfo
from adsserver.store.facts import FactBuffer
from controlplane.clients.facts import FactBatch, SubscriptionState
from xdscore.evidence import Evidence
from xdscore.resource_types import CLUSTER, ResourceType
from xdscore.snapshot import Content


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Database:
    """Takes batches of facts in memory; fails on demand."""

    batches: list[FactBatch] = field(default_factory=list)
    failure: Exception | None = None
    tried: int = 0

    def __call__(self, batch: FactBatch) -> None:
        self.tried += 1
        if self.failure is not None:
            raise self.failure
        self.batches.append(batch)

    @property
    def all_subscriptions(self) -> dict[tuple[str, str], SubscriptionState]:
        return {
            (each.stream, each.says.word): each.says.state for batch in self.batches for each in batch.subscriptions
        }


class NothingSecret:
    """The contents behind a `FactBuffer` in tests that make them up: all of them are there, and none holds a secret."""

    def missing(self, addresses: Iterable[bytes]) -> frozenset[bytes]:  # noqa: ARG002 - as ContentMemory has it
        return frozenset()

    def sealed(self, addresses: Iterable[bytes]) -> frozenset[bytes]:  # noqa: ARG002
        return frozenset()

    def any_bytes(self, content: Content) -> bytes:
        raise KeyError(content.blob)


def stream(
    number: int = 1, *, node_id: str = "", identity: str = "", environment: str = "default", **more: str
) -> StreamInfo:
    """A stream of a new client, unless `node_id` says whose."""
    return StreamInfo(
        id=f"{number:032x}",
        environment=environment,
        identity=identity,
        node_id=node_id or f"node-{number}",
        node_cluster=more.get("node_cluster", "demo"),
        user_agent=more.get("user_agent", "envoy"),
        user_agent_version=more.get("user_agent_version", "1.40.0"),
        variant=Variant.SOTW,
        peer="ipv4:127.0.0.1:40000",
    )


def content(name: str, version: str = "v1") -> NamedContent:
    """A resource with content, as a response holds it."""
    return NamedContent(name, Content(blake2b(f"{name}{version}".encode(), digest_size=16).digest(), version, 10))


def subscribed(*names: str, kind: ResourceType = CLUSTER, wildcard: bool = False) -> Subscribed:
    """The fact that a client subscribed to these names."""
    return Subscribed(kind, wildcard, frozenset(names))


def respond(*resources: NamedContent, kind: ResourceType = CLUSTER, nonce: str = "1", version: str = "w1") -> Respond:
    """A response that holds these resources."""
    return Respond(kind, nonce, version, resources)


def acknowledged(response: Respond) -> Acknowledged:
    """The fact that a client acknowledged this response."""
    return Acknowledged(response.kind, response.nonce, response.version, response.resources, response.errors, ())


def probed(response: Respond) -> Acknowledged:
    """The fact that a client acknowledged this response with content that is withheld from others, and that it was let
    try.
    """
    return replace(acknowledged(response), probed=response.resources)


def rejected(response: Respond, message: str = "no", *, suspects: tuple[NamedContent, ...] | None = None) -> Rejected:
    """The fact that a client refused this response; everything in it is a suspect, and was new to the client, unless
    said otherwise.
    """
    blamed = response.resources if suspects is None else suspects
    evidence = Evidence.ONLY_CHANGE if len(blamed) == 1 else Evidence.TEXT
    nack = Nack(13, message)
    return Rejected(response.kind, response.nonce, response.version, nack, response.resources, blamed, evidence)


def send(buffer: FactBuffer, response: Respond, *streams: StreamInfo) -> None:
    """Streams that open and are sent this."""
    for each in streams:
        buffer.opened(each)
        buffer.sent(each, response)


def flush(buffer: FactBuffer) -> None:
    """What the buffer's thread does in a turn."""
    buffer._take()
    buffer._flush()
