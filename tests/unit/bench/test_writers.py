"""How late clients had what was written."""

import pytest

from bench.resources import cluster_name
from bench.writers import Written, latencies_ms

WRITTEN = [Written(3, 10, 100.0, 0.01), Written(3, 11, 101.0, 0.01)]


def test_latencies__client_that_had_something_newer__had_it_then() -> None:
    seen = [(7, cluster_name(3), 1, 99.0), (7, cluster_name(3), 11, 101.5)]

    assert latencies_ms(WRITTEN, seen, lambda _: [7]) == [1500.0, 500.0]


def test_latencies__client_that_had_it_before_the_answer__is_not_late() -> None:
    seen = [(7, cluster_name(3), 10, 99.9), (7, cluster_name(3), 11, 101.0)]

    assert latencies_ms(WRITTEN, seen, lambda _: [7]) == [0.0, 0.0]


def test_latencies__client_that_never_had_the_last_one__is_told() -> None:
    with pytest.raises(RuntimeError, match="client 7 never had version 11"):
        latencies_ms(WRITTEN, [(7, cluster_name(3), 10, 100.5)], lambda _: [7])
