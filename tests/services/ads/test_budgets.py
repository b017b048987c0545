"""What one caller may cost: places from the moment its call arrives, names, and turns beside others (threat 10)."""

import asyncio
from contextlib import suppress
from unittest import mock

import grpc
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from structlog.testing import capture_logs

from adsserver import budgets as counting
from adsserver import server
from adsserver.budgets import OPENING_S, Budget, Budgets, RefusedStreamError
from adsserver.config import AuthMode
from adsserver.engine.session import Session
from adsserver.ports import Reader
from tests.services.ads.test_methods import METHODS
from tests.support.ads import Running, config, raw_call, running
from tests.support.ads_client import ADS, NODE, Client, cluster, connect, until
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

        assert code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED}
        if "Fetch" not in path or "status" in path:
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
        async with grpc.aio.insecure_channel(run.address) as channel:
            calls = [raw_call(channel, path, metadata=[("authorization", "Bearer unknown")]) for _ in range(50)]
            codes = {await call.code() for call in calls}
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
        # Reading a request is one, taking it in another one, and beginning the stream a third.
        assert paid.call_count >= composed.call_count + 3


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


# Whose call it is


# Turns


class Clock:
    """A time that passes when told so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def two_callers(clock: Clock, *, busy: bool = True, **limits: int) -> tuple[Budgets, Budget, Budget]:
    """Both are there; on a busy loop, on which others leave no time."""
    budgets = Budgets(Limits(**limits), clock)
    good, bad = budgets.enter(GOOD), budgets.enter(BAD)
    if busy:
        budgets.loop_time.spend(3600.0, clock())
    return budgets, good, bad


def test_budget__work_beyond_its_share__is_owed_until_time_passed() -> None:
    clock = Clock()
    _, good, bad = two_callers(clock, caller_work_ms_per_s=100, caller_work_burst_ms=100)

    for _ in range(300):
        bad.spend(0.001)

    assert (round(bad.owes_s, 6), good.owes_s) == (2.0, 0.0)
    clock.now_s = 2.001
    assert bad.owes_s == 0.0


def test_budget__one_long_piece__costs_more_than_many_short_ones() -> None:
    _, long, short = two_callers(Clock(), caller_work_ms_per_s=100, caller_work_burst_ms=1)

    long.spend(0.05)
    for _ in range(50):
        short.spend(0.001)

    assert long.owes_s > 9 * short.owes_s


def test_budget__caller_that_was_alone__owes_nothing_for_it_when_another_comes() -> None:
    # A fleet behind one address or identity may work for hours before somebody else opens a stream.
    budgets = Budgets(Limits(), Clock())
    alone = budgets.enter(BAD)
    alone.spend(100.0)
    alone.received(1 << 40)

    budgets.enter(GOOD)

    assert alone.owes_s == 0.0
    alone.spend(1.0)
    assert alone.owes_s > 1.0


def test_budget__lines_about_a_caller__are_so_many_and_say_how_many_were_left_out() -> None:
    clock = Clock()
    _, good, bad = two_callers(clock)

    said = [bad.line() for _ in range(25)]
    clock.now_s += 2.0

    assert said == [0] * 20 + [None] * 5
    assert [bad.line(), bad.line(), bad.line(), good.line()] == [5, 0, None, 0]


def test_budget__while_the_loop_has_time__nobody_waits_for_what_is_owed() -> None:
    clock = Clock()
    _, _, bad = two_callers(clock, busy=False, caller_work_ms_per_s=10, caller_work_burst_ms=1)

    for _ in range(1_000):
        bad.spend(0.001)
        clock.now_s += 0.002
    slow = bad.owes_s
    for _ in range(1_000):
        bad.spend(0.001)
        clock.now_s += 0.0005

    assert (slow, bad.owes_s > 0.1) == (0.0, True)


def test_budget__caller_that_left_and_comes_back__owes_what_it_owed() -> None:
    clock = Clock()
    budgets, _, bad = two_callers(clock)
    bad.spend(10.0)
    budgets.leave(bad)
    budgets.forget()

    again = budgets.enter(BAD)

    assert again.owes_s > 0
    budgets.leave(again)
    clock.now_s = 1_000_000.0
    budgets.forget()
    assert len(budgets) == 1


def test_budgets__addresses_without_end__are_not_all_remembered() -> None:
    budgets = Budgets(Limits(streams_per_replica=10), Clock())
    held = budgets.enter(GOOD)

    for number in range(1_000):
        budgets.leave(budgets.enter(CallerKey(address=str(number))))

    assert len(budgets) <= 21
    assert budgets.enter(GOOD) is held


def test_budget__calls_opened_again_and_again__are_paced_after_three_comebacks_of_the_whole_fleet() -> None:
    clock = Clock()
    budgets, good, bad = two_callers(clock, busy=False, caller_openings_per_s=10)
    held = [budgets.enter(BAD) for _ in range(99)]
    for _ in range(3):
        for each in held:
            budgets.leave(each)
            budgets.enter(BAD).opened()
        bad.opened()
    before = bad.owes_opening_s

    for _ in range(10):
        bad.opened()

    assert (before, round(bad.owes_opening_s, 6)) == (0.0, 1.0)
    # What is read of its open streams does not wait for that, nor does anybody else.
    assert (bad.owes_s, good.owes_opening_s) == (0.0, 0.0)
    clock.now_s = 1.001
    assert bad.owes_opening_s == 0.0


async def test_turns__caller_that_owes__one_call_after_the_other_and_the_other_at_once() -> None:
    clock = Clock()
    _, good, bad = two_callers(clock, caller_work_ms_per_s=1000, caller_work_burst_ms=1)
    bad.spend(0.004)
    order: list[int] = []

    async def call(number: int) -> None:
        await bad.turn()
        order.append(number)
        bad.spend(0.004)

    waiting = [asyncio.create_task(call(number)) for number in range(3)]
    await asyncio.sleep(0.02)
    await good.turn()
    before = tuple(order)
    for done in range(3):
        clock.now_s += 0.0041
        await until(lambda done=done: len(order) > done)
    assert all(call.done() for call in waiting)

    assert (before, order) == ((), [0, 1, 2])


def test_budgets__refused_call__costs_the_caller_too() -> None:
    budgets, _, bad = two_callers(Clock(), streams_per_identity=1, caller_work_burst_ms=1)

    async def try_again() -> None:
        for _ in range(10):
            with pytest.raises(RefusedStreamError):
                await asyncio.wait_for(budgets.admit(BAD), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(try_again())
    assert bad.owes_s > OPENING_S


class Counting(RuleBasedStateMachine):
    """Whatever enters and leaves, in whatever order: the counts are those of what is there (a leave for each enter)."""

    def __init__(self) -> None:
        super().__init__()
        self.budgets = Budgets(Limits(streams_per_identity=3, streams_per_address=2, streams_per_node=2), Clock())
        self.held: list[tuple[Budget, list[str], int]] = []

    @rule(caller=st.sampled_from([GOOD, BAD, CallerKey(address="192.0.2.1")]))
    def enter(self, caller: CallerKey) -> None:
        places = sum(budget.key == caller for budget, _, _ in self.held)
        try:
            self.held.append((self.budgets.enter(caller), [], 0))
        except RefusedStreamError:
            assert places == (3 if caller.identity else 2)

    @rule(at=st.integers(0), node=st.sampled_from("ab"), names=st.integers(-5, 5))
    def use(self, at: int, node: str, names: int) -> None:
        if not self.held:
            return
        number = at % len(self.held)
        budget, nodes, held = self.held[number]
        with suppress(RefusedStreamError):
            budget.enter_node(node)
            nodes.append(node)
        change = max(names, -held)
        budget.hold_names(change)
        self.held[number] = (budget, nodes, held + change)

    @rule(at=st.integers(0))
    def leave(self, at: int) -> None:
        if not self.held:
            return
        budget, nodes, names = self.held.pop(at % len(self.held))
        for node in nodes:
            budget.leave_node(node)
        budget.hold_names(-names)
        self.budgets.leave(budget)

    @rule()
    def forget(self) -> None:
        self.budgets.forget()

    @invariant()
    def counts_are_those_of_what_is_there(self) -> None:
        callers = {budget.key: budget for budget, _, _ in self.held}
        assert self.budgets.empty is not bool(callers)
        assert self.budgets.contended is (len(callers) > 1)
        for key, budget in callers.items():
            mine = [each for each in self.held if each[0].key == key]
            assert all(each[0] is budget for each in mine)
            assert budget.places == len(mine)
            assert budget.name_bytes == sum(names for _, _, names in mine)


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
