"""The figures of the report, from what was measured. Pure."""

import math
from collections.abc import Sequence

Sample = tuple[float, float]
"""When, in seconds, and how much."""


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that so many percent of the values do not exceed (nearest rank). Raises ValueError for none."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]


def slope_per_minute(samples: Sequence[Sample], *, warm_up_s: float, at_least_s: float) -> float | None:
    """How much it grows in a minute, by least squares, without the first `warm_up_s` of the samples.

    None when less than `at_least_s` are left: a slope of that says nothing.
    """
    if not samples:
        return None
    settled = [each for each in samples if each[0] >= samples[0][0] + warm_up_s]
    if len(settled) < 2 or settled[-1][0] - settled[0][0] < at_least_s:
        return None
    mean_at = sum(at for at, _ in settled) / len(settled)
    mean = sum(value for _, value in settled) / len(settled)
    spread = sum((at - mean_at) ** 2 for at, _ in settled)
    return 60 * sum((at - mean_at) * (value - mean) for at, value in settled) / spread
