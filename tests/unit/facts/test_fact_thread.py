"""The thread that writes facts: all of them arrive, in few writes, and nobody waits for it."""

import threading
import time

from adsserver.store.facts import FactBuffer
from controlplane.clients.facts import FactBatch
from tests.support.facts import Database, acknowledged, content, rejected, respond, stream
from tests.support.waiting import eventually
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER


def test_thread__facts_from_a_busy_loop__all_arrive_and_the_last_word_says_so() -> None:
    database = Database()
    buffer = FactBuffer(write=database, limits=Limits())
    buffer.start()
    streams, rounds = [stream(number) for number in range(200)], 30
    for each in streams:
        buffer.opened(each)
    response = respond(content("a"))
    for number in range(rounds):
        for each in streams:
            response = respond(content("a", f"v{number}"), nonce=str(number), version=f"w{number}")
            buffer.sent(each, response)
            buffer.learnt(each, acknowledged(response))
        time.sleep(0.01)

    buffer.stop(5)

    assert not buffer._thread.is_alive()
    newest = {each.stream: each for batch in database.batches for each in batch.subscriptions}
    assert {each.says.acked for each in newest.values()} == {f"w{rounds - 1}"}
    assert set(newest) == {each.id for each in streams}
    assert [batch.replica.stopping for batch in database.batches][-1] is True


def test_thread__nack__does_not_wait_for_the_second_to_be_over() -> None:
    database = Database()
    buffer = FactBuffer(write=database, limits=Limits())
    one, response = stream(), respond(content("a"))
    buffer.opened(one)
    buffer.start()
    time.sleep(0.2)  # a first wait has begun

    buffer.learnt(one, rejected(response))

    eventually(lambda: any(batch.nacks for batch in database.batches), within_s=0.5, every_s=0.01)
    buffer.stop(5)


def test_thread__storm_of_nacks__costs_at_most_ten_writes_a_second() -> None:
    database = Database()
    buffer = FactBuffer(write=database, limits=Limits())
    one, response = stream(), respond(content("a"))
    buffer.opened(one)
    buffer.start()
    started = time.monotonic()
    while time.monotonic() - started < 1.5:
        buffer.learnt(one, rejected(response, f"no {time.monotonic()}"))
        time.sleep(0.001)
    buffer.stop(5)

    assert len(database.batches) <= 10 * 1.5 + 2


def test_calls__while_a_write_hangs__return_at_once() -> None:
    hanging, entered = threading.Event(), threading.Event()

    def write(_: FactBatch) -> None:
        entered.set()
        hanging.wait(10)

    buffer = FactBuffer(write=write, limits=Limits())
    buffer.opened(stream())
    buffer.start()
    assert entered.wait(5)

    started = time.perf_counter()
    for number in range(1_000):
        one = stream(number)
        buffer.opened(one)
        buffer.sent(one, respond(kind=CLUSTER))
        buffer.closed(one, "left")
    took_s = time.perf_counter() - started
    hanging.set()
    buffer.stop(5)

    assert took_s < 0.5
