"""Threads of one process that write to SQLite wait for each other in the order in which they came."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from controlplane.database.sqlite.base import DatabaseWrapper, Queue, queue_of
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def on_sqlite() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("another database has several writers")


def writes(do: Callable[[], None]) -> None:
    try:
        with transaction.atomic():
            do()
    finally:
        connections.close_all()


def until_waiting(count: int) -> None:
    queue = queue_of(str(connection.settings_dict["NAME"]))
    eventually(lambda: len(queue._waiting), lambda waiting: waiting == count, within_s=10, every_s=0.005)


def test_writers__that_came_one_after_the_other__have_their_turns_in_that_order() -> None:
    order: list[int] = []
    with ThreadPoolExecutor(6) as threads, transaction.atomic():
        for number in range(6):
            threads.submit(writes, lambda number=number: order.append(number))  # type: ignore[misc]
            until_waiting(number + 1)
        assert order == []

    assert order == [0, 1, 2, 3, 4, 5]


def fails() -> None:
    raise ValueError("rolled back")


def closes() -> None:
    connection.close()


@pytest.mark.parametrize("ends", [fails, closes])
def test_writer__that_fails_or_loses_its_connection__lets_the_next_one_go_on(ends: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(writes, ends).exception(timeout=5)

        assert threads.submit(writes, lambda: None).exception(timeout=5) is None


def test_writer__that_waits_too_long__is_told_so_and_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.1)
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            late = threads.submit(writes, lambda: None)
            assert isinstance(late.exception(timeout=5), OperationalError)
        threads.submit(writes, lambda: None).result(timeout=5)


def test_writer__that_waited_in_the_queue__waits_for_other_processes_only_for_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_ms: list[int] = []
    begin = DatabaseWrapper._begin

    def noted(wrapper: DatabaseWrapper) -> None:
        left_ms.append(busy_ms(wrapper))
        begin(wrapper)

    monkeypatch.setattr(DatabaseWrapper, "_begin", noted)
    usual_ms = busy_ms(connection)
    afterwards_ms: list[int] = []
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            late = threads.submit(writes, lambda: afterwards_ms.append(busy_ms(connection)))
            until_waiting(1)
            time.sleep(0.2)
        late.result(timeout=5)

    first, second = left_ms
    assert first == usual_ms
    assert 0 < second <= usual_ms - 100
    assert afterwards_ms == [usual_ms]


def busy_ms(wrapper: BaseDatabaseWrapper) -> int:
    with wrapper.cursor() as cursor:
        return int(cursor.execute("PRAGMA busy_timeout").fetchone()[0])


def test_queue__of_a_process_that_was_forked_meanwhile__is_empty_there() -> None:
    assert queue_of("a file").enter(0)

    child = os.fork()
    if not child:
        os._exit(0 if queue_of("a file").enter(0) else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    queue_of("a file").leave()


def test_queue__who_gives_up__is_passed_over() -> None:
    queue, entered = Queue(), list[str]()
    assert queue.enter(0)

    def wait(name: str, within_s: float) -> None:
        if queue.enter(within_s):
            entered.append(name)
            queue.leave()

    impatient = threading.Thread(target=wait, args=("impatient", 0.05))
    patient = threading.Thread(target=wait, args=("patient", 5.0))
    impatient.start()
    time.sleep(0.02)
    patient.start()
    impatient.join()
    queue.leave()
    patient.join()

    assert entered == ["patient"]
    eventually(lambda: queue.enter(0), within_s=1)
