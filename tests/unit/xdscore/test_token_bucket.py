"""Buckets at, below and above their level (reliability S8)."""

import pytest

from xdscore.token_bucket import TokenBucket


def test_bucket__burst__is_free_and_the_next_waits() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=3, now=0)

    delays = [bucket.take(0) for _ in range(5)]

    assert delays == pytest.approx([0, 0, 0, 0.1, 0.2])


def test_bucket__time_passes__fills_up_to_its_burst_and_no_further() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=3, now=0)
    for _ in range(3):
        bucket.take(0)

    delays = [bucket.take(1000) for _ in range(4)]

    assert delays == pytest.approx([0, 0, 0, 0.1])


def test_bucket__asked_whether_there_is_one__takes_it_and_says_when_the_next_comes() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=3, now=0)

    waits = [bucket.try_take(0) for _ in range(5)]

    assert waits == pytest.approx([0, 0, 0, 0.1, 0.1])


def test_bucket__refused_again_and_again__owes_nothing() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=1, now=0)
    bucket.try_take(0)
    for number in range(9):
        assert bucket.try_take(number / 100) > 0

    assert bucket.try_take(0.1) == 0


def test_bucket__widened__has_the_difference_at_once_and_never_less_than_before() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=1, now=0)
    bucket.spend(2, 0)

    bucket.widen(5)
    bucket.widen(3)

    assert [bucket.try_take(0) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
    assert [bucket.try_take(1000) for _ in range(6)] == pytest.approx([0, 0, 0, 0, 0, 0.1])
