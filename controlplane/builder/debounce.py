"""Waits until nobody writes for a moment, but never longer than a bound: a burst of edits becomes one build
(decisions D26).
"""

from collections.abc import Callable


def wait_for_quiet(
    *,
    generation: Callable[[], int],
    hurried: Callable[[], bool] = lambda: False,
    quiet_s: float,
    at_most_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Wait until what `generation` returns has not changed for `quiet_s` seconds, or `at_most_s` seconds have passed by
    `clock`, which is monotonic and in seconds; or until `hurried`, which is asked about each new generation, is true.
    """
    deadline = clock() + at_most_s
    seen = generation()
    while not hurried() and (left := deadline - clock()) > 0:
        sleep(min(quiet_s, left))
        now = generation()
        if now == seen:
            return
        seen = now
