"""When the next build of an environment may begin (decisions D26).

Of itself a build waits for nobody: it begins at once where none was lately, else after a pause as long as the last one
took, so that building takes half of a worker's core at most, and what is written meanwhile goes with it. Whoever sets a
quiet time (`PARLEY_DEBOUNCE_MS`) lets a burst of edits become one build instead.
"""

from collections.abc import Callable
from typing import Final

# In seconds. However cheap building is, every snapshot is work for each process of ADS and for clients; and however
# costly, nobody waits longer.
LEAST_PAUSE_S: Final = 0.05
MOST_PAUSE_S: Final = 2.0
_LOOK_S: Final = 0.05


def pause_left(*, took_s: float, ago_s: float) -> float:
    """How many seconds after now the next build may begin, if the last one took `took_s` and ended `ago_s` seconds ago,
    both by the clock of whoever made it (which may be ahead of ours, so that `ago_s` is negative).
    """
    pause = min(max(took_s, LEAST_PAUSE_S), MOST_PAUSE_S)
    return min(max(pause - ago_s, 0.0), pause)


def wait_for_turn(
    *, pause_s: float, hurried: Callable[[], bool], clock: Callable[[], float], sleep: Callable[[float], None]
) -> None:
    """Wait until `pause_s` seconds have passed by `clock`, which is monotonic and in seconds, or until `hurried`, which
    is asked again and again, is true.
    """
    until = clock() + pause_s
    while (left := until - clock()) > 0 and not hurried():
        sleep(min(_LOOK_S, left))


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
