"""The database backend (Django looks for it under this name).

SQLite has one writer. Who finds it busy sleeps and looks again, longer each time, so that of eight threads that write
one after the other some were passed by for four seconds. Those of one process queue here instead, and SQLite's own wait
is left for what other processes write.
"""

import threading
from collections import deque
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base


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
        if mine.acquire(timeout=within_s):
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


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to SQLite. A transaction that writes begins when it is its turn among those of this process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in: Queue | None = None

    def _start_transaction_under_autocommit(self) -> None:
        if self.transaction_mode == "IMMEDIATE":  # type: ignore[attr-defined]  # not in the stubs
            queue = _queues.setdefault(str(self.settings_dict["NAME"]), Queue())
            if not queue.enter(float(self.settings_dict["OPTIONS"].get("timeout", 5.0))):
                raise OperationalError("database is locked")
            self._in = queue
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # not in the stubs
        except BaseException:
            self._leave()
            raise

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
