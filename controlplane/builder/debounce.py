"""Waits until nobody writes for a moment, but never longer than a bound: a burst of edits becomes one build
(decisions D26).
"""

from collections.abc import Callable


def wait_for_quiet(
    *,
    generation: Callable[[], int],
    quiet_s: float,
    at_most_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Wait until `generation` has stood still for `quiet_s` seconds, or `at_most_s` have passed, on the waiter's own
    monotonic clock.
    """
    deadline = clock() + at_most_s
    seen = generation()
    while (left := deadline - clock()) > 0:
        sleep(min(quiet_s, left))
        now = generation()
        if now == seen:
            return
        seen = now
