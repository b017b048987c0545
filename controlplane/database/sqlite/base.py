"""The database backend (Django looks for it under this name).

SQLite has one writer. Who finds it busy sleeps and looks again, longer each time, so that of eight threads that write
one after the other some were passed by for four seconds. Those of one process queue here instead, and SQLite's own wait
is left for what other processes write. Both waits together are never longer than the one that the settings allow
(decisions C30).
"""

import os
import threading
import time
from collections import deque
from typing import Any, Final

from django.db import OperationalError
from django.db.backends.sqlite3 import base

_DRIVERS_WAIT_S: Final = 5.0  # where the settings say nothing
_NO_WAIT_S: Final = 0.01  # so little is not worth two more statements


class Queue:
    """A lock that is passed on in the order in which it was asked for."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def enter(self, within_s: float) -> bool:
        """Wait until it is this thread's turn; returns whether it came within so many seconds."""
        with self._guard:
            if not self._held:
                self._held = True
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        if mine.acquire(timeout=max(within_s, 0.0)):
            return True
        with self._guard:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return False
        return True  # it came just now

    def leave(self) -> None:
        """Let the next one have it."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False


_queues: dict[str, Queue] = {}
# Whoever was in a queue when a process was forked is not in the new process, and would never leave it there.
os.register_at_fork(after_in_child=_queues.clear)


def queue_of(database: str) -> Queue:
    """The queue of this process for the file with this path."""
    return _queues.setdefault(database, Queue())


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to SQLite. A transaction that writes begins when it is its turn among those of this process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in: Queue | None = None

    def _start_transaction_under_autocommit(self) -> None:
        if self.transaction_mode == "IMMEDIATE":  # type: ignore[attr-defined]  # not in the stubs
            self._begin_in_turn(float(self.settings_dict["OPTIONS"].get("timeout", _DRIVERS_WAIT_S)))
        else:
            self._begin()

    def _begin_in_turn(self, within_s: float) -> None:
        queue, began = queue_of(str(self.settings_dict["NAME"])), time.monotonic()
        if not queue.enter(within_s):
            raise OperationalError("database is locked")
        self._in = queue
        waited_s = time.monotonic() - began
        try:
            if waited_s < _NO_WAIT_S:
                self._begin()
                return
            self._busy_for(max(within_s - waited_s, 0.0))
            try:
                self._begin()
            finally:
                self._busy_for(within_s)
        except BaseException:
            self._leave()
            raise

    def _begin(self) -> None:
        super()._start_transaction_under_autocommit()  # type: ignore[misc]  # not in the stubs

    def _busy_for(self, seconds: float) -> None:
        """Let SQLite wait for what other processes write for so long."""
        with self.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # not in the stubs
        self._leave()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # not in the stubs
        finally:
            self._leave()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # not in the stubs
        finally:
            self._leave()

    def _leave(self) -> None:
        queue, self._in = self._in, None
        if queue is not None:
            queue.leave()
