"""CSDS over real gRPC: who may ask, what is answered, what is refused. What the fleet did is in memory."""

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from envoy.service.status.v3 import csds_pb2
from google.protobuf import json_format

from adsserver.ports import FleetClient, Reader, ResourceStatus, SyncState
from tests.support.ads import Running, config, running
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT

SERVICE = "/envoy.service.status.v3.ClientStatusDiscoveryService/"
UNAUTHENTICATED, DENIED = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED
CONFIG = b"\n\x0ctype.test/ab\x12\x01x"  # an Any


def client(node_id: str, environment: str = "prod", **more: str) -> FleetClient:
    return FleetClient(
        f"id-{node_id}", environment, more.get("identity", ""), node_id, more.get("cluster", "fleet"), "envoy", "1.40.0"
    )


def synced(name: str) -> ResourceStatus:
    return ResourceStatus(CLUSTER, name, SyncState.SYNCED, "v1", CONFIG)


@pytest.fixture(autouse=True)
def fleet(run: Running) -> None:
    run.fleet.readers = {
        "prod-token": Reader("token:prod", frozenset({"prod"})),
        "test-token": Reader("token:test", frozenset({"test"})),
        "all-token": Reader("token:all", frozenset({"prod", "test"})),
        "no-token": Reader("token:no", frozenset()),
    }
    run.fleet.statuses = {
        client("web-1"): (
            synced("a"),
            ResourceStatus(ENDPOINT, "b", SyncState.ERROR, "v2", CONFIG, "malformed IP address"),
        ),
        client("web-2", identity="spiffe://corp/web"): (synced("a"),),
        client("Web-3", "test"): (),
    }


def asked(token: str | None) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")] if token is not None else []


async def fetch(
    run: Running, token: str | None = "all-token", metadata: Sequence[tuple[str, str]] = (), **request: Any
) -> csds_pb2.ClientStatusResponse:
    message = json_format.ParseDict(request, csds_pb2.ClientStatusRequest())
    async with grpc.aio.insecure_channel(run.address) as channel:
        untyped: Any = channel
        call = untyped.unary_unary(SERVICE + "FetchClientStatus")
        data = await call(message.SerializeToString(), metadata=[*asked(token), *metadata], timeout=5)
    return csds_pb2.ClientStatusResponse.FromString(data)


def nodes(response: csds_pb2.ClientStatusResponse) -> list[str]:
    return [each.node.id for each in response.config]


async def test_fetch__reader_of_an_environment__is_told_of_its_clients(run: Running) -> None:
    response = await fetch(run, "prod-token")

    one, two = response.config
    assert (one.node.id, one.node.cluster, one.node.user_agent_name) == ("web-1", "fleet", "envoy")
    assert dict(one.node.metadata["parley"]) == {"environment": "prod", "identity": "", "client": "id-web-1"}
    assert two.node.metadata["parley"]["identity"] == "spiffe://corp/web"
    a, b = one.generic_xds_configs
    assert (a.type_url, a.name, a.version_info, a.config_status) == (CLUSTER.url, "a", "v1", csds_pb2.SYNCED)
    assert a.xds_config.SerializeToString() == CONFIG
    assert (b.config_status, b.error_state.details) == (csds_pb2.ERROR, "malformed IP address")
    assert b.error_state.version_info == "v2"


async def test_fetch__two_tenants__nothing_of_one_reaches_the_other(run: Running) -> None:
    # Reliability S3: not by asking for everything, and not by asking for it by name.
    assert nodes(await fetch(run, "test-token")) == ["Web-3"]
    assert nodes(await fetch(run, "prod-token")) == ["web-1", "web-2"]
    by_name = [{"node_id": {"exact": "web-1"}}]
    by_environment = [{"node_metadatas": [under("environment", exact="prod")]}]
    assert nodes(await fetch(run, "test-token", nodeMatchers=by_name)) == []
    assert nodes(await fetch(run, "test-token", nodeMatchers=by_environment)) == []


def under(fact: str, **match: object) -> dict[str, object]:
    return {"path": [{"key": "parley"}, {"key": fact}], "value": {"string_match": match}}


async def test_fetch__matchers__are_or_ed_and_their_fields_and_ed(run: Running) -> None:
    either = [{"node_id": {"exact": "web-1"}}, {"node_id": {"exact": "Web-3"}}]
    both = [{"node_id": {"prefix": "web-"}, "node_metadatas": [under("identity", suffix="/web")]}]

    assert nodes(await fetch(run, node_matchers=either)) == ["web-1", "Web-3"]
    assert nodes(await fetch(run, node_matchers=both)) == ["web-2"]


async def test_fetch__without_contents__has_states_only(run: Running) -> None:
    response = await fetch(run, "prod-token", exclude_resource_contents=True)

    assert [each.HasField("xds_config") for one in response.config for each in one.generic_xds_configs] == [False] * 3


@pytest.mark.parametrize(
    ("token", "metadata", "code", "text"),
    [
        (None, [], UNAUTHENTICATED, "the authorization metadata is missing"),
        ("nobody", [], UNAUTHENTICATED, "The token is unknown, expired or revoked."),
        ("no-token", [], DENIED, "This token may not read the clients of any environment."),
        ("all-token", asked("all-token"), UNAUTHENTICATED, "is not one bearer token"),
        (None, [("authorization", "Basic all-token")], UNAUTHENTICATED, "is not one bearer token"),
    ],
)
@pytest.mark.parametrize("method", ["FetchClientStatus", "StreamClientStatus"])
async def test_csds__caller_who_may_not_read__is_refused_and_told_how(
    run: Running, method: str, token: str | None, metadata: list[tuple[str, str]], code: grpc.StatusCode, text: str
) -> None:
    def call() -> tuple[grpc.StatusCode, str]:
        with grpc.insecure_channel(run.address) as channel:
            untyped: Any = channel
            stream = untyped.stream_stream(SERVICE + method)(iter([b""]), metadata=[*asked(token), *metadata])
            with pytest.raises(grpc.RpcError):
                next(stream)
            return stream.code(), stream.details()

    found, details = await asyncio.to_thread(call)

    assert found is code
    assert text in details


async def test_stream__each_request__is_answered_as_of_that_moment(run: Running) -> None:
    async with grpc.aio.insecure_channel(run.address) as channel:
        call = await stream_of(channel)
        await call.write(b"")
        before = csds_pb2.ClientStatusResponse.FromString(await call.read())
        run.fleet.statuses = {client("new"): ()}
        await call.write(b"")
        after = csds_pb2.ClientStatusResponse.FromString(await call.read())
        await call.done_writing()

        assert await call.read() is grpc.aio.EOF  # type: ignore[attr-defined]  # grpc-stubs do not know it
        assert await call.code() is grpc.StatusCode.OK
    assert nodes(before) == ["web-1", "web-2", "Web-3"]
    assert nodes(after) == ["new"]


async def stream_of(channel: grpc.aio.Channel) -> Any:
    untyped: Any = channel
    return untyped.stream_stream(SERVICE + "StreamClientStatus")(metadata=asked("all-token"))


async def test_stream__token_is_revoked_meanwhile__the_next_request_is_refused(run: Running) -> None:
    async with grpc.aio.insecure_channel(run.address) as channel:
        call = await stream_of(channel)
        await call.write(b"")
        await call.read()

        del run.fleet.readers["all-token"]
        await call.write(b"")

        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
    assert caught.value.code() is UNAUTHENTICATED


async def test_stream__server_stops__ends_with_unavailable(run: Running) -> None:
    async with grpc.aio.insecure_channel(run.address) as channel:
        call = await stream_of(channel)
        await call.write(b"")
        await call.read()

        await run.server.stop(spread_s=0, limit_s=1)

        with pytest.raises(grpc.aio.AioRpcError, match="shutting down"):
            await call.read()


async def refused(run: Running, **request: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await fetch(run, **request)
    return caught.value.code(), str(caught.value.details())


async def test_fetch__matcher_that_cannot_be_matched__is_refused_by_its_field(run: Running) -> None:
    code, text = await refused(run, node_matchers=[{"node_metadatas": [{"path": [{"key": "team"}]}]}])

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text.startswith("node_matchers[0].node_metadatas[0].path: the metadata of nodes is not kept")


async def test_fetch__garbage__is_refused(run: Running) -> None:
    async with grpc.aio.insecure_channel(run.address) as channel:
        untyped: Any = channel
        with pytest.raises(grpc.aio.AioRpcError, match="not a ClientStatusRequest"):
            await untyped.unary_unary(SERVICE + "FetchClientStatus")(b"\xff\xff", metadata=asked("all-token"))


async def test_fetch__database_away__unavailable_with_the_reason(run: Running) -> None:
    run.fleet.away = "The database does not answer."

    assert await refused(run) == (grpc.StatusCode.UNAVAILABLE, "The database does not answer.")


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(status_entries=4), "more than 4 entries"),
        (Limits(status_bytes=400), "more than 400 bytes"),
    ],
)
async def test_fetch__answer_beyond_a_limit__is_refused_and_told_how_to_ask_for_less(limits: Limits, text: str) -> None:
    async with running(config(limits=limits)) as small:
        small.fleet.readers = {"all-token": Reader("t", frozenset({"prod"}))}
        small.fleet.statuses = {client(f"n{number}"): (synced("a"),) for number in range(3)}

        code, details = await refused(small)
        fewer = nodes(await fetch(small, node_matchers=[{"node_id": {"exact": "n1"}}], exclude_resource_contents=True))

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert text in details
    assert "node_matchers" in details
    assert fewer == ["n1"]


async def test_fetch__clients_without_resources__count_too() -> None:
    async with running(config(limits=Limits(status_bytes=400))) as small:
        small.fleet.readers = {"all-token": Reader("t", frozenset({"prod"}))}
        small.fleet.statuses = {client("n" * 500): ()}

        code, _ = await refused(small)

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_fetch__too_many_wait__is_refused_and_the_others_are_answered() -> None:
    async with running(config(limits=Limits(status_calls=1))) as busy:
        busy.fleet.readers = {"all-token": Reader("t", frozenset({"prod"}))}

        outcomes = await asyncio.gather(*(fetch(busy) for _ in range(12)), return_exceptions=True)

    answered = [each for each in outcomes if isinstance(each, csds_pb2.ClientStatusResponse)]
    told = {str(each.details()) for each in outcomes if isinstance(each, grpc.aio.AioRpcError)}
    assert answered
    assert told <= {"1 status requests wait for their answer already; try again later."}
