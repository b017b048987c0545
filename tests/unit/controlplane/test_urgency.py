"""Which incident is looked at first."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.incidents.urgency import urgency

HOUR = timedelta(hours=1)
COUNTS = st.integers(min_value=0, max_value=10_000)
AGES = st.timedeltas(min_value=-HOUR, max_value=timedelta(days=60))


@given(nacked=COUNTS, sent=COUNTS, age=AGES)
def test_urgency__any_counts__lies_between_0_and_1(nacked: int, sent: int, age: timedelta) -> None:
    assert 0 <= urgency(nacked=nacked, sent=sent, age=age) <= 1


@given(nacked=COUNTS, sent=COUNTS, age=AGES, lost=COUNTS, connected=COUNTS, long_ago=AGES)
def test_urgency__a_loss__comes_before_every_refusal(
    nacked: int, sent: int, age: timedelta, lost: int, connected: int, long_ago: timedelta
) -> None:
    assert urgency(nacked=lost, sent=connected, age=long_ago, lost=True) >= urgency(nacked=nacked, sent=sent, age=age)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((40, 40, HOUR), (1, 40, HOUR)),  # more clients
        ((10, 40, HOUR), (10, 40, 30 * HOUR)),  # lately
        ((1, 1, HOUR), (30, 40, HOUR)),  # the share, not the number
        ((2, 1, HOUR), (1, 40, HOUR)),  # refused before sending was recorded
    ],
)
def test_urgency__two_incidents__the_one_that_matters_is_first(
    first: tuple[int, int, timedelta], second: tuple[int, int, timedelta]
) -> None:
    assert urgency(nacked=first[0], sent=first[1], age=first[2]) > urgency(
        nacked=second[0], sent=second[1], age=second[2]
    )
