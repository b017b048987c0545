"""What one caller may cost: places from the moment its call arrives, names, and turns beside others (threat 10)."""

import asyncio
from unittest import mock

import grpc
import pytest
from structlog.testing import capture_logs

from adsserver.engine.session import Session
from adsserver.limits import budgets as counting
from adsserver.limits.budgets import Budget
from adsserver.ports import Reader
from adsserver.running import server
from tests.services.ads.test_methods import METHODS
from tests.support.ads import Running, config, raw_call, running
from tests.support.ads_client import ADS, NODE, Client, cluster, connect, until
from xdscore.auth_modes import AuthMode
from xdscore.callers import CallerKey
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE

MIB = 1024 * 1024
GOOD, BAD = CallerKey(identity="good"), CallerKey(identity="bad")
SOTW, DELTA = ADS + "StreamAggregatedResources", ADS + "DeltaAggregatedResources"


def as_identity(run: Running, identity: str, method: str = SOTW) -> Client:
    """A stream with a token of this identity."""
    token = run.catalogue.issue(identity)
    run.server.directory_changed(run.catalogue.publish(cluster("a")))
    channel = grpc.aio.insecure_channel(run.address, options=[("grpc.use_local_subchannel_pool", 1)])
    metadata = [("authorization", f"Bearer {token}")]
    return Client(raw_call(channel, method, metadata=metadata), channel, "/Delta" in method)


@pytest.mark.parametrize("path", METHODS)
async def test_call__without_a_first_request__ends_in_time_and_its_place_is_free(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_LOOK_PERIOD_S", 0.02)
    async with running(config(limits=Limits(first_request_ms=100))) as run:
        run.publish(cluster("a"))
        run.fleet.readers = {"operator": Reader("token:operator", frozenset({"default"}))}
        async with grpc.aio.insecure_channel(run.address) as channel:
            call = raw_call(channel, path, metadata=[("authorization", "Bearer operator")])

            async with asyncio.timeout(5):
                code, details = await call.code(), await call.details()

        assert code is grpc.StatusCode.UNAVAILABLE
        assert "within 100 ms (first_request_ms)" in details
        await until(lambda: run.server.idle)


@pytest.mark.parametrize(
    "path",
    [
        SOTW,
        "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus",
        "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats",
    ],
)
async def test_call__of_nobody_or_to_nothing__costs_its_address(path: str) -> None:
    async with running(config(limits=Limits(caller_work_ms_per_s=10), auth=AuthMode.TOKEN)) as run:
        run.publish(cluster("a"))
        another = run.server._budgets.enter(CallerKey(address="127.0.0.2"))
        async with grpc.aio.insecure_channel(run.address) as channel:
            calls = [raw_call(channel, path, metadata=[("authorization", "Bearer unknown")]) for _ in range(50)]
            codes = {await call.code() for call in calls}
            run.server._budgets.leave(another)
            budget = run.server._budgets.enter(CallerKey(address="127.0.0.1"))
            run.server._budgets.leave(budget)
            spent = not budget.is_untouched

    assert codes <= {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNIMPLEMENTED}
    assert spent


async def test_stream__that_asked_in_time__outlives_the_deadline_of_the_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_LOOK_PERIOD_S", 0.02)
    async with running(config(limits=Limits(first_request_ms=100))) as run:
        run.publish(cluster("a"))
        asked, silent = connect(run), connect(run)
        await asked.ask(node=NODE, type_url=CLUSTER.url)
        await asked.answer()

        code, _, responses = await silent.ended()

        assert (code, responses) == (grpc.StatusCode.UNAVAILABLE, 0)
        run.publish(cluster("a", 2))
        assert await asked.answer()


async def test_stream__many_of_one_caller_that_end_for_a_reason__fill_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each line is written by the event loop: a reader of the log that is slow would hold up everybody.
    monkeypatch.setattr(server, "_LOOK_PERIOD_S", 0.02)
    async with running(config(auth=AuthMode.TOKEN, limits=Limits(first_request_ms=100))) as run:
        run.publish(cluster("a"))
        with capture_logs() as logged:
            bad = [as_identity(run, "bad") for _ in range(40)]
            for client in bad:
                await client.ended()
            good = as_identity(run, "good")
            await good.ended()

        lines = [each for each in logged if each["event"] == "stream.closed"]
        # One more for each second that it takes.
        assert 21 <= len(lines) <= 30


async def test_stream__that_asked_in_time_and_is_not_read_yet__is_not_taken_for_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_LOOK_PERIOD_S", 0.02)
    # A fleet that comes back at once: what it owes when a stream is let in is 0.2 s.
    monkeypatch.setattr(counting, "OPENING_S", 0.03)
    limits = Limits(first_request_ms=100, caller_work_ms_per_s=1_000, caller_work_burst_ms=1)
    async with running(config(auth=AuthMode.TOKEN, limits=limits)) as run:
        good = as_identity(run, "good")
        await good.ask(node=NODE, type_url=CLUSTER.url)
        await good.answer()

        waiting = as_identity(run, "fleet")
        await waiting.ask(node=NODE, type_url=CLUSTER.url)

        assert await waiting.answer()


async def test_stream__silent_ones_of_an_identity__take_no_more_places_than_it_may_have() -> None:
    limits = Limits(streams_per_identity=2, streams_per_replica=4)
    async with running(config(auth=AuthMode.TOKEN, limits=limits)) as run:
        silent = [as_identity(run, "bad") for _ in range(6)]
        await until(lambda: sum(client.call.done() for client in silent) == 4)
        good = as_identity(run, "good")

        await good.ask(node=NODE, type_url=CLUSTER.url)

        assert await good.answer()
        ends = [(await client.call.code(), await client.call.details()) for client in silent if client.call.done()]
        assert set(ends) == {
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "This identity has 2 streams on this server, as many as it may.")
        }


async def test_stream__without_identity__counts_for_its_address() -> None:
    async with running(config(limits=Limits(streams_per_address=1))) as run:
        run.publish(cluster("a"))
        first = connect(run)
        await first.ask(node=NODE, type_url=CLUSTER.url)
        await first.answer()

        second = connect(run)
        await second.ask(node={"id": "another"}, type_url=CLUSTER.url)

        code, details, _ = await second.ended()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert details == "This address has 1 streams on this server, as many as it may."


@pytest.mark.parametrize("method", [SOTW, DELTA])
async def test_stream__names_of_more_bytes_than_allowed__resource_exhausted_with_the_limit(method: str) -> None:
    async with running(config(limits=Limits(name_bytes_per_stream=64 * 1024))) as run:
        run.publish(cluster("a"))
        client = connect(run, method)
        field = "resource_names_subscribe" if client.delta else "resource_names"
        names = [f"{number}".rjust(1000, "n") for number in range(40)]
        await client.ask(node=NODE, type_url=ENDPOINT.url, **{field: names})
        await client.answer()

        await client.ask(type_url=ROUTE.url, **{field: names})

        code, details, _ = await client.ended()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "at most 65536 are allowed (name_bytes_per_stream)" in details


@pytest.mark.parametrize("method", [SOTW, DELTA])
async def test_stream__answer_that_takes_several_steps__each_is_a_cost_of_who_asked(method: str) -> None:
    async with running(config(limits=Limits(names_per_step=2))) as run:
        run.publish(cluster("a"))
        client = connect(run, method)
        field = "resource_names_subscribe" if client.delta else "resource_names"
        names = [f"n{number}" for number in range(10)]

        with (
            mock.patch.object(Session, "compose", autospec=True, side_effect=Session.compose) as composed,
            mock.patch.object(Budget, "__enter__", autospec=True, side_effect=Budget.__enter__) as paid,
        ):
            await client.ask(node=NODE, type_url=ENDPOINT.url, **{field: names})
            response = await client.answer()

        assert [error.resource_name.name for error in response.resource_errors] == names
        assert composed.call_count >= len(names) / 2
        # Taking the request in is one more, and the look after the answer, which finds nothing, is none.
        assert paid.call_count >= composed.call_count


async def test_stream__names_of_unknown_types__count_like_others() -> None:
    async with running(config(limits=Limits(name_bytes_per_stream=64 * 1024))) as run:
        run.publish(cluster("a"))
        client = connect(run)
        names = [f"{number}".rjust(1000, "n") for number in range(80)]

        await client.ask(node=NODE, type_url="type.googleapis.com/example.Unknown", resource_names=names)

        code, details, _ = await client.ended()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "name_bytes_per_stream" in details


async def test_stream__names_of_all_streams_of_a_caller__bounded_together_and_given_back() -> None:
    limits = Limits(name_bytes_per_stream=64 * 1024, name_bytes_per_identity=100 * 1024)
    async with running(config(auth=AuthMode.TOKEN, limits=limits)) as run:
        names = [f"{number}".rjust(1000, "n") for number in range(40)]

        async def asks(identity: str) -> Client:
            client = as_identity(run, identity, DELTA)
            await client.ask(node=NODE, type_url=ENDPOINT.url, resource_names_subscribe=names)
            return client

        first = await asks("bad")
        await first.answer()
        second = await asks("bad")
        code, details, _ = await second.ended()
        other = await asks("good")
        first_again = await other.answer()
        first.call.cancel()
        await until(lambda: run.server.open_streams == 1)
        third = await asks("bad")

        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "all streams of this identity" in details
        assert "name_bytes_per_identity" in details
        assert first_again.resource_errors
        assert await third.answer()


async def test_stream__many_bytes_of_one_caller__are_not_read_while_others_are_served() -> None:
    # As little as may be: after the burst of the first ones a request of 8 MB waits for two minutes.
    limits = Limits(request_bytes=8 * MIB, caller_bytes_per_s=64 * 1024, caller_bytes_burst=16 * MIB)
    async with running(config(auth=AuthMode.TOKEN, limits=limits)) as run:
        good, bad = as_identity(run, "good"), as_identity(run, "bad")
        await good.ask(node=NODE, type_url=CLUSTER.url)
        await good.answer()
        flood = asyncio.gather(
            *(bad.ask(node=NODE, type_url=ENDPOINT.url, response_nonce="n" * 8_000_000) for _ in range(6))
        )

        # All six are there in a fraction of a second.
        with pytest.raises(TimeoutError):
            await until(lambda: requests(run, "endpoint") > 3, longest_s=1.0)
        await good.ask(type_url=ENDPOINT.url, resource_names=["e"])

        assert await good.answer()
        flood.cancel()


def requests(run: Running, kind: str) -> float:
    """How many were taken in."""
    return run.sample("parley_ads_requests_total", variant="sotw", type=kind)
