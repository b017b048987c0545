"""Shares of requests: Envoy draws one number for a request, and each fraction and weight on its way reads that one.

Two fractions of 50 % one after the other therefore leave nothing between them, and a fraction decides, too, which of a
route's weighted clusters its requests can reach. A share is kept as the set of all remainders that the number may
have modulo a million, which every denominator of `FractionalPercent` divides: one bit each.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from xdscore.schema.walk import AnyMessage

_NUMBERS: Final = 1_000_000
EVERYTHING: Final = (1 << _NUMBERS) - 1
"""The share of all requests."""
_DENOMINATORS: Final = {0: 100, 1: 10_000, 2: 1_000_000}  # envoy.type.v3.FractionalPercent.DenominatorType


def percent(share: int) -> float:
    """How many percent of all requests a share is."""
    return share.bit_count() * 100 / _NUMBERS


def fraction(value: AnyMessage) -> int:
    """The share that a `FractionalPercent` is."""
    denominator = _DENOMINATORS[value.denominator]
    return _between(denominator, 0, min(value.numerator, denominator))


def weighed(share: int, weights: Sequence[int]) -> list[float]:
    """How many percent of all requests each weight gets of a share."""
    total = sum(weights)
    if total == 0:
        return [0.0 for _ in weights]
    if share == EVERYTHING or _NUMBERS % total:
        # With such a total the drawn number's remainder says next to nothing of its remainder modulo a million.
        return [percent(share) * weight / total for weight in weights]
    found: list[float] = []
    start = 0
    for weight in weights:
        found.append(percent(share & _between(total, start, start + weight)))
        start += weight
    return found


@lru_cache(maxsize=64)
def _between(modulus: int, start: int, end: int) -> int:
    """The set of the numbers whose remainder modulo `modulus`, a divisor of a million, is from `start` to below
    `end`.
    """
    return (((1 << (end - start)) - 1) << start) * _each(modulus)


@lru_cache(maxsize=64)
def _each(modulus: int) -> int:
    """The set of the multiples of `modulus`, a divisor of a million."""
    return EVERYTHING // ((1 << modulus) - 1)
