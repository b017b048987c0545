"""Shares of requests: fractions and weights read one number, so that one tells something of the other."""

import pytest
from envoy.type.v3.percent_pb2 import FractionalPercent
from hypothesis import given
from hypothesis import strategies as st

from xdscore.routing.shares import EVERYTHING, fraction, percent, weighed

NUMBERS = 1_000_000


def of(numerator: int, denominator: int = FractionalPercent.HUNDRED) -> int:
    return fraction(FractionalPercent(numerator=numerator, denominator=denominator))


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [
        (0, FractionalPercent.HUNDRED, 0),
        (30, FractionalPercent.HUNDRED, 30),
        (100, FractionalPercent.HUNDRED, 100),
        (250, FractionalPercent.HUNDRED, 100),
        (1, FractionalPercent.TEN_THOUSAND, 0.01),
        (1, FractionalPercent.MILLION, 0.0001),
    ],
)
def test_fraction__of_each_denominator__is_its_percent(numerator: int, denominator: int, expected: float) -> None:
    assert percent(of(numerator, denominator)) == pytest.approx(expected)


def test_fractions__one_after_the_other__leave_only_what_the_larger_has_more() -> None:
    first, second = of(30), of(50)

    assert percent(second & ~first) == pytest.approx(20)
    assert percent(of(30) & ~of(50)) == 0


def test_weights__behind_a_fraction_of_the_same_hundred__may_never_reach_the_last_cluster() -> None:
    assert weighed(of(50), [50, 50]) == pytest.approx([50, 0])
    assert weighed(EVERYTHING, [50, 50]) == pytest.approx([50, 50])
    assert weighed(of(50), [1, 2]) == pytest.approx([50 / 3, 100 / 3])  # three divides no million
    assert weighed(EVERYTHING, [0, 0]) == [0, 0]


@given(st.integers(0, 100), st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_weights__of_any_share__add_up_to_it(numerator: int, weights: list[int]) -> None:
    share = of(numerator)

    assert sum(weighed(share, weights)) == pytest.approx(percent(share) if sum(weights) else 0)


@given(st.integers(0, 100), st.integers(0, 10_000))
def test_fractions__of_two_denominators__are_counted_as_numbers_are_drawn(hundredth: int, ten_thousandth: int) -> None:
    both = of(hundredth) & of(ten_thousandth, FractionalPercent.TEN_THOUSAND)

    drawn = sum(number % 100 < hundredth for number in range(ten_thousandth))
    assert percent(both) == pytest.approx(drawn / 100)
