"""Is this web process alive, and can it serve. For probes and `xdsctl doctor`; open, and says nothing else."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.broker_probe import probe
from controlplane.builder.condition import builder_state
from xdscore.build import BUILD_VERSION, HEADER
from xdscore.status_http import Readiness

_WELL: Final = "ok"
_WAIT_S: Final = 1.0  # a probe that takes longer is a probe that fails
_threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="readyz")
_lock = threading.Lock()
_question: "Future[str] | None" = None
_migrated = False  # once all migrations were seen applied; they are never taken back under a running process


@dataclass(frozen=True, slots=True)
class Condition:
    """Why this process cannot serve, and how each thing it uses is: `ok`, or what is the matter."""

    reasons: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def readiness(self) -> Readiness:
        """The same as every role tells it."""
        warnings = (f"{part}: {state}" for part, state in self.parts.items() if state != _WELL)
        return Readiness(self.reasons, tuple(warnings))


@require_safe
@never_cache
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return _line(_WELL)


@require_safe
@never_cache
def readyz(_request: HttpRequest) -> HttpResponse:
    """What `condition` says, in lines: `ok` and each part, or why nothing can be served; and the version, which is in a
    header, too.
    """
    found = condition()
    lines = found.reasons or (_WELL, *(f"{part}: {state}" for part, state in found.parts.items()))
    answer = _line("\n".join((*lines, f"version: {BUILD_VERSION}")), status=503 if found.reasons else 200)
    answer[HEADER] = BUILD_VERSION
    return answer


def condition() -> Condition:
    """The database answers and has this version's tables; without it nothing can be served.

    What only costs latency is told and does not count: the broker is a hint (law 4), and a worker that does not build
    keeps nobody from reading and writing. A database that says nothing is waited for no longer than a second.
    """
    try:
        worker = _asked().result(_WAIT_S)
    except (DatabaseError, TimeoutError):
        return Condition(("the database does not answer",))
    if not worker:
        return Condition(("the database has migrations to apply: manage.py migrate",))
    return Condition(parts={"database": _WELL, "broker": probe.state(), "worker": worker})


def _asked() -> "Future[str]":
    """The question to the database that is under way, or a new one: at most one waits, however many probe."""
    global _question  # noqa: PLW0603  the one question of the process
    with _lock:
        if _question is None or _question.done():
            _question = _threads.submit(_ask)
        return _question


def _ask() -> str:
    """What `builder_state` says; empty while there are migrations to apply."""
    try:
        return builder_state() if _tables_current() else ""
    finally:
        connection.close()  # this thread's own


def _tables_current() -> bool:
    global _migrated  # noqa: PLW0603  a fact of the whole process, which only ever becomes true
    if not _migrated:
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return _migrated
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


def _line(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8", status=status)
