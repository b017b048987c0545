"""Admission and counts at, below and above their limits (reliability S8)."""

import asyncio
import time

import pytest

from adsserver.limits.admission import Admission, DeniedNames, LoopLag, MemoryBound
from adsserver.limits.budgets import Budgets, RefusedStreamError
from xdscore.callers import CallerKey
from xdscore.limits import Limits

SOMEBODY, GOOD, BAD = (CallerKey(identity=name) for name in ("somebody", "good", "bad"))


def admission(lag_s: float = 0.0, **limits: int) -> Admission:
    lag = LoopLag(lambda _: None)
    lag.current_s = lag_s
    return doors_behind(Limits(**limits), lag)


def doors_behind(limits: Limits, lag: LoopLag, memory: MemoryBound | None = None) -> Admission:
    memory = memory or MemoryBound(0, lambda: 0, lambda _: None)
    return Admission(limits, lag, memory, Budgets(limits, time.monotonic))


async def test_admission__up_to_the_limit__enters_and_one_more_is_refused() -> None:
    doors = admission(streams_per_replica=2)
    budget = await doors.enter(SOMEBODY)
    await doors.enter(SOMEBODY)

    with pytest.raises(RefusedStreamError, match="holds 2 streams"):
        await doors.enter(SOMEBODY)

    doors.leave(budget)
    await doors.enter(SOMEBODY)
    assert doors.open == 2


async def test_admission__above_the_rate__waits_for_its_turn() -> None:
    doors = admission(streams_admitted_per_s=50)
    started = asyncio.get_running_loop().time()

    for _ in range(6):
        await doors.enter(SOMEBODY)

    # Only from below: how soon a sleeper runs again is the machine's business.
    assert asyncio.get_running_loop().time() - started >= 0.09


async def test_admission__wait_beyond_the_longest__is_refused_at_once() -> None:
    doors = admission(streams_admitted_per_s=1, admission_wait_ms=1)
    await doors.enter(SOMEBODY)
    refused = doors.enter(SOMEBODY)

    with pytest.raises(RefusedStreamError, match="Too many streams are being opened"):
        refused.send(None)  # one step, in which nothing is waited for

    assert doors.open == 1


async def test_admission__loop_is_late__pauses_and_goes_on_when_it_is_not() -> None:
    lag = LoopLag(lambda _: None)
    lag.current_s = 0.2
    doors = doors_behind(Limits(), lag)
    entering = asyncio.ensure_future(doors.enter(SOMEBODY))
    await asyncio.sleep(0.1)
    paused = not entering.done()

    lag.current_s = 0.01
    await entering

    assert paused


async def test_admission__loop_stays_late__is_refused_after_the_longest_wait() -> None:
    doors = admission(lag_s=0.2, admission_wait_ms=100)

    with pytest.raises(RefusedStreamError, match="overloaded"):
        await doors.enter(SOMEBODY)

    assert doors.open == 0


async def test_loop_lag__blocked_loop__is_measured() -> None:
    seen: list[float] = []
    lag = LoopLag(seen.append)
    watch = asyncio.create_task(lag.watch())
    await asyncio.sleep(0)

    until = asyncio.get_running_loop().time() + 0.15
    while asyncio.get_running_loop().time() < until:
        pass
    await asyncio.sleep(0.06)
    watch.cancel()

    assert max(seen) >= 0.08


def test_budget__streams_of_one_node__bounded() -> None:
    budgets = Budgets(Limits(streams_per_node=2), time.monotonic)
    caller, other = budgets.enter(GOOD), budgets.enter(BAD)
    caller.enter_node("n")
    caller.enter_node("n")

    with pytest.raises(RefusedStreamError, match="This node has 2 streams"):
        caller.enter_node("n")

    other.enter_node("n")
    caller.leave_node("n")
    caller.enter_node("n")


def test_budgets__places_of_one_identity__bounded_from_the_first_moment() -> None:
    budgets = Budgets(Limits(streams_per_identity=2), time.monotonic)
    first = budgets.enter(BAD)
    budgets.enter(BAD)

    with pytest.raises(RefusedStreamError, match="This identity has 2 streams"):
        budgets.enter(BAD)

    budgets.enter(GOOD)
    budgets.leave(first)
    budgets.enter(BAD)


async def test_admission__one_caller_at_full_speed__others_wait_for_one_of_its_streams_only() -> None:
    doors = admission(streams_admitted_per_s=50, admission_wait_ms=5_000)
    order: list[str] = []

    async def open_one(key: CallerKey) -> None:
        await doors.enter(key)
        order.append(key.identity)

    storm = [asyncio.create_task(open_one(BAD)) for _ in range(100)]
    await asyncio.sleep(0)
    await asyncio.wait_for(open_one(GOOD), 2)
    for task in storm:
        task.cancel()
    await asyncio.gather(*storm, return_exceptions=True)

    assert order.index("good") <= 3
    assert doors.open == len(order)


async def test_admission__who_comes_when_a_place_is_free__does_not_pass_who_waits_for_it() -> None:
    doors = admission(streams_admitted_per_s=10)
    order: list[str] = []

    async def open_one(name: str) -> None:
        await doors.enter(CallerKey(address=name))
        order.append(name)

    # The first makes up for what was missed before.
    await open_one("first")
    await open_one("second")
    waiting = asyncio.create_task(open_one("waiting"))
    await asyncio.sleep(0)
    # What arrives is worked on before what is due: with ever new addresses, who waits would wait for ever.
    newcomer = asyncio.create_task(open_one("newcomer"))
    time.sleep(0.12)  # noqa: ASYNC251 - a place is free, and the loop has not looked yet
    await asyncio.gather(waiting, newcomer)

    assert order == ["first", "second", "waiting", "newcomer"]


async def test_admission__caller_that_spent_what_it_has__waits_while_others_enter() -> None:
    doors = admission(streams_admitted_per_s=10_000, admission_wait_ms=100)
    bad = await doors.enter(BAD)
    await doors.enter(GOOD)
    bad.spend(60.0)

    with pytest.raises(RefusedStreamError, match="opened by this identity"):
        await doors.enter(BAD)
    await doors.enter(GOOD)

    assert (doors.open, bad.places) == (3, 1)


async def test_admission__caller_that_comes_and_goes__is_paced_while_others_enter() -> None:
    doors = admission(streams_admitted_per_s=10_000, caller_openings_per_s=20, admission_wait_ms=100)
    await doors.enter(GOOD)
    began = time.monotonic()

    for _ in range(28):
        doors.leave(await doors.enter(BAD))
    took_s = time.monotonic() - began
    await asyncio.wait_for(doors.enter(GOOD), 0.04)

    # Twenty at once; of the others each waits 50 ms.
    assert 0.3 < took_s < 1.0


PAY, WEB = CallerKey("spiffe://td/pay"), CallerKey("spiffe://td/web")


def test_denied_names__one_more_than_allowed__is_said_once_in_an_hour() -> None:
    denied = DeniedNames(Limits(denied_names_per_h=2))

    def refuse(name: str, *, at: float, caller: CallerKey = PAY) -> bool:
        return denied.refused(caller, [("cluster", name)], at)

    assert not refuse("a", at=1.0)
    assert not refuse("b", at=2.0)
    assert not refuse("a", at=3.0)  # distinct names count
    assert not refuse("c", at=3.0, caller=WEB)
    assert refuse("c", at=4.0)
    assert not refuse("d", at=5.0)
    assert [refuse(name, at=3700.0) for name in "abc"] == [False, False, True]


def test_denied_names__many_at_once__are_one_alarm_and_bounded() -> None:
    denied = DeniedNames(Limits(denied_names_per_h=2, streams_per_replica=1))
    names = [("cluster", str(number)) for number in range(100)]

    assert denied.refused(PAY, names, 1.0)
    assert not denied.refused(PAY, names, 1.0)


def test_denied_names__more_callers_than_are_told_apart__count_as_one_and_nobody_is_forgotten() -> None:
    denied = DeniedNames(Limits(denied_names_per_h=2, streams_per_replica=1))
    assert not denied.refused(PAY, [("cluster", "a"), ("cluster", "b")], 1.0)

    others = [
        denied.refused(CallerKey(address=f"192.0.2.{number}"), [("cluster", str(number))], 1.0) for number in range(9)
    ]

    assert others == [False, False, True] + [False] * 6
    assert denied.refused(PAY, [("cluster", "c")], 1.0)


async def test_admission__memory_at_80_percent__is_refused_until_it_is_less() -> None:
    used = 80 * 1024 * 1024 - 1
    told: list[bool] = []
    memory = MemoryBound(100 * 1024 * 1024, lambda: used, told.append)
    doors = doors_behind(Limits(), LoopLag(lambda _: None), memory)
    memory.look()
    await doors.enter(SOMEBODY)

    used += 1
    memory.look()
    memory.look()
    with pytest.raises(RefusedStreamError, match="short of memory"):
        await doors.enter(SOMEBODY)
    used -= 1
    memory.look()
    await doors.enter(SOMEBODY)

    assert (doors.open, told) == (2, [True, False])


async def test_memory__without_a_bound__is_never_short_and_not_looked_at() -> None:
    memory = MemoryBound(0, lambda: 1 << 60, lambda _: None)

    await memory.watch()  # ends
    memory.look()

    assert not memory.short
