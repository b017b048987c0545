"""When a build may begin, on a clock made for it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.builder.pacing import LEAST_PAUSE_S, MOST_PAUSE_S, pause_left, wait_for_quiet, wait_for_turn


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


@pytest.mark.parametrize(
    ("took_s", "ago_s", "left_s"),
    [
        (0.001, 0.0, LEAST_PAUSE_S),
        (0.001, 60.0, 0.0),
        (0.3, 0.0, 0.3),
        (0.3, 0.1, 0.2),
        (0.3, 0.3, 0.0),
        (60.0, 0.0, MOST_PAUSE_S),
        (0.3, -3600.0, 0.3),  # the clock of whoever made the last one is an hour ahead
    ],
)
def test_pause_left__after_a_build__as_long_as_it_took_within_bounds(
    took_s: float, ago_s: float, left_s: float
) -> None:
    assert pause_left(took_s=took_s, ago_s=ago_s) == pytest.approx(left_s)


@given(st.lists(st.floats(0.0, 1.9), min_size=1))
def test_pause_left__builds_without_end__take_half_of_the_time_at_most(costs: list[float]) -> None:
    building = passed = 0.0
    for took in costs:
        building += took
        passed += took + pause_left(took_s=took, ago_s=0.0)

    assert building <= passed / 2 + 1e-9


def test_wait_for_turn__nothing_hurries__waits_for_the_pause_and_no_longer() -> None:
    clock = Clock()

    wait_for_turn(pause_s=0.12, hurried=lambda: False, clock=lambda: clock.now, sleep=clock.sleep)

    assert clock.now == pytest.approx(0.12)


def test_wait_for_turn__no_pause_left__asks_for_nothing() -> None:
    wait_for_turn(pause_s=0.0, hurried=pytest.fail, clock=lambda: 0.0, sleep=pytest.fail)  # type: ignore[arg-type]


def test_wait_for_turn__news_that_nobody_waits_for__ends_the_wait() -> None:
    clock = Clock()

    wait_for_turn(pause_s=2.0, hurried=lambda: clock.now > 0.09, clock=lambda: clock.now, sleep=clock.sleep)

    assert clock.now == pytest.approx(0.1)
