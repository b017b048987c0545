"""Which methods exist, and that none of them answers somebody unknown (reliability S1, threat 1)."""

import asyncio
import importlib
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import pytest
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from adsserver.engine.events import Rejected
from adsserver.identity.identification import Caller, Peer, UnauthenticatedError
from tests.support.ads import Running, config, running
from tests.support.ads_client import NODE, connect
from tests.support.node_client import REFLECT, node_modules, why_no_node
from xdscore.access import AccessTable, Effect
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, RESOURCE_TYPES, ResourceType, by_word
from xdscore.schema.types_registry import class_of, descriptor_of

V3 = "/envoy.service.{}.v3.{}DiscoveryService/"
SERVICES = {
    V3.format("discovery", "Aggregated"): ("StreamAggregatedResources", "DeltaAggregatedResources"),
    V3.format("cluster", "Cluster"): ("StreamClusters", "DeltaClusters", "FetchClusters"),
    V3.format("endpoint", "Endpoint"): ("StreamEndpoints", "DeltaEndpoints", "FetchEndpoints"),
    V3.format("listener", "Listener"): ("StreamListeners", "DeltaListeners", "FetchListeners"),
    V3.format("route", "Route"): ("StreamRoutes", "DeltaRoutes", "FetchRoutes"),
    V3.format("route", "VirtualHost"): ("DeltaVirtualHosts",),
    V3.format("route", "ScopedRoutes"): ("StreamScopedRoutes", "DeltaScopedRoutes", "FetchScopedRoutes"),
    V3.format("secret", "Secret"): ("StreamSecrets", "DeltaSecrets", "FetchSecrets"),
    V3.format("runtime", "Runtime"): ("StreamRuntime", "DeltaRuntime", "FetchRuntime"),
    V3.format("extension", "ExtensionConfig"): (
        "StreamExtensionConfigs",
        "DeltaExtensionConfigs",
        "FetchExtensionConfigs",
    ),
    "/envoy.service.status.v3.ClientStatusDiscoveryService/": ("FetchClientStatus", "StreamClientStatus"),
    "/grpc.health.v1.Health/": ("Check", "Watch"),
    "/grpc.reflection.v1.ServerReflection/": ("ServerReflectionInfo",),
    "/grpc.reflection.v1alpha.ServerReflection/": ("ServerReflectionInfo",),
}
# A method that is added to the server must be added here, and so to every test below.
METHODS = sorted(service + name for service, names in SERVICES.items() for name in names)
FETCH = [path for path in METHODS if "/Fetch" in path and "ClientStatus" not in path]
DISCOVERY = [path for path in METHODS if "DiscoveryService/" in path and path not in FETCH and "Status" not in path]


@pytest.fixture
async def run() -> AsyncIterator[Running]:
    async with running() as started:
        yield started


async def outcome(address: str, path: str) -> tuple[grpc.StatusCode, str]:
    def call() -> tuple[grpc.StatusCode, str]:
        with grpc.insecure_channel(address) as channel:
            untyped: Any = channel
            # An empty message is one of every type, and a stream of one is a unary call.
            stream = untyped.stream_stream(path)(iter([b""]))
            with suppress(grpc.RpcError):
                next(stream)
            return stream.code(), stream.details()

    # Not the asyncio client: it may report its own failed write in place of the status that ended the call.
    return await asyncio.to_thread(call)


async def test_methods__enumerated__are_exactly_these(run: Running) -> None:
    assert sorted(run.server.methods.methods) == METHODS


@pytest.mark.parametrize("path", METHODS)
async def test_methods__caller_is_nobody_we_know__unauthenticated(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def deny(_: Peer) -> Caller:
        raise UnauthenticatedError("not you")

    monkeypatch.setattr("adsserver.running.server.identification", lambda *_: deny)
    async with running() as run:
        run.publish()

        assert await outcome(run.address, path) == (grpc.StatusCode.UNAUTHENTICATED, "not you")


async def test_methods__server_is_full__whatever_stays_open_is_refused() -> None:
    async with running(config(limits=Limits(streams_per_replica=1))) as run:
        run.publish()
        client = connect(run)
        await client.ask(node=NODE, type_url=CLUSTER.url)
        await client.answer()

        outcomes = {path: (await outcome(run.address, path))[0] for path in METHODS}

    # A load balancer must be able to learn that this server is full; a Fetch takes no place of streams (this one names
    # no node). Nor does what operators ask: it is when a server is full that they must see why.
    expected = dict.fromkeys(METHODS, grpc.StatusCode.RESOURCE_EXHAUSTED)
    expected |= dict.fromkeys(FETCH, grpc.StatusCode.INVALID_ARGUMENT)
    expected |= {path: grpc.StatusCode.UNAUTHENTICATED for path in METHODS if "ClientStatus" in path}
    expected["/grpc.health.v1.Health/Check"] = grpc.StatusCode.OK
    assert outcomes == expected


@pytest.mark.parametrize("path", DISCOVERY)
async def test_methods__discovery__tells_what_the_one_decision_says(run: Running, path: str) -> None:
    kinds = [*RESOURCE_TYPES] if "Aggregated" in path else [kind_served_by(path)]
    denied = run.catalogue.publish(*(named(kind, "x") for kind in kinds), access=AccessTable(Effect.DENY))
    run.server.directory_changed(denied)
    client = connect(run, path)
    field = "resource_names_subscribe" if client.delta else "resource_names"

    for kind in kinds:
        await client.ask(node=NODE, type_url=kind.url, **{field: ["x"]})
        answer = await client.answer()

        assert answer.type_url == kind.url
        # What says that a name is an alias of nothing has no content (E2).
        assert not [each for each in answer.resources if not client.delta or each.HasField("resource")]
        assert [each.error_detail.code for each in answer.resource_errors] == [7]


def kind_served_by(path: str) -> ResourceType:
    word = path.partition("v3.")[2].partition("DiscoveryService")[0]
    titles = {"ScopedRoutes": "scoped_route", "ExtensionConfig": "extension", "VirtualHost": "virtual_host"}
    return by_word[titles.get(word, word.lower())]


def named(kind: ResourceType, name: str) -> Message:
    descriptor = descriptor_of(kind.message)
    assert descriptor is not None
    return class_of(descriptor)(**{kind.name_field: name})


async def test_methods__not_in_the_table__unimplemented(run: Running) -> None:
    path = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"

    assert (await outcome(run.address, path))[0] is grpc.StatusCode.UNIMPLEMENTED


def fetching(path: str, channel: grpc.aio.Channel) -> Any:
    """The unary method of the stub that is generated for the service of this path."""
    service, name = path.removeprefix("/").split("/")
    (stub,) = (
        getattr(
            importlib.import_module(f"{kind.service.partition(':')[0]}_grpc"), f"{kind.service.partition(':')[2]}Stub"
        )
        for kind in RESOURCE_TYPES
        if kind is kind_served_by(path)
    )
    assert service.endswith(stub.__name__.removesuffix("Stub"))
    return getattr(stub(channel), name)


@pytest.mark.parametrize("path", FETCH)
async def test_methods__fetch_by_a_stub__all_that_is_asked_for_each_time(run: Running, path: str) -> None:
    kind = kind_served_by(path)
    run.publish(named(kind, "x"), named(kind, "other"))
    request = discovery_pb2.DiscoveryRequest(node=NODE, resource_names=["x", "nowhere"])

    async with grpc.aio.insecure_channel(run.address) as channel:
        fetch = fetching(path, channel)
        answers = [await fetch(request)]
        request.version_info = answers[0].version_info
        answers.append(await fetch(request))
        run.publish(named(kind, "nowhere"), named(kind, "x"))
        answers.append(await fetch(request))

    assert [len(answer.resources) for answer in answers] == [1, 1, 2]
    assert {answer.type_url for answer in answers} == {kind.url}
    assert answers[0].version_info == answers[1].version_info != answers[2].version_info
    for answer in answers[:2]:
        assert [error.resource_name.name for error in answer.resource_errors] == ["nowhere"]
        assert answer.resource_errors[0].error_detail.message.startswith("NOT_FOUND [XDS2101]")


@pytest.mark.parametrize("path", FETCH)
async def test_methods__fetch__tells_what_the_one_decision_says(run: Running, path: str) -> None:
    kind = kind_served_by(path)
    denied = run.catalogue.publish(named(kind, "x"), access=AccessTable(Effect.DENY))
    run.server.directory_changed(denied)
    async with grpc.aio.insecure_channel(run.address) as channel:
        answer = await fetching(path, channel)(discovery_pb2.DiscoveryRequest(node=NODE, resource_names=["x"]))

    assert not answer.resources
    assert [each.error_detail.code for each in answer.resource_errors] == [7]


async def test_methods__fetch_with_an_error__is_a_nack(run: Running) -> None:
    run.publish(named(CLUSTER, "x"))
    request = discovery_pb2.DiscoveryRequest(node=NODE)
    async with grpc.aio.insecure_channel(run.address) as channel:
        fetch = fetching(V3.format("cluster", "Cluster") + "FetchClusters", channel)
        answer = await fetch(request)
        request.response_nonce = answer.nonce
        request.error_detail.message = "x: no"
        await fetch(request)

    (fact,) = (fact for _, fact in run.facts.learnt_facts if isinstance(fact, Rejected))
    assert [member.name for member in fact.suspects] == ["x"]


async def test_health__from_start_to_drain__follows_readiness(run: Running) -> None:
    async with grpc.aio.insecure_channel(run.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        states = [(await watch.read()).status]
        run.publish()
        states.append((await watch.read()).status)
        await run.server.stop(spread_s=0, limit_s=0.2)
        states.append((await watch.read()).status)

    status = health_pb2.HealthCheckResponse
    assert states == [status.NOT_SERVING, status.SERVING, status.NOT_SERVING]


# Of grpc.health.v1 the server has no List.
DESCRIBED = {
    service.strip("/"): {*methods, *(["List"] if "Health" in service else [])} for service, methods in SERVICES.items()
}


@pytest.mark.shows("reflection client for Python", "lists and describes services: reflection v1alpha", "not xDS")
async def test_reflection__asked_by_a_client_for_python__lists_and_describes_every_service(run: Running) -> None:
    def described() -> dict[str, set[str]]:
        with grpc.insecure_channel(run.address) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            pool = DescriptorPool(database)
            return {name: set(pool.FindServiceByName(name).methods_by_name) for name in database.get_services()}

    assert await asyncio.to_thread(described) == DESCRIBED


@pytest.mark.shows("reflection client for Node", "lists and describes services: reflection v1, v1alpha", "not xDS")
@pytest.mark.skipif(bool(why_no_node()), reason=why_no_node())
@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection__asked_by_a_client_for_node__lists_and_describes_every_service(
    run: Running, version: str
) -> None:
    command = ["node", str(REFLECT), run.address, version]
    environment = os.environ | {"NODE_PATH": str(node_modules())}

    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, timeout=30, check=False
    )

    assert done.returncode == 0, done.stderr
    assert {service: set(methods) for service, methods in json.loads(done.stdout).items()} == DESCRIBED
