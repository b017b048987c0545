"""Is this web process alive, can it serve, what does it count. For probes and scrapers; open, and says nothing else."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from controlplane.broker_probe import probe
from controlplane.builder.condition import builder_state
from controlplane.ops.condition_metrics import ConditionCollector
from xdscore.build import BUILD_VERSION, HEADER, build_info

# The figures of the whole installation, beside those of this process.
_condition = CollectorRegistry()
_condition.register(ConditionCollector())
_WAIT_S: Final = 1.0  # a probe that takes longer is a probe that fails
_threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="readyz")
_lock = threading.Lock()
_question: "Future[str] | None" = None
_migrated = False  # once all migrations were seen applied; they are never taken back under a running process


@require_safe
@never_cache
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return _line("ok")


@require_safe
@never_cache
def readyz(_request: HttpRequest) -> HttpResponse:
    """The database answers and has this version's tables; without it nothing can be served.

    What only costs latency is told and does not count: the broker is a hint (law 4), and a worker that does not build
    keeps nobody from reading and writing. A database that says nothing is waited for no longer than a second.
    Whatever it answers, the last line and a header say which version this is.
    """
    try:
        worker = _asked().result(_WAIT_S)
    except (DatabaseError, TimeoutError):
        return _readiness("the database does not answer", status=503)
    if not worker:
        return _readiness("the database has migrations to apply: manage.py migrate", status=503)
    return _readiness(f"ok\ndatabase: ok\nbroker: {probe.state()}\nworker: {worker}")


@require_safe
@never_cache
def metrics(_request: HttpRequest) -> HttpResponse:
    """Prometheus text."""
    told = generate_latest() + generate_latest(_condition) + build_info("web")
    return HttpResponse(told, content_type=CONTENT_TYPE_LATEST)


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


def _readiness(text: str, status: int = 200) -> HttpResponse:
    answer = _line(f"{text}\nversion: {BUILD_VERSION}", status)
    answer[HEADER] = BUILD_VERSION
    return answer


def _line(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8", status=status)
