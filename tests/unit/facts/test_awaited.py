"""What a rollout's judge waits for is written soon, and the judge is told once it is (rollouts.md R3)."""

import time

from django.db import OperationalError

from adsserver.store.facts import FactBuffer
from tests.support.facts import Clock, Database, acknowledged, content, flush, respond, send, stream
from tests.support.waiting import eventually
from xdscore.limits import Limits


def test_thread__awaited_by_a_judge__is_written_without_waiting_for_calm_and_the_judge_is_told_after_it() -> None:
    database, told = Database(), list[tuple[str, int]]()
    written = database.all_subscriptions
    buffer = FactBuffer(
        write=database, limits=Limits(), tell_judge=lambda key: told.append((key, len(database.all_subscriptions)))
    )
    one, response = stream(), respond(content("a"))
    send(buffer, response, one)
    buffer.start()
    eventually(lambda: database.tried > 0, within_s=5)
    assert (written, told) == ({}, [])

    buffer.learnt(one, acknowledged(response))
    asked = time.monotonic()
    buffer.awaited(one)
    eventually(lambda: bool(told), within_s=5, every_s=0.001)

    assert told == [("default", 1)]
    # 50 ms, and what a busy machine takes: without being awaited it would be half a second at least.
    assert time.monotonic() - asked < 0.4
    buffer.stop(5)


def test_thread__cohort_of_thousands_answers__costs_at_most_twenty_writes_a_second() -> None:
    database, told = Database(), list[str]()
    buffer = FactBuffer(write=database, limits=Limits(), tell_judge=told.append)
    one, response = stream(), respond(content("a"))
    buffer.opened(one)
    buffer.start()
    started = time.monotonic()
    while time.monotonic() - started < 1.0:
        buffer.learnt(one, acknowledged(response))
        buffer.awaited(one)
        time.sleep(0.001)
    buffer.stop(5)

    assert len(database.batches) <= 20 * 1.0 + 2
    assert len(told) <= len(database.batches)


def test_flush__database_away__the_judge_is_told_once_it_is_written() -> None:
    database, clock, told = Database(), Clock(), list[str]()
    buffer = FactBuffer(write=database, clock=clock, limits=Limits(), tell_judge=told.append)
    send(buffer, respond(content("a")), stream())
    buffer.awaited(stream())
    database.failure = OperationalError("away")
    flush(buffer)
    assert told == []

    database.failure = None
    clock.now += 2
    flush(buffer)
    flush(buffer)

    assert told == ["default"]
