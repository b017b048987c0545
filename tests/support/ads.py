"""An ADS server over real gRPC with an in-memory store behind `adsserver.ports`, for tests."""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from adsserver.config import AdsConfig, TlsFiles
from adsserver.engine.events import Fact, Respond, Violated
from adsserver.engine.holdings import Holdings
from adsserver.metrics import Metrics
from adsserver.ports import ClientToken, Directory, StreamInfo
from adsserver.running.server import AdsServer
from controlplane.accounts.token_text import client_token_text, token_digest
from tests.support.access_tables import EVERYTHING_FOR_ALL
from tests.support.ads_fleet import MemoryFleet
from xdscore.access import AccessTable
from xdscore.auth_modes import AuthMode
from xdscore.environment_choice import EnvironmentChoice
from xdscore.resource_types import ResourceType, by_url
from xdscore.sides import RolloutTable
from xdscore.snapshot import (
    Content,
    Served,
    Snapshot,
    UnreadableName,
    WithheldName,
    content_hash,
    content_version,
    snapshot_from_entries,
    with_candidate,
)


class MemoryContents:
    """The bytes of contents by address; counts how often a content was asked for."""

    def __init__(self) -> None:
        self.blobs: dict[bytes, bytes] = {}
        self.asked: dict[bytes, int] = {}
        self.held: frozenset[bytes] = frozenset()

    def add(self, message: Message) -> Content:
        """Store a resource's bytes; its content. Bytes that cannot be read, which no message can hold, and what has a
        ttl come in a `Resource`.
        """
        packed, ttl_ms = AnyMessage(), 0
        if isinstance(message, discovery_pb2.Resource):
            packed, ttl_ms = message.resource, message.ttl.ToMilliseconds()
        else:
            packed.Pack(message, deterministic=True)
        data = packed.SerializeToString(deterministic=True)
        address = content_hash(data)
        self.blobs[address] = data
        eds_name = ""
        if isinstance(message, cluster_pb2.Cluster):
            eds_name = message.eds_cluster_config.service_name or message.name
        return Content(address, content_version(address, ttl_ms), len(data), eds_name)

    def any_bytes(self, content: Content) -> bytes:
        self.asked[content.blob] = self.asked.get(content.blob, 0) + 1
        return self.blobs[content.blob]

    def hold(self, addresses: frozenset[bytes]) -> None:
        self.held = addresses


@dataclass
class MemoryFacts:
    """Keeps every call of the fact interface, in order."""

    opened_streams: list[StreamInfo] = field(default_factory=list)
    responses: list[tuple[StreamInfo, Respond]] = field(default_factory=list)
    learnt_facts: list[tuple[StreamInfo, Fact]] = field(default_factory=list)
    holdings: dict[tuple[str, str], Holdings] = field(default_factory=dict)
    closed_streams: list[tuple[StreamInfo, str]] = field(default_factory=list)
    awaited_streams: list[StreamInfo] = field(default_factory=list)

    def opened(self, stream: StreamInfo) -> None:
        self.opened_streams.append(stream)

    def sent(self, stream: StreamInfo, response: Respond) -> None:
        self.responses.append((stream, response))

    def learnt(self, stream: StreamInfo, fact: Fact, holdings: Holdings | None = None) -> None:
        self.learnt_facts.append((stream, fact))
        if holdings is not None and not isinstance(fact, Violated):
            self.holds(stream, fact.kind, holdings)

    def holds(self, stream: StreamInfo, kind: ResourceType, holdings: Holdings) -> None:
        self.holdings[stream.id, kind.word] = holdings

    def closed(self, stream: StreamInfo, cause: str) -> None:
        self.closed_streams.append((stream, cause))

    def awaited(self, stream: StreamInfo) -> None:
        self.awaited_streams.append(stream)


class Catalogue:
    """The resources that a test publishes by name, in one environment or several."""

    def __init__(self, contents: MemoryContents) -> None:
        self.contents = contents
        self.environments: tuple[EnvironmentChoice, ...] = (EnvironmentChoice("default", ()),)
        self.tokens: dict[str, ClientToken] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._epoch = 0

    def publish(
        self,
        *messages: Message,
        environment: str = "default",
        withheld: Mapping[tuple[ResourceType, str], str] | None = None,
        unreadable: Mapping[tuple[ResourceType, str], str] | None = None,
        proven: Sequence[Message] = (),
        access: AccessTable | None = None,
    ) -> Directory:
        """Publish exactly these resources in the environment; the directory then. `proven` are contents that some
        client acknowledged, for those of their names.
        """
        self._epoch += 1
        acknowledged = {name_of(message): self.contents.add(message) for message in proven}
        named = [(name_of(message), self.contents.add(message)) for message in messages]
        entries = [(name, Served(content, acknowledged.get(name))) for name, content in named]
        held = [((kind.word, name), WithheldName(reason)) for (kind, name), reason in (withheld or {}).items()]
        unread = [((kind.word, name), UnreadableName(reason)) for (kind, name), reason in (unreadable or {}).items()]
        self._snapshots[environment] = snapshot_from_entries(
            environment=environment,
            lineage="test",
            epoch=self._epoch,
            access=access or EVERYTHING_FOR_ALL,
            entries=[*entries, *held, *unread],
        )
        return self.directory()

    def roll(self, table: RolloutTable, *messages: Message) -> Directory:
        """Open a rollout of these resources in the default environment, or go on with it; the directory then."""
        self._epoch += 1
        staged = {name_of(message): Served(self.contents.add(message)) for message in messages}
        stable = replace(self._snapshots["default"], epoch=self._epoch, rollout=None, candidate=None)
        self._snapshots["default"] = with_candidate(stable, table, staged)
        return self.directory()

    def directory(self) -> Directory:
        """The directory of everything that is published now."""
        return Directory(self.environments, dict(self._snapshots), dict(self.tokens))

    def issue(self, subject: str, *, environment: str = "", expires_at: float = math.inf) -> str:
        """Make a token of a data plane, which is good as of the next directory; its text."""
        text = client_token_text(expires_at=None)
        self.tokens[token_digest(text)] = ClientToken(subject, environment, expires_at)
        return text


def name_of(message: Message) -> tuple[str, str]:
    """The type word and resource name of a message."""
    if isinstance(message, discovery_pb2.Resource):
        return by_url[message.resource.type_url].word, message.name
    kind = by_url["type.googleapis.com/" + message.DESCRIPTOR.full_name]
    return kind.word, str(getattr(message, kind.name_field))


def raw_call(channel: grpc.aio.Channel, method: str, **options: Any) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
    """Open a stream that sends and receives bytes; grpc-stubs ask for serialisers that gRPC does not need."""
    untyped: Any = channel
    call: grpc.aio.StreamStreamCall[bytes, bytes] = untyped.stream_stream(method)(**options)
    return call


@dataclass
class Running:
    """A running ADS server with everything behind it."""

    server: AdsServer
    address: str
    facts: MemoryFacts
    fleet: MemoryFleet
    catalogue: Catalogue
    registry: CollectorRegistry
    rest_port: int = 0

    def publish(self, *messages: Message, environment: str = "default") -> None:
        """Publish exactly these resources in the environment and hand the directory to the server."""
        self.server.directory_changed(self.catalogue.publish(*messages, environment=environment))

    def sample(self, name: str, **labels: str) -> float:
        """The value of a metric, 0 when it was never counted."""
        return self.registry.get_sample_value(name, labels) or 0.0


def config(**changes: object) -> AdsConfig:
    """A configuration of ADS on free ports of the loopback address, with these fields changed."""
    plain = AdsConfig(
        address="127.0.0.1:0",
        metrics_address="127.0.0.1:0",
        home=Path("unused"),
        public_url="http://parley.example",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def running(
    settings: AdsConfig | None = None, before: Running | None = None, facts: MemoryFacts | None = None
) -> AsyncIterator[Running]:
    """Run an ADS server on a free port, without any directory yet, until the block ends. `before`: the new server gets
    the facts and publications of this one, which has stopped.
    """
    catalogue = before.catalogue if before is not None else Catalogue(MemoryContents())
    facts = before.facts if before is not None else facts or MemoryFacts()
    fleet, registry = MemoryFleet(), CollectorRegistry()
    server = AdsServer(settings or config(), catalogue.contents, facts, fleet, Metrics(registry))
    port = server.bind()
    rest_port = server.bind_rest() or 0
    await server.start()
    try:
        yield Running(server, f"127.0.0.1:{port}", facts, fleet, catalogue, registry, rest_port)
    finally:
        await server.stop(spread_s=0, limit_s=1)


@asynccontextmanager
async def running_mtls(files: TlsFiles) -> AsyncIterator[Running]:
    """A server with an empty directory that serves clients of the trust domain `td.example`, by their certificates."""
    async with running(mtls(files)) as started:
        started.publish()
        yield started


def mtls(files: TlsFiles) -> AdsConfig:
    return config(auth=AuthMode.MTLS, tls=files, trust_domains=frozenset({"td.example"}))
