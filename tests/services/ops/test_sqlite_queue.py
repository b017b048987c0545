"""Threads of one process that write to SQLite wait for each other in the order in which they came."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, connections, transaction

from controlplane.database.sqlite.base import Queue
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


def test_writers__that_came_one_after_the_other__have_their_turns_in_that_order() -> None:
    order: list[int] = []
    with ThreadPoolExecutor(6) as threads, transaction.atomic():
        for number in range(6):
            threads.submit(writes, lambda number=number: order.append(number))  # type: ignore[misc]
            time.sleep(0.05)  # until it waits
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
