"""What an ADS process counts for pictures: one number for each thing that is drawn apart, and no more."""

import pytest

from adsserver.engine.events import Respond
from adsserver.store.facts import FactBuffer
from adsserver.store.tallies import Tallies, WaitingTallies
from controlplane.clients.facts import FactBatch
from controlplane.history.values import MAX_KINDS, REST, Tallied, What
from tests.support.facts import NothingSecret, content, rejected, respond, stream, subscribed
from xdscore.errors import ResourceError, StatusCode
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER


class Database:
    """Keeps the batches it is given; away, it raises."""

    def __init__(self) -> None:
        self.batches: list[FactBatch] = []
        self.away = False

    def __call__(self, batch: FactBatch) -> None:
        if self.away:
            raise OSError("away")
        self.batches.append(batch)

    @property
    def tallies(self) -> list[Tallied]:
        return [each for batch in self.batches for each in batch.tallies]


@pytest.fixture
def database() -> Database:
    return Database()


def told(*codes: StatusCode) -> Respond:
    errors = tuple(ResourceError(f"name-{number}", code, "XDS2001", "no") for number, code in enumerate(codes))
    return Respond(CLUSTER, "1", "w1", (), errors=errors)


def buffer_with(database: Database, now: list[float]) -> FactBuffer:
    return FactBuffer(write=database, clock=lambda: now[0], limits=Limits(), contents=NothingSecret())


def flush(buffer: FactBuffer) -> None:
    buffer._take(everything=True)
    buffer._flush()


def test_errors__of_responses_that_tell_others_in_turn__are_counted_as_told() -> None:
    tallies, some, other = Tallies(), told(StatusCode.NOT_FOUND), told(StatusCode.PERMISSION_DENIED)
    for response in (some, other, other, some, told()):
        tallies.errors("default", response)

    assert {key.detail: count for key, count in tallies.take().items()} == {"NOT_FOUND": 2, "PERMISSION_DENIED": 2}


def test_buffer__nacks_and_errors_of_many_streams__are_one_number_for_each_thing(database: Database) -> None:
    buffer = buffer_with(database, [1_000.0])
    for number in range(1, 4):
        one = stream(number)
        buffer.opened(one)
        buffer.learnt(one, subscribed(wildcard=True))
        buffer.sent(one, told(StatusCode.NOT_FOUND, StatusCode.NOT_FOUND, StatusCode.PERMISSION_DENIED))
        buffer.learnt(one, rejected(respond(content("a"))))

    flush(buffer)

    counted = {(each.what, each.word, each.detail): each.times for each in database.tallies}
    assert counted == {
        (What.NACKS, "cluster", "envoy 1.40"): 3,
        (What.ERRORS, "cluster", "NOT_FOUND"): 6,
        (What.ERRORS, "cluster", "PERMISSION_DENIED"): 3,
    }


def test_buffer__database_was_away__tells_counts_once_with_the_age_they_have(database: Database) -> None:
    now, one = [1_000.0], stream()
    buffer = buffer_with(database, now)
    buffer.opened(one)
    buffer.sent(one, told(StatusCode.NOT_FOUND))
    database.away = True
    flush(buffer)
    database.away, now[0] = False, 1_300.0

    flush(buffer)
    flush(buffer)

    (only,) = database.tallies
    assert (only.times, only.age_s) == (1, 300.0)


def test_nacks__of_more_kinds_than_are_told_apart__are_one_until_the_minute_is_over() -> None:
    tallies = Tallies()
    for minor in range(MAX_KINDS + 5):
        tallies.nack(stream(user_agent_version=f"1.{minor}.0"), "cluster", now=60.0)
    tallies.nack(stream(user_agent_version="1.0.9"), "cluster", now=61.0)

    taken = tallies.take()

    assert len(taken) == MAX_KINDS + 1
    assert {key.detail: count for key, count in taken.items() if count > 1} == {REST: 5, "envoy 1.0": 2}
    tallies.nack(stream(user_agent_version="1.99.0"), "cluster", now=120.0)
    assert [key.detail for key in tallies.take()] == ["envoy 1.99"]


def test_waiting__longer_than_there_is_room__loses_the_oldest_first() -> None:
    waiting, tallies = WaitingTallies(), Tallies()
    for second in range(0, 5 * 4_010, 5):
        tallies.errors("default", told(StatusCode.NOT_FOUND))
        waiting.add(tallies.take(), float(second))

    ages = [each.age_s for each in waiting.first(10_000, 5.0 * 4_009)]

    assert len(waiting) == len(ages) == 4_000
    assert ages[-1] == 0.0
