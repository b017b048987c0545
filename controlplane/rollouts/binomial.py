"""The exact binomial test: whether a count is more than chance would give. Pure."""

import math


def at_least(count: int, trials: int, chance: float) -> float:
    """How likely it is that of so many trials at least `count` succeed, where each does with this chance."""
    if count <= 0:
        return 1.0
    if chance <= 0.0:
        return 0.0
    if chance >= 1.0:
        return 1.0
    # By logarithms, because the numbers of combinations are larger than a float can be.
    odds, rest = math.log(chance), math.log1p(-chance)
    terms = (
        math.exp(_combinations(trials, hits) + hits * odds + (trials - hits) * rest)
        for hits in range(count, trials + 1)
    )
    return min(math.fsum(terms), 1.0)


def _combinations(trials: int, hits: int) -> float:
    return math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
