"""A restarted ADS process takes the place of its dead self, and of nobody who lives."""

import pytest

from adsserver.store.facts import FactBuffer
from controlplane.clients.facts import replica_place
from controlplane.clients.selectors import connected_counts, replica_list
from controlplane.ops.condition_metrics import ConditionCollector
from tests.support.facts import stream

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.usefixtures("database"),
]

HERE = replica_place("host", "/home", "127.0.0.1:18000", "MainProcess")
NEXT_DOOR = replica_place("host", "/home", "127.0.0.1:18001", "MainProcess")
SECOND_WORKER = replica_place("host", "/home", "127.0.0.1:18000", "ads-2")


def started(place: str, number: int) -> FactBuffer:
    """An ADS process with a stream, which has said so."""
    buffer = FactBuffer(place=place)
    buffer.opened(stream(number))
    write(buffer)
    return buffer


def write(buffer: FactBuffer) -> None:
    buffer._take(everything=True)
    buffer._flush()


def running() -> set[str]:
    return {each.id for each in replica_list() if not each.stopped}


def replicas() -> dict[str, float]:
    found = next(each for each in ConditionCollector().collect() if each.name == "parley_replicas")
    return {sample.labels["state"]: sample.value for sample in found.samples}


def test_start__in_the_place_of_one_that_died__replaces_it_at_once_with_its_streams() -> None:
    started(HERE, 1)

    heir = started(HERE, 2)

    assert running() == {heir._id}
    assert connected_counts() == {"default": 1}
    assert replicas() == {"reporting": 1, "silent": 0}


@pytest.mark.parametrize("place", [NEXT_DOOR, SECOND_WORKER, ""], ids=["other-port", "other-worker", "port-of-chance"])
def test_start__at_another_place__leaves_the_others_alone(place: str) -> None:
    first = started(place if not place else HERE, 1)

    second = started(place, 2)

    assert running() == {first._id, second._id}
    assert connected_counts() == {"default": 2}


def test_replaced__that_lives_and_writes__is_back_with_its_streams_and_stays() -> None:
    first = started(HERE, 1)
    second = started(HERE, 2)

    first.opened(stream(3))
    write(first)
    second.opened(stream(4))
    write(second)

    assert running() == {first._id, second._id}
    assert connected_counts() == {"default": 4}


def test_replaced__that_drains_and_ends__stays_ended() -> None:
    first = started(HERE, 1)
    second = started(HERE, 2)

    first._take(everything=True)
    first._flush(stopping=True)

    assert running() == {second._id}
    assert connected_counts() == {"default": 1}
