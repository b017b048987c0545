"""How one caller among others is counted and paced: its openings, its turns, and what it gives back (threat 10)."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from adsserver.limits.budgets import OPENING_S, REQUEST_S, Budget, Budgets, RefusedStreamError
from tests.support.ads_client import until
from xdscore.callers import CallerKey
from xdscore.limits import Limits

GOOD, BAD = CallerKey(identity="good"), CallerKey(identity="bad")


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


def test_budget__request_that_is_taken_in__costs_more_than_its_own_time() -> None:
    _, plain, asking = two_callers(Clock(), caller_work_ms_per_s=100, caller_work_burst_ms=1)
    for each in (plain, asking):
        each.spend(0.001)

    for _ in range(10):
        with asking.of_request():
            pass
    for _ in range(100):
        # Of what is no request, nothing but its own time.
        for each in (plain, asking):
            with each:
                pass

    assert asking.owes_s - plain.owes_s == pytest.approx(10 * REQUEST_S / 0.1, rel=0.5)


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


async def test_first_turn__many_calls_of_one_caller__few_read_at_once_until_those_before_were_read() -> None:
    _, good, bad = two_callers(Clock(), busy=False, caller_bytes_burst=4 * 64 * 1024, caller_bytes_per_s=64 * 1024)
    read: list[int] = []

    async def call(number: int) -> None:
        was_read = await bad.first_turn()
        read.append(number)
        await asyncio.sleep(0)
        bad.received(64 * 1024)
        was_read()

    calls = [asyncio.create_task(call(number)) for number in range(20)]
    await asyncio.sleep(0.01)
    at_once = len(read)
    (await asyncio.wait_for(good.first_turn(), 0.01))()
    for each in calls:
        each.cancel()

    # Four while nobody knows how large they are, and one more than the bytes there were.
    assert 4 <= at_once <= 8


async def test_first_turn__calls_that_stay_silent__keep_the_others_from_reading_for_a_moment_only() -> None:
    _, _, bad = two_callers(Clock(), busy=False)
    for _ in range(4):
        await bad.first_turn()

    fifth = asyncio.create_task(bad.first_turn())
    await asyncio.sleep(0.005)
    before = fifth.done()
    await asyncio.wait_for(fifth, 1)

    assert not before


def test_budgets__refused_call__costs_the_caller_too() -> None:
    budgets, _, bad = two_callers(Clock(), streams_per_identity=1, caller_work_burst_ms=1)

    async def try_again() -> None:
        for _ in range(10):
            with pytest.raises(RefusedStreamError):
                await asyncio.wait_for(budgets.admit(BAD), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(try_again())
    assert bad.owes_s > OPENING_S


def test_enter__of_an_address_without_a_limit_of_its_own__as_many_as_a_process_holds_and_some() -> None:
    limits = Limits(streams_per_replica=2, concurrent_streams=3)
    budgets, address = Budgets(limits, Clock()), CallerKey(address="192.0.2.1")
    for _ in range(5):
        budgets.enter(address)

    with pytest.raises(RefusedStreamError, match="This address has 5 streams"):
        budgets.enter(address)


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
