"""The door that needs no broker: a thread in the worker that looks into the database every second (decisions D7).

Whatever Redis loses, delays or never gets, this finds. It runs next to Celery's pool, in the worker's own process.
"""

import os
import threading
from collections.abc import Callable, Sequence

import structlog
from django.db import close_old_connections

log = structlog.get_logger(__name__)

_forking = threading.Event()


def fork_waits() -> bool:
    """Whether this process is about to fork, and waits for its sweepers' jobs to end."""
    return _forking.is_set()


class Sweeper(threading.Thread):
    """Calls each job in turn, then waits; a job that fails is logged and called again the next time.

    The worker forks whenever a process of its pool died. A child that is forked in the middle of a job would inherit
    locks that nobody releases, those of SQLite and of the claims among them; so a fork waits for the end of the job. A
    job that would go on for long asks `fork_waits`.
    """

    def __init__(self, jobs: Sequence[Callable[[], object]], interval_s: float) -> None:
        super().__init__(name="sweeper", daemon=True)
        self._jobs = tuple(jobs)
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._working = threading.RLock()
        os.register_at_fork(before=self._hold, after_in_parent=self._let_go, after_in_child=self._let_go)

    def run(self) -> None:
        """Call every job at each interval until `stop` is called."""
        while not self._stopping.wait(self._interval_s):
            for job in self._jobs:
                with self._working:
                    self._call(job)

    def stop(self) -> None:
        """Tell the thread to end after the job that it runs now."""
        self._stopping.set()

    def _hold(self) -> None:
        _forking.set()
        self._working.acquire()

    def _let_go(self) -> None:
        self._working.release()
        _forking.clear()

    def _call(self, job: Callable[[], object]) -> None:
        close_old_connections()
        try:
            job()
        except Exception:
            log.exception("sweep.failed", job=getattr(job, "__qualname__", repr(job)))
        finally:
            close_old_connections()
