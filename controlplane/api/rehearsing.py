"""A rehearsal's answer: begun by a view, awaited at the cost of one task of the event loop, and withdrawn before it is
told.

The view opens the rehearsal, so that whatever refuses it is an ordinary problem document. Whoever waits holds no
thread, no database connection and no turn to write; what the clients said is looked at ten times a second. A caller
that goes away ends its rehearsal, and so does the deadline where this process dies (`catalog.services.rehearsing`).
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views import View

from controlplane.api.answers import json_answer
from controlplane.api.problems import answer_for, finding_json
from controlplane.api.replay import settle
from controlplane.catalog.rehearsals import Foreseen
from controlplane.common.errors import Busy
from controlplane.database.waiting_outside import turn_give_back
from controlplane.journal.answers import Claim
from controlplane.rollouts.rehearsal import RehearsalVerdict, Report
from controlplane.rollouts.rehearsal_reading import Rehearsing, rehearsal_look
from controlplane.rollouts.services import rehearsal_end

# Of one process; each costs some queries ten times a second.
AT_ONCE: Final = 8
_LOOK_S: Final = 0.1
# A client that took a listener asks for its route in a moment, or never (rollouts.md "Gates", warming).
_MAY_ASK_S: Final = 1.0
_RETRY_AFTER_S: Final = 5
_T = TypeVar("_T")


class Begun(HttpResponse):
    """The answer of a view that began a rehearsal; `rehearses` puts what came of it in its place. `claim`: the
    Idempotency-Key under which that is kept.
    """

    def __init__(self, rehearsing: Rehearsing) -> None:
        super().__init__()
        self.rehearsing = rehearsing
        self.claim: Claim | None = None


class _Room:
    """How many rehearsals this process waits for. Belongs to one event loop."""

    def __init__(self) -> None:
        self.taken = 0

    def __enter__(self) -> None:
        if self.taken >= AT_ONCE:
            raise Busy("As many rehearsals as may go on at once do. Nothing was sent.", retry_after_s=_RETRY_AFTER_S)
        self.taken += 1

    def __exit__(self, *_exception: object) -> None:
        self.taken -= 1


_room = _Room()


def rehearses(
    view: Callable[..., HttpResponseBase], cls: type[View]
) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """Wrap a view so that the rehearsal that it begins is awaited, withdrawn and told. `cls`: the view's class."""
    answer = sync_to_async(view)

    async def rehearsing(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        try:
            with _room:
                first = await answer(request, **kwargs)
                return await _told(first) if isinstance(first, Begun) else first
        except Exception as error:  # noqa: BLE001  one answer for whatever the database said
            return answer_for(error, path=cls.__name__)

    # What the schema and DRF's own tools look for on a view.
    rehearsing.cls = cls  # type: ignore[attr-defined]  # attributes of a function
    rehearsing.initkwargs = {}  # type: ignore[attr-defined]
    rehearsing.csrf_exempt = True  # type: ignore[attr-defined]
    return rehearsing


async def _told(begun: Begun) -> HttpResponse:
    give_back = turn_give_back.get()
    if give_back is not None:
        give_back()
    try:
        report = await _watched(begun.rehearsing)
    finally:
        # Also where the caller went away, which cancels this task.
        await asyncio.shield(_elsewhere(rehearsal_end, begun.rehearsing))
    told = json_answer(report_json(report, begun.rehearsing.foreseen))
    if begun.claim is not None:
        await _elsewhere(settle, begun.claim, told, told_once=False)
    return told


async def _watched(rehearsing: Rehearsing) -> Report:
    """What the clients said, as soon as nobody will say anything else, or the time is up."""
    ends = time.monotonic() + rehearsing.within_s
    before: Report | None = None
    changed_at = time.monotonic()
    while True:
        report = await _elsewhere(rehearsal_look, rehearsing)
        now = time.monotonic()
        if before is None or report != before:
            before, changed_at = report, now
        if report.settled or now >= ends or (report.quiet and now - changed_at >= _MAY_ASK_S):
            return report
        await asyncio.sleep(min(_LOOK_S, max(0.0, ends - now)))


async def _elsewhere(work: Callable[..., _T], *arguments: object, **named: object) -> _T:
    """Do work with the database on another thread, which returns its connection afterwards."""

    def done() -> _T:
        try:
            return work(*arguments, **named)
        finally:
            close_old_connections()

    return await sync_to_async(done, thread_sensitive=False)()


def report_json(report: Report, foreseen: Foreseen) -> dict[str, object]:
    """What came of a rehearsal, as interfaces.md section 8 has it. What would break a blocking route case is refused,
    whatever the clients say: a write of it would be.
    """
    verdict = RehearsalVerdict.REFUSED if foreseen.broken else report.verdict
    results = [
        {
            "client": each.client,
            "node_id": each.node_id,
            "kind": each.kind,
            "type": each.type,
            "name": each.name,
            "state": each.state.value,
            "message": each.message,
        }
        for each in report.results
    ]
    findings = [finding_json(each) for each in foreseen.findings]
    return {"verdict": verdict.value, "results": results, "findings": findings}
