"""Is this web process alive, and can it serve. For probes and `xdsctl doctor`; open, and says nothing else."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.broker.probe import probe
from controlplane.builder.condition import builder_state
from controlplane.fitness.judging import Check, Finding
from controlplane.fitness.look import wrong_here
from controlplane.fitness.selectors import Unfit, processes_unfit
from xdscore.build import BUILD_VERSION, HEADER
from xdscore.status_http import Readiness

_WELL: Final = "ok"
_WAIT_S: Final = 1.0  # a probe that takes longer is a probe that fails
_threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="readyz")
_lock = threading.Lock()
_question: "Future[Seen] | None" = None
_UNFIT_SHOWN: Final = 5
_WEB: Final = "web"


@dataclass(frozen=True, slots=True)
class Seen:
    """The answer of the database to a probe: `worker` is what `builder_state` says, `wrong` and `unfit` as their rooms
    do.
    """

    wrong: tuple[Finding, ...]
    worker: str = ""
    unfit: tuple[Unfit, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of this process: why it cannot serve, and for each thing it uses `ok`, or what is the matter."""

    reasons: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def readiness(self) -> Readiness:
        """The condition in the form that every role reports."""
        warnings = (f"{part}: {state}" for part, state in self.parts if state != _WELL)
        return Readiness(self.reasons, tuple(warnings))


@require_safe
@never_cache
def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer that the process runs."""
    return _line(_WELL)


@require_safe
@never_cache
def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer with `condition` in lines: `ok` and each part, or why nothing can be served; and the version, which is in
    a header, too.
    """
    found = condition()
    lines = found.reasons or (_WELL, *(f"{part}: {state}" for part, state in found.parts))
    answer = _line("\n".join((*lines, f"version: {BUILD_VERSION}")), status=503 if found.reasons else 200)
    answer[HEADER] = BUILD_VERSION
    return answer


def condition() -> Condition:
    """The condition of this process. Without the database, or with another version's tables, nothing can be served.

    What only costs latency is told and does not count: the broker is a hint (law 4), and a worker that does not build
    keeps nobody from reading and writing. A database that says nothing is waited for no longer than a second.
    """
    try:
        seen = _asked().result(_WAIT_S)
    except (DatabaseError, TimeoutError):
        return Condition(("the database does not answer",))
    if not_ready := tuple(each.text for each in seen.wrong if each.stops):
        return Condition(not_ready)
    used = (("database", _WELL), ("broker", probe.state()), ("worker", seen.worker))
    return Condition(parts=used + _fitness(seen))


def _fitness(seen: Seen) -> tuple[tuple[str, str], ...]:
    """For each thing by which this process must fit the installation, `ok` or a sentence; and the same of other
    processes that do not fit, without where they are, for anybody may read this.
    """
    wrong = {each.check: each.text for each in seen.wrong}
    here = tuple((check.value, wrong.get(check, _WELL)) for check in Check)
    others = dict.fromkeys((f"{each.role} process", each.text) for each in seen.unfit if each.role != _WEB)
    return here + tuple(others)[:_UNFIT_SHOWN]


def _asked() -> "Future[Seen]":
    """The question to the database that is under way, or a new one: at most one waits, however many probes ask."""
    global _question  # noqa: PLW0603  the one question of the process
    with _lock:
        if _question is None or _question.done():
            _question = _threads.submit(_ask)
        return _question


def _ask() -> Seen:
    try:
        wrong = wrong_here()
        return Seen(wrong) if any(each.stops for each in wrong) else Seen(wrong, builder_state(), processes_unfit())
    finally:
        connection.close()  # this thread's own


def _line(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8", status=status)
