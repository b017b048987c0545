"""Two environments that know nothing of each other, over gRPC: every method that the server has registered, asked by
everybody of one environment for everything of the other (reliability S3, threats 2, 5, 6 and 7).

Each question is asked in two worlds. In one the other environment is full, and changes while streams are open; in the
other it was never there. Whoever belongs to the first environment must get the same bytes in both. What is asked, and
how an answer is read, goes by the request's type as the service descriptors have it: a new method is asked like its
kind, and one of a kind that is not known here fails.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.service.discovery.v3 import discovery_pb2
from envoy.service.status.v3 import csds_pb2
from google.protobuf import descriptor_pool, json_format
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from prometheus_client import generate_latest

from adsserver.config import TlsFiles
from adsserver.ports import FleetClient, Reader, ResourceStatus, SyncState
from tests.services.ads.test_methods import kind_served_by, named
from tests.support.ads import Running, config, raw_call, running
from tests.support.ads_client import Client
from tests.support.certificates import Authority, server_files
from xdscore.access import AccessTable, Effect, Rule
from xdscore.auth_modes import AuthMode
from xdscore.client_groups import ClientGroup
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, RESOURCE_TYPES, ResourceType

OURS, THEIRS = "ours", "theirs"
# In everything of theirs that no question names.
CANARY = "kanari"
# Names that somebody of ours may have guessed.
THEIR_NAME, SHARED, FENCE = "their-plan", "shared", "fence"
THEIR_GLOB = f"xdstp://{THEIRS}/envoy.config.cluster.v3.Cluster/*"
THEIR_NODE = "their-edge"
PAY = f"spiffe://td.example/{OURS}/pay"
MODES = (AuthMode.TOKEN, AuthMode.MTLS)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("a")


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> TlsFiles:
    return server_files(tmp_path, authority, "ads.example")


@dataclass(frozen=True)
class World:
    """A server with our environment and, where `full`, theirs; and the channels of those who ask."""

    run: Running
    full: bool
    askers: dict[str, tuple[grpc.aio.Channel, list[tuple[str, str]]]]

    def change_theirs(self) -> None:
        """What happens in the other environment while somebody of ours listens; nothing where there is none."""
        if not self.full:
            return
        catalogue = self.run.catalogue
        for directory in (
            catalogue.publish(*theirs(2), environment=THEIRS, access=their_rules(Effect.HIDE)),
            catalogue.publish(*theirs(3)[1:], environment=THEIRS),
            catalogue.publish(environment=THEIRS, withheld={(CLUSTER, THEIR_NAME): CANARY}),
        ):
            self.run.server.directory_changed(directory)

    def change_ours(self) -> None:
        """One more resource of each type, for which every stream of ours waits."""
        self.run.publish(*ours(), *(named(kind, FENCE) for kind in RESOURCE_TYPES), environment=OURS)


def ours() -> list[Message]:
    return [named(kind, SHARED) for kind in RESOURCE_TYPES]


def theirs(revision: int) -> list[Message]:
    found = [named(kind, name) for kind in RESOURCE_TYPES for name in (THEIR_NAME, SHARED, f"{CANARY}-{revision}")]
    for message in found:
        if isinstance(message, CLUSTER_CLASS):
            message.alt_stat_name = f"{CANARY}-{revision}"  # type: ignore[attr-defined]
    return found


CLUSTER_CLASS = type(named(CLUSTER, SHARED))


def their_rules(effect: Effect) -> AccessTable:
    group = ClientGroup(CANARY, (Selector(identity="*"),))
    return AccessTable(Effect.ALLOW, (group,), (Rule(1, effect, "*", frozenset({CANARY}), message=CANARY),))


def status_of(environment: str, node_id: str, name: str) -> tuple[FleetClient, tuple[ResourceStatus, ...]]:
    client = FleetClient(f"id-{node_id}", environment, f"{environment}-pay", node_id, "fleet", "envoy", "1.40.0")
    return client, (ResourceStatus(CLUSTER, name, SyncState.SYNCED, "v1", b"\n\x0ctype.test/ab\x12\x01x"),)


@asynccontextmanager
async def world(mode: AuthMode, files: TlsFiles, authority: Authority, *, full: bool) -> AsyncIterator[World]:
    # Just enough room for what is ours: whatever of theirs counted would show as a refusal.
    limits = Limits(status_entries=2)
    tls = files if mode is AuthMode.MTLS else None
    settings = config(auth=mode, tls=tls, trust_domains=frozenset({"td.example"}), limits=limits)
    async with running(settings) as run, AsyncExitStack() as stack:
        choices = [EnvironmentChoice(OURS, (Selector(identity=f"*{OURS}*"),))]
        if full:
            choices.insert(0, EnvironmentChoice(THEIRS, (Selector(identity=f"*{THEIRS}*"),), ("their-*", CANARY)))
        run.catalogue.environments = tuple(choices)
        run.fleet.readers = {"reader": Reader("ada", frozenset({OURS})), "nothing": Reader("bob", frozenset())}
        run.fleet.statuses = dict([status_of(OURS, "our-edge", SHARED)])
        if full:
            more = (status_of(THEIRS, f"{THEIR_NODE}{number or ''}", CANARY) for number in range(5))
            run.fleet.statuses = dict([*more, *run.fleet.statuses.items()])
        tokens = {
            "client": run.catalogue.issue(f"{OURS}-pay"),
            "client of one environment": run.catalogue.issue(f"{OURS}-pay", environment=OURS),
            "client of an environment it is not in": run.catalogue.issue(f"{OURS}-pay", environment=THEIRS),
            "operator": "reader",
            "operator without a role": "nothing",
            "somebody unknown": "unknown",
        }
        if full:
            for kind in (OURS, THEIRS):
                run.catalogue.issue(f"{THEIRS}-{CANARY}", environment=kind)
            run.publish(*theirs(1), environment=THEIRS)
        run.publish(*ours(), environment=OURS)
        options = [("grpc.ssl_target_name_override", "ads.example"), ("grpc.use_local_subchannel_pool", 1)]
        channel: grpc.aio.Channel
        if tls is None:
            channel = grpc.aio.insecure_channel(run.address, options=options[1:])
        else:
            credentials = grpc.ssl_channel_credentials(authority.pem(), *authority.issue(PAY))
            channel = grpc.aio.secure_channel(run.address, credentials, options=options)
        await stack.enter_async_context(channel)
        if mode is AuthMode.MTLS:
            # Who a data plane is stands in its certificate; the status asks for an operator's token all the same.
            tokens = {"operator": tokens["operator"]}
        asking = {who: (channel, [("authorization", f"Bearer {token}")]) for who, token in tokens.items()}
        if mode is AuthMode.TOKEN:
            asking["nobody"] = (channel, [])
        yield World(run, full, asking)


@dataclass(frozen=True)
class Question:
    """Somebody calls a method."""

    world: World
    path: str
    channel: grpc.aio.Channel
    metadata: list[tuple[str, str]]
    streaming: tuple[bool, bool]

    async def ask(self, *requests: Message | bytes) -> list[bytes]:
        """Everything that is said to these requests, each answered before the next is sent; then how the call ends."""
        data = [each if isinstance(each, bytes) else each.SerializeToString() for each in requests]
        untyped: Any = self.channel
        if self.streaming == (False, False):
            return [await self._one(untyped, each) for each in data]
        if self.streaming == (False, True):
            calls = [untyped.unary_stream(self.path)(each, metadata=self.metadata, timeout=10) for each in data]
            return [(await _read(call))[0] for call in calls]
        client = self.client()
        said: list[bytes] = []
        for each in data:
            await client._send(each)
            answer, ended = await _read(client.call)
            said.append(answer)
            if ended:
                return said
        client.call.cancel()
        return said

    def client(self) -> Client:
        return Client(
            raw_call(self.channel, self.path, metadata=self.metadata), self.channel, "Delta" in self.path.split("/")[2]
        )

    async def _one(self, untyped: Any, request: bytes) -> bytes:
        try:
            answer: bytes = await untyped.unary_unary(self.path)(request, metadata=self.metadata, timeout=10)
        except grpc.aio.AioRpcError as error:
            return _end(error.code(), error.details())
        return answer


async def _read(call: Any) -> tuple[bytes, bool]:
    """An answer; or how the call ended, and that it did."""
    data: object = None
    with suppress(grpc.aio.AioRpcError):
        data = await call.read()
    if isinstance(data, bytes):
        return data, False
    return _end(await call.code(), await call.details()), True


def _end(code: grpc.StatusCode, details: str | None) -> bytes:
    return f"{code.name}: {details}".encode()


async def discovery(question: Question) -> list[bytes]:
    """Streams for each type, as oneself and as somebody of theirs; theirs changes while they are open, then ours."""
    said: list[bytes] = []
    for kind in RESOURCE_TYPES if "Aggregated" in question.path else (kind_served_by(question.path),):
        listeners = [Listener(question.client(), kind, names, node) for node, names in _scripts(kind)]
        for listener in listeners:
            await listener.begin()
            if listener.refused:
                return [*said, *listener.said]
        question.world.change_theirs()
        question.world.change_ours()
        for listener in listeners:
            await listener.hear({FENCE})
            listener.client.call.cancel()
            said += listener.said
        # As it was, for the next type.
        question.world.run.publish(*ours(), environment=OURS)
    return said


def _scripts(kind: ResourceType) -> list[tuple[dict[str, Any], list[str]]]:
    names = [THEIR_NAME, SHARED, "absent", FENCE, *([THEIR_GLOB] if kind is CLUSTER else [])]
    liar = {"id": THEIR_NODE, "cluster": THEIRS, "metadata": {"environment": THEIRS}}
    return [({"id": "our-edge"}, names), (liar, ["*"] if kind.wildcard else names)]


@dataclass
class Listener:
    """One stream that asks for these names of a type, and everything it was told; in the end, how it was ended."""

    client: Client
    kind: ResourceType
    names: list[str]
    node: dict[str, Any]
    said: list[bytes] = field(default_factory=list)
    ended: bool = False

    @property
    def refused(self) -> bool:
        """Whether it ended before it was told anything."""
        return self.ended and len(self.said) == 1

    async def begin(self) -> None:
        """Ask, and hear what is said of every name."""
        names: dict[str, Any] = {"resource_names": self.names}
        expected = {SHARED} if self.names == ["*"] else set(self.names)
        if self.client.delta:
            held = {THEIR_NAME: "1", "their-past": "1"}
            names = {"resource_names_subscribe": self.names, "initial_resource_versions": held}
            if self.names == ["*"]:
                expected |= held.keys()  # that they are gone is said once the first answer is acknowledged
        await self.client.ask(type_url=self.kind.url, node=self.node, **names)
        await self.hear(expected)

    async def hear(self, wanted: set[str]) -> None:
        """Take and acknowledge what is said until each of these names was spoken of, or the stream ended."""
        while wanted and not self.ended:
            data, self.ended = await _read(self.client.call)
            self.said.append(data)
            if not self.ended:
                wanted = {name for name in wanted if name.encode() not in data}
                await self._acknowledge(data)

    async def _acknowledge(self, data: bytes) -> None:
        if self.client.delta:
            nonce = discovery_pb2.DeltaDiscoveryResponse.FromString(data).nonce
            await self.client.ask(type_url=self.kind.url, response_nonce=nonce)
        else:
            answer = discovery_pb2.DiscoveryResponse.FromString(data)
            more = {"response_nonce": answer.nonce, "version_info": answer.version_info}
            await self.client.ask(type_url=self.kind.url, resource_names=self.names, **more)


async def status(question: Question) -> list[bytes]:
    return await question.ask(
        b"",
        b"\xff\xff",
        *(
            json_format.ParseDict(each, csds_pb2.ClientStatusRequest())
            for each in (
                {"exclude_resource_contents": True},
                {"node_matchers": [{"node_id": {"exact": THEIR_NODE}}]},
                {"node_matchers": [{"node_id": {"safe_regex": {"regex": ".*"}}}]},
                {"node_matchers": [{"node_metadatas": [_parley("environment", THEIRS)]}]},
                {"node_matchers": [{"node_metadatas": [_parley("identity", f"{THEIRS}-pay")]}]},
            )
        ),
    )


def _parley(fact: str, value: str) -> dict[str, object]:
    return {"path": [{"key": "parley"}, {"key": fact}], "value": {"string_match": {"exact": value}}}


async def health(question: Question) -> list[bytes]:
    return await question.ask(*(health_pb2.HealthCheckRequest(service=name) for name in ("", THEIRS, "no.such")))


async def reflection(question: Question) -> list[bytes]:
    request = reflection_pb2.ServerReflectionRequest
    return await question.ask(
        request(list_services=""),
        request(file_containing_symbol=THEIRS),
        request(file_containing_symbol="envoy.service.discovery.v3.AggregatedDiscoveryService"),
        request(file_by_filename=f"{THEIRS}.proto"),
        request(all_extension_numbers_of_type=THEIRS),
    )


Ask = Callable[[Question], Awaitable[list[bytes]]]
KINDS: dict[str, Ask] = {
    "envoy.service.discovery.v3.DiscoveryRequest": discovery,
    "envoy.service.discovery.v3.DeltaDiscoveryRequest": discovery,
    "envoy.service.status.v3.ClientStatusRequest": status,
    "grpc.health.v1.HealthCheckRequest": health,
    "grpc.reflection.v1.ServerReflectionRequest": reflection,
    "grpc.reflection.v1alpha.ServerReflectionRequest": reflection,
}


async def everything_said(there: World) -> dict[tuple[str, str], list[bytes]]:
    """What everybody of ours is told, by method and by who asks."""
    found = {}
    for path in there.run.server.methods.methods:
        service, _, name = path.removeprefix("/").partition("/")
        method = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        ask = KINDS[method.input_type.full_name]
        shape = (bool(method.client_streaming), bool(method.server_streaming))
        for who, (channel, metadata) in there.askers.items():
            question = Question(there, path, channel, metadata, shape)
            found[path, who] = await (ask(question) if shape[0] or ask is not discovery else question.ask(b""))
    return found


@pytest.mark.parametrize("mode", MODES, ids=[mode.value for mode in MODES])
async def test_every_method__whatever_is_in_the_other_environment__says_the_same_to_everybody_of_ours(
    mode: AuthMode, files: TlsFiles, authority: Authority
) -> None:
    said, counted = [], ""
    for full in (False, True):
        async with world(mode, files, authority, full=full) as there:
            said.append(await everything_said(there))
            counted = generate_latest(there.run.registry).decode()

    alone, beside = said
    assert alone.keys() == beside.keys()
    assert [(which, alone[which], beside[which]) for which in alone if alone[which] != beside[which]] == []
    assert [which for which, answers in beside.items() if CANARY.encode() in b"".join(answers)] == []
    assert not [word for word in (CANARY, THEIRS, THEIR_NAME, OURS) if word in counted]
