"""The sums of docs/scale.md."""

import pytest

from bench.scale_model import Costs, Replica, change_s, fit, memory_mib, replicas

COSTS = Costs(base_mib=100, resource_kib=2, stream_kib=64, change_ms=100, response_ms=0.5)


def test_memory__of_a_process__is_its_own_and_that_of_resources_and_streams() -> None:
    assert memory_mib(COSTS, clients=1_024, resources=10_240) == pytest.approx(100 + 20 + 64)


def test_change__to_a_thousand_clients__is_its_own_time_and_theirs() -> None:
    assert change_s(COSTS, clients=1_000) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("replica", "needed"),
    [
        (Replica(streams=5_000, memory_mib=10_000, change_s=100), 20),
        (Replica(streams=1_000_000, memory_mib=100 + 200 + 62.5, change_s=100), 100),
        (Replica(streams=1_000_000, memory_mib=1_000_000, change_s=1.1), 50),
    ],
)
def test_replicas__the_scarcest_of_three__says_how_many(replica: Replica, needed: int) -> None:
    assert replicas(COSTS, replica, clients=100_000, resources=102_400) == needed


def test_replicas__resources_alone_are_too_many__is_refused() -> None:
    with pytest.raises(ValueError, match="without a client"):
        replicas(COSTS, Replica(memory_mib=200), clients=1, resources=102_400)


def test_fit__two_points__is_their_line() -> None:
    assert fit((1_000, 5.0), (3_000, 9.0)) == pytest.approx((3.0, 0.002))
