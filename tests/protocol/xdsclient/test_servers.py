"""Servers as they are found in the field: none of them knows xRFC TP3, and each has habits of its own (clients.md).

The client must get on with all of them, on the wire and over real gRPC.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.message import Message

from tests.support.scripted_ads import ScriptedStream, named, scripted_ads
from tests.support.xds_resources import assignment, eds_cluster, route
from xdsclient import (
    CLUSTERS,
    ENDPOINTS,
    ROUTES,
    AmbientError,
    Bootstrap,
    Changed,
    DataErrorHandling,
    Following,
    Node,
    Server,
    ServerFeature,
    Status,
    StatusCode,
    Variant,
    XdsClient,
)
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE, SCOPED_ROUTE, ResourceType

BOTH = pytest.mark.parametrize("variant", list(Variant))


@asynccontextmanager
async def client(variant: Variant, *features: ServerFeature) -> AsyncIterator[tuple[XdsClient, Any]]:
    """A client, and the server that waits for its stream."""
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address, features=frozenset(features)),), Node("n"))
        async with XdsClient(bootstrap, variant=variant, data_errors=DataErrorHandling.ON) as one:
            yield one, server


async def told(following: Following[Message]) -> Changed[Message] | AmbientError:
    async with asyncio.timeout(5):
        return await anext(following)


def states(one: XdsClient) -> dict[str, str]:
    return {entry.key.name: entry.label for entry in one.cache()}


async def exchange(stream: ScriptedStream, kind: ResourceType, *resources: Any, **more: Any) -> Any:
    """A response, and the client's answer to it."""
    return await stream.answered(kind, stream.send(kind, *resources, **more))


async def test_sotw_server_without_tp3__silent_about_what_it_lacks__is_known_by_the_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("xdsclient.engine.policy.DOES_NOT_EXIST_TIMER_S", 0.3)
    async with client(Variant.SOTW) as (one, server), one.follow(ROUTES, "lost") as lost, one.follow(ROUTES, "a") as a:
        stream = await server.stream("n")
        await exchange(stream, ROUTE, route("a", "c"))

        assert await told(a) == Changed(route("a", "c"))
        missing = await told(lost)

        assert isinstance(missing, Changed)
        assert isinstance(missing.resource, Status)
        assert missing.resource.code == StatusCode.NOT_FOUND
        assert states(one) == {"a": "acked", "lost": "does_not_exist"}


async def test_sotw_server_without_tp3__full_state_without_a_cluster__is_a_deletion() -> None:
    async with client(Variant.SOTW, ServerFeature.FAIL_ON_DATA_ERRORS) as (one, server), one.follow(CLUSTERS, "a"):
        stream = await server.stream("n")
        await exchange(stream, CLUSTER, eds_cluster("a"), eds_cluster("not asked for"))

        await exchange(stream, CLUSTER, eds_cluster("not asked for"))

        assert states(one) == {"a": "does_not_exist"}


async def test_delta_server_without_tp3__removes_what_it_lacks__is_known_at_once() -> None:
    """go-control-plane, istiod: removed_resources alone, also for what was never there."""
    async with (
        client(Variant.DELTA) as (one, server),
        one.follow(ENDPOINTS, "lost") as lost,
        one.follow(ENDPOINTS, "a"),
    ):
        stream = await server.stream("n")

        answer = await exchange(stream, ENDPOINT, assignment("a", 1), removed=["lost"])

        assert not answer.HasField("error_detail")
        assert isinstance(await told(lost), Changed)
        assert states(one) == {"a": "acked", "lost": "does_not_exist"}


async def test_delta_server__says_error_and_removal_of_one_name__is_one_piece_of_news() -> None:
    """Parley itself, for clients that ignore errors (protocol.md F12)."""
    async with client(Variant.DELTA) as (one, server), one.follow(ENDPOINTS, "lost"):
        stream = await server.stream("n")

        answer = await exchange(stream, ENDPOINT, removed=["lost"], errors=[("lost", 5, "why")])

        assert not answer.HasField("error_detail")
        assert states(one) == {"lost": "received_error"}


@BOTH
async def test_server__sends_what_nobody_asked_for__is_acknowledged_and_ignored(variant: Variant) -> None:
    async with client(variant) as (one, server), one.follow(ROUTES, "a"):
        stream = await server.stream("n")

        answer = await exchange(
            stream, ROUTE, route("z", "c"), route("a", "c"), removed=["y"] * (variant is Variant.DELTA)
        )

        assert not answer.HasField("error_detail")
        assert states(one) == {"a": "acked"}


@BOTH
async def test_server__sends_the_same_again__tells_nobody(variant: Variant) -> None:
    async with client(variant) as (one, server), one.follow(ROUTES, "a") as a:
        stream = await server.stream("n")
        for _ in range(3):
            await exchange(stream, ROUTE, route("a", "c"))
        await exchange(stream, ROUTE, route("a", "d"))

        assert await told(a) == Changed(route("a", "d"))
        assert (one.cache()[0].label, a._changed) == ("acked", None)


@BOTH
async def test_server__sends_a_type_nobody_knows__is_not_answered_and_goes_on(variant: Variant) -> None:
    async with client(variant) as (one, server), one.follow(ROUTES, "a"):
        stream = await server.stream("n")
        stream.send(SCOPED_ROUTE)

        await exchange(stream, ROUTE, route("a", "c"))

        assert {request.type_url for request in stream.requests} == {ROUTE.url}
        assert states(one) == {"a": "acked"}


async def test_delta_server__sends_heartbeats__changes_nothing() -> None:
    """protocol.md G2: a Resource with its name and version and without content."""
    async with client(Variant.DELTA) as (one, server), one.follow(ENDPOINTS, "a"):
        stream = await server.stream("n")
        await exchange(stream, ENDPOINT, assignment("a", 1))
        beat = discovery_pb2.DeltaDiscoveryResponse(type_url=ENDPOINT.url, nonce="beat")
        beat.resources.add(name="a", version="v1").ttl.seconds = 30
        stream.send_raw(beat.SerializeToString())

        assert not (await stream.answered(ENDPOINT, "beat")).HasField("error_detail")
        assert states(one) == {"a": "acked"}


async def test_delta_server__heartbeat_of_what_is_not_held__is_refused_so_that_it_is_sent() -> None:
    async with client(Variant.DELTA) as (one, server), one.follow(ENDPOINTS, "a"):
        stream = await server.stream("n")
        await exchange(stream, ENDPOINT, assignment("a", 1), version="v1")
        beat = discovery_pb2.DeltaDiscoveryResponse(type_url=ENDPOINT.url, nonce="beat")
        beat.resources.add(name="a", version="v2").ttl.seconds = 30
        stream.send_raw(beat.SerializeToString())

        answer = await stream.answered(ENDPOINT, "beat")

        assert "a: INVALID_ARGUMENT: a heartbeat of a version that is not in use" in answer.error_detail.message
        assert states(one) == {"a": "acked"}


async def test_delta_server__stops_renewing__the_resource_runs_out_and_comes_back() -> None:
    async with client(Variant.DELTA) as (one, server), one.follow(ENDPOINTS, "a") as a:
        stream = await server.stream("n")
        first = discovery_pb2.DeltaDiscoveryResponse(type_url=ENDPOINT.url, nonce="first")
        resource = first.resources.add(name="a", version="v1")
        resource.resource.Pack(assignment("a", 1), type_url_prefix="type.googleapis.com")
        resource.ttl.FromMilliseconds(300)
        stream.send_raw(first.SerializeToString())
        assert await told(a) == Changed(assignment("a", 1))

        gone = await told(a)
        await exchange(stream, ENDPOINT, assignment("a", 1), version="v1")

        assert isinstance(gone, Changed)
        assert "its ttl ran out" in str(gone.resource)
        assert await told(a) == Changed(assignment("a", 1))
        assert states(one) == {"a": "acked"}


async def test_delta_server__restarts__is_told_what_is_held_and_sends_only_what_changed() -> None:
    async with client(Variant.DELTA) as (one, server), one.follow(ENDPOINTS, "a"), one.follow(ENDPOINTS, "b") as b:
        stream = await server.stream("n")
        await exchange(stream, ENDPOINT, assignment("a", 1), assignment("b", 1), version="7")
        await told(b)
        await stream.end()
        stream = await server.stream("n")
        request = await stream.request(ENDPOINT)

        await exchange(stream, ENDPOINT, assignment("b", 2), version="8")

        assert sorted(request.resource_names_subscribe) == ["a", "b"]
        # One is left out, so that a server without news has something to answer with (A57).
        assert dict(request.initial_resource_versions) == {"b": "7"}
        assert await told(b) == Changed(assignment("b", 2))
        assert states(one) == {"a": "acked", "b": "acked"}


@BOTH
async def test_server__wraps_resources__under_the_name_asked_for(variant: Variant) -> None:
    """protocol.md A9: the client says that it takes wrapped resources in SotW."""
    name = "xdstp://auth/envoy.config.cluster.v3.Cluster/a?x=1&y=2"
    async with scripted_ads() as server:
        bootstrap = Bootstrap.parse(
            f'{{"xds_servers": [{{"server_uri": "{server.address}", "channel_creds": [{{"type": "insecure"}}]}}],'
            ' "node": {"id": "n"}, "authorities": {"auth": {}}}'
        )
        async with XdsClient(bootstrap, variant=variant) as one, one.follow(CLUSTERS, name) as a:
            stream = await server.stream("n")
            assert "xds.config.resource-in-sotw" in stream.node.client_features
            stream.send(CLUSTER, named(eds_cluster("a"), name.replace("x=1&y=2", "y=2&x=1")))

            assert await told(a) == Changed(eds_cluster("a"))
