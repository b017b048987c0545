"""CSDS over real gRPC: who may ask, what is answered, what is refused. What the fleet did is in memory."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from envoy.service.status.v3 import csds_pb2
from google.protobuf import json_format

from adsserver.ports import FleetClient, Reader, ResourceStatus, SyncState
from adsserver.servicers import csds
from tests.support.ads import Running, config, running
from tests.support.ads_client import NODE, cluster, connect, until
from tests.support.figures import measured
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


async def stream_of(channel: grpc.aio.Channel, token: str = "all-token") -> Any:
    untyped: Any = channel
    return untyped.stream_stream(SERVICE + "StreamClientStatus")(metadata=asked(token))


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


# Who has no token costs nobody anything


async def test_csds__streams_are_full__operators_are_answered_all_the_same() -> None:
    async with running(config(limits=Limits(streams_per_replica=1))) as full:
        full.fleet.readers = {"all-token": Reader("t", frozenset({"prod"}))}
        full.publish(cluster("a"))
        stream = connect(full)
        await stream.ask(node=NODE, type_url=CLUSTER.url)
        await stream.answer()

        assert nodes(await fetch(full)) == []
        async with grpc.aio.insecure_channel(full.address) as channel:
            call = await stream_of(channel)
            await call.write(b"")
            assert isinstance(await call.read(), bytes)


@pytest.mark.parametrize("token", [None, "nobody"])
async def test_csds__flood_without_a_token__nobody_asks_the_database_and_operators_are_answered_at_once(
    token: str | None, run: Running
) -> None:
    async with grpc.aio.insecure_channel(run.address) as channel:
        untyped: Any = channel
        # As many as gRPC lets one connection have.
        flood = [untyped.stream_stream(SERVICE + "StreamClientStatus")(metadata=asked(token)) for _ in range(50)]
        flood += [untyped.unary_unary(SERVICE + "FetchClientStatus")(b"", metadata=asked(token)) for _ in range(50)]

        started = time.monotonic()
        response = await fetch(run, "prod-token")
        took_s = time.monotonic() - started

        ends = {await call.code() for call in flood}
    measured(calls_without_a_token=len(flood), operator_answered_after_s=took_s)
    assert nodes(response) == ["web-1", "web-2"]
    assert took_s < 2  # through the database, ten a second, it would be some 10 s
    assert ends == {UNAUTHENTICATED}
    assert set(run.fleet.asked) == {"prod-token"}
    assert run.sample("parley_ads_status_refused_total", code="UNAUTHENTICATED") == len(flood)


async def test_csds__one_token_floods__another_is_answered_after_a_turn_of_it() -> None:
    async with running(config(limits=Limits(status_calls=8))) as busy:
        busy.fleet.readers = {"loud": Reader("l", frozenset({"prod"})), "quiet": Reader("q", frozenset({"prod"}))}
        busy.fleet.answers.clear()
        loud = [asyncio.ensure_future(fetch(busy, "loud")) for _ in range(8)]
        await until(lambda: busy.fleet.asked == ["loud"] and busy.server._status.open == 8)
        quiet = asyncio.ensure_future(fetch(busy, "quiet"))
        await until(lambda: busy.server._status.open == 9)

        busy.fleet.answers.set()
        await asyncio.gather(quiet, *loud)

    assert busy.fleet.asked.index("quiet") <= 2


async def test_csds__one_token_has_all_its_calls__is_refused_and_another_is_not() -> None:
    async with running(config(limits=Limits(status_calls=2))) as run, grpc.aio.insecure_channel(run.address) as channel:
        run.fleet.readers = {token: Reader(token, frozenset({"prod"})) for token in ("all-token", "other")}
        held = [await stream_of(channel) for _ in range(2)]
        for call in held:
            await call.write(b"")
            await call.read()

        refusal = await refused(run)
        answered = await fetch(run, "other")
        held[0].cancel()
        await until(lambda: run.server._status.open == 1)
        again = await fetch(run)

    assert refusal == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "This token has 2 status calls open on this server, as many as it may; end one, or try again later.",
    )
    assert (nodes(answered), nodes(again)) == ([], [])


async def test_csds__many_tokens_fill_the_server__one_without_a_call_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csds, "_FULL_TOKENS", 1)
    async with running(config(limits=Limits(status_calls=2))) as run, grpc.aio.insecure_channel(run.address) as channel:
        run.fleet.readers = {token: Reader(token, frozenset({"prod"})) for token in ("all-token", "other", "third")}
        for token in ("all-token", "other"):
            call = await stream_of(channel, token)
            await call.write(b"")
            await call.read()

        code, _ = await refused(run)

        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert nodes(await fetch(run, "third")) == []


async def test_stream__no_request_in_time__ends_and_gives_its_place_back() -> None:
    async with running(config(limits=Limits(first_request_ms=100))) as run:
        run.fleet.readers = {"all-token": Reader("t", frozenset({"prod"}))}
        async with grpc.aio.insecure_channel(run.address) as channel:
            call = await stream_of(channel)

            with pytest.raises(grpc.aio.AioRpcError) as caught:
                async with asyncio.timeout(5):
                    await call.read()

            asking = await stream_of(channel)
            await asking.write(b"")
            await asking.read()
            await asyncio.sleep(0.2)
            await asking.write(b"")
            assert isinstance(await asking.read(), bytes)  # between requests it may be silent
    assert (caught.value.code(), caught.value.details()) == (
        grpc.StatusCode.UNAVAILABLE,
        "No request came within 100 ms (first_request_ms); reconnect when there is one to send.",
    )  # fmt: skip


async def test_fetch__call_without_its_request__is_refused(run: Running) -> None:
    async with grpc.aio.insecure_channel(run.address) as channel:
        untyped: Any = channel
        call = untyped.stream_stream(SERVICE + "FetchClientStatus")(metadata=asked("all-token"))
        await call.done_writing()

        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await call.details() == "The call ended without a request."


async def test_fetch__memory_is_short__is_refused() -> None:
    async with running(config(limits=Limits(memory_mib=1))) as run:
        run.fleet.readers = {"all-token": Reader("t", frozenset({"prod"}))}
        await until(lambda: run.server.short_of_memory)

        assert await refused(run) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED, "This server is short of memory; try another one, or later.",
        )  # fmt: skip
