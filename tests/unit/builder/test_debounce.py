"""Waiting for a quiet moment, on a clock made for it."""

from collections.abc import Callable

import pytest

from controlplane.builder.debounce import wait_for_quiet


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def waited(generation: Callable[[float], int]) -> float:
    clock = Clock()
    wait_for_quiet(
        generation=lambda: generation(clock.now), quiet_s=0.1, at_most_s=2.0, clock=lambda: clock.now, sleep=clock.sleep
    )
    return clock.now


def test_wait_for_quiet__nobody_writes__waits_once() -> None:
    assert waited(lambda _: 7) == pytest.approx(0.1)


def test_wait_for_quiet__writes_stop__returns_one_quiet_time_later() -> None:
    assert waited(lambda now: min(int(now / 0.05), 10)) == pytest.approx(0.6)


def test_wait_for_quiet__writes_never_stop__returns_at_the_bound() -> None:
    assert waited(lambda now: int(now * 1000)) == pytest.approx(2.0)


def test_wait_for_quiet__news_that_nobody_waits_for__ends_the_wait_at_once() -> None:
    clock, asked = Clock(), iter([False, False, True])

    wait_for_quiet(
        generation=lambda: int(clock.now * 1000),
        hurried=lambda: next(asked),
        quiet_s=0.1,
        at_most_s=2.0,
        clock=lambda: clock.now,
        sleep=clock.sleep,
    )

    assert clock.now == pytest.approx(0.2)
