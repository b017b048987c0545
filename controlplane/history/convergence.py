"""How fast a change came to those that it was for, from when each of them took it. Pure (truth.md H6)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_MAX_POINTS: Final = 360


@dataclass(frozen=True, slots=True)
class Convergence:
    """How a change spread.

    `took`, `of`: how many clients took it, and how many should.
    `p50_s`, `p99_s`: after how many seconds half, and 99 %, of those that should had it; None: not yet.
    `last_s`: when the last of those that took it did; None: nobody did.
    `steps`: (second, clients that have it by then), growing; it begins at (0, …).
    """

    took: int
    of: int
    p50_s: float | None
    p99_s: float | None
    last_s: float | None
    steps: tuple[tuple[float, int], ...]

    @property
    def waiting(self) -> int:
        """How many clients should have it and have not taken it."""
        return max(self.of - self.took, 0)


def convergence(taken: Iterable[tuple[float, int]], of: int) -> Convergence:
    """How a change spread that `of` clients should take. `taken`: at which second after it was published how many
    took it, in any order; who took it before it was published counts from second 0.

    Shares are of all that should take it: a change that half of them refuse never reaches its p99.
    """
    counts: dict[float, int] = {}
    for second, clients in taken:
        moment = max(second, 0.0)
        counts[moment] = counts.get(moment, 0) + clients
    steps: list[tuple[float, int]] = [(0.0, counts.pop(0.0, 0))]
    for second in sorted(counts):
        steps.append((second, steps[-1][1] + counts[second]))
    took = steps[-1][1]
    return Convergence(
        took=took,
        of=max(of, took),
        p50_s=_reached(steps, max(of, took), 0.5),
        p99_s=_reached(steps, max(of, took), 0.99),
        last_s=steps[-1][0] if took else None,
        steps=_thinned(steps),
    )


def _reached(steps: list[tuple[float, int]], of: int, share: float) -> float | None:
    wanted = math.ceil(of * share)
    return next((second for second, have in steps if wanted and have >= wanted), None)


def _thinned(steps: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """At most so many steps that a picture can show them, evenly in time, the first and the last among them. What is
    left out only makes a rise steeper: each step tells what is true at its second.
    """
    if len(steps) <= _MAX_POINTS:
        return tuple(steps)
    width = steps[-1][0] / (_MAX_POINTS - 2)
    kept = {int(second // width): (second, have) for second, have in steps}  # the last of each slice
    thinned = [*kept.values()]
    return tuple(thinned if thinned[0][0] == 0.0 else [steps[0], *thinned])
