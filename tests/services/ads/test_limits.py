"""Admission and counts at, below and above their limits (reliability S8)."""

import asyncio

import pytest

from adsserver.callers import CallerKey, caller_key
from adsserver.limits import Admission, DeniedNames, LoopLag, MemoryBound, RefusedStreamError, StreamCounts
from xdscore.limits import Limits


def admission(lag_s: float = 0.0, **limits: int) -> Admission:
    lag = LoopLag(lambda _: None)
    lag.current_s = lag_s
    return Admission(Limits(**limits), lag, MemoryBound(Limits(), lambda: 0, lambda _: None))


async def test_admission__up_to_the_limit__enters_and_one_more_is_refused() -> None:
    doors = admission(streams_per_replica=2)
    await doors.enter()
    await doors.enter()

    with pytest.raises(RefusedStreamError, match="holds 2 streams"):
        await doors.enter()

    doors.leave()
    await doors.enter()
    assert doors.open == 2


async def test_admission__above_the_rate__waits_for_its_turn() -> None:
    doors = admission(streams_admitted_per_s=50)
    started = asyncio.get_running_loop().time()

    for _ in range(6):
        await doors.enter()

    # Only from below: how soon a sleeper runs again is the machine's business.
    assert asyncio.get_running_loop().time() - started >= 0.09


async def test_admission__wait_beyond_the_longest__is_refused_at_once() -> None:
    doors = admission(streams_admitted_per_s=1, admission_wait_ms=1)
    await doors.enter()
    refused = doors.enter()

    with pytest.raises(RefusedStreamError, match="Too many streams are being opened"):
        refused.send(None)  # one step, in which nothing is waited for

    assert doors.open == 1


async def test_admission__loop_is_late__pauses_and_goes_on_when_it_is_not() -> None:
    lag = LoopLag(lambda _: None)
    lag.current_s = 0.2
    doors = Admission(Limits(), lag, MemoryBound(Limits(), lambda: 0, lambda _: None))
    entering = asyncio.ensure_future(doors.enter())
    await asyncio.sleep(0.1)
    paused = not entering.done()

    lag.current_s = 0.01
    await entering

    assert paused


async def test_admission__loop_stays_late__is_refused_after_the_longest_wait() -> None:
    doors = admission(lag_s=0.2, admission_wait_ms=100)

    with pytest.raises(RefusedStreamError, match="overloaded"):
        await doors.enter()

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


def test_counts__streams_of_one_node__bounded() -> None:
    counts = StreamCounts(Limits(streams_per_node=2))
    counts.enter("", "n")
    counts.enter("", "n")

    with pytest.raises(RefusedStreamError, match="This node has 2 streams"):
        counts.enter("", "n")

    counts.leave("", "n")
    counts.enter("", "n")


def test_counts__streams_of_one_identity__bounded_over_its_nodes() -> None:
    counts = StreamCounts(Limits(streams_per_identity=2))
    counts.enter("spiffe://a/b", "n1")
    counts.enter("spiffe://a/b", "n2")

    with pytest.raises(RefusedStreamError, match="This identity has 2 streams"):
        counts.enter("spiffe://a/b", "n3")

    counts.enter("spiffe://a/c", "n3")


def test_counts__without_identity__nodes_do_not_share_a_bound() -> None:
    counts = StreamCounts(Limits(streams_per_identity=1))

    for number in range(10):
        counts.enter("", f"n{number}")


def test_counts__all_left__nothing_is_kept() -> None:
    counts = StreamCounts(Limits())
    counts.enter("i", "n")

    counts.leave("i", "n")

    assert not counts


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


@pytest.mark.parametrize(
    ("identity", "peer", "key"),
    [
        ("spiffe://td/pay", "ipv4:192.0.2.1:4711", CallerKey("spiffe://td/pay")),
        ("", "ipv4:192.0.2.1:4711", CallerKey(address="192.0.2.1")),
        ("", "ipv6:%5B2001:db8::1%5D:4711", CallerKey(address="2001:db8::/64")),
        ("", "ipv6:%5B2001:db8::ffff:1%5D:1", CallerKey(address="2001:db8::/64")),
        ("", "ipv6:%5Bfe80::1%25eth0%5D:1", CallerKey(address="fe80::/64")),
        ("", "ipv6:%5B::ffff:192.0.2.1%5D:4711", CallerKey(address="192.0.2.1")),
        ("", "unix:/run/parley.sock", CallerKey(address="unix")),
        ("", "", CallerKey(address="")),
    ],
)
def test_caller_key__of_a_call__is_its_identity_or_its_address(identity: str, peer: str, key: CallerKey) -> None:
    assert caller_key(identity, peer) == key


async def test_admission__memory_at_80_percent__is_refused_until_it_is_less() -> None:
    used = 80 * 1024 * 1024 - 1
    told: list[bool] = []
    limits = Limits(memory_mib=100)
    memory = MemoryBound(limits, lambda: used, told.append)
    doors = Admission(limits, LoopLag(lambda _: None), memory)
    memory.look()
    await doors.enter()

    used += 1
    memory.look()
    memory.look()
    with pytest.raises(RefusedStreamError, match="short of memory"):
        await doors.enter()
    used -= 1
    memory.look()
    await doors.enter()

    assert (doors.open, told) == (2, [True, False])


async def test_memory__without_a_bound__is_never_short_and_not_looked_at() -> None:
    memory = MemoryBound(Limits(), lambda: 1 << 60, lambda _: None)

    await memory.watch()  # ends
    memory.look()

    assert not memory.short
