"""`?wait=`: holds a request until its change is published, or settled, at little cost.

One task per process asks the database for all waiting requests together, five times a second; a waiting request is one
future. It holds no database connection, and no more than so many may wait at once (decisions U25).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Final
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views import View
from rest_framework.request import Request

from controlplane.api.problems import answer_for
from controlplane.api.query import Query
from controlplane.builder.selectors import changes_unfinished
from controlplane.common.errors import Busy
from controlplane.incidents.settling import changes_undecided, changes_unsettled

WAIT_PARAMETERS: Final = ("wait", "for")
_POLL_S: Final = 0.2
# What a fleet answers takes seconds, and asking for it costs more than looking for a build.
_POLL_FLEET_S: Final = 0.5
_RETRY_AFTER_S: Final = 5


class Wanted(StrEnum):
    """How far a change has to come before a waiting request is answered: it is built (PUBLISHED); every client has
    answered (SETTLED); or a client has refused it or every one has answered (DECIDED).
    """

    PUBLISHED = "published"
    SETTLED = "settled"
    DECIDED = "decided"


def wait_of(query: Query) -> float:
    """How many seconds the request wants to wait: its parameter `wait`; 0 where it is not given."""
    query.choice("for", tuple(Wanted), Wanted.PUBLISHED)
    return query.seconds("wait", at_most=settings.PARLEY.limits.change_wait_s)


class Waiters:
    """The requests of one process that wait until changes have come far enough. Belongs to one event loop; threads must
    not call it.
    """

    def __init__(
        self, unfinished: Callable[[list[str]], Awaitable[frozenset[str]]], *, poll_s: float = _POLL_S
    ) -> None:
        self._unfinished = unfinished
        self._poll_s = poll_s
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """The number of requests that are waiting now."""
        return sum(len(futures) for futures in self._waiting.values())

    async def wait(self, change_id: str, seconds: float) -> None:
        """Wait until this change has come far enough, at most so many seconds. Raises whatever reading the database
        raised.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(change_id, set()).add(future)
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._poll())
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass
        finally:
            futures = self._waiting.get(change_id, set())
            futures.discard(future)
            if not futures:
                self._waiting.pop(change_id, None)

    async def _poll(self) -> None:
        while self._waiting:
            try:
                unfinished = await self._unfinished(list(self._waiting))
            except Exception as error:  # noqa: BLE001  whoever waits must hear of it, whatever it is
                self._end(list(self._waiting), error)
                return
            self._end([each for each in self._waiting if each not in unfinished], None)
            await asyncio.sleep(self._poll_s)

    def _end(self, change_ids: list[str], error: Exception | None) -> None:
        for change_id in change_ids:
            for future in self._waiting.get(change_id, ()):
                if future.done():
                    continue
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)


_QUESTIONS: Final[Mapping[Wanted, Callable[[list[str]], frozenset[str]]]] = {
    Wanted.PUBLISHED: lambda change_ids: changes_unfinished(public_ids=change_ids),
    Wanted.SETTLED: lambda change_ids: changes_unsettled(public_ids=change_ids),
    Wanted.DECIDED: lambda change_ids: changes_undecided(public_ids=change_ids),
}


def _read(wanted: Wanted, change_ids: list[str]) -> frozenset[str]:
    """The ids among `change_ids` of changes that have not come as far as `wanted`. Returns the database connection
    afterwards: 200 waiters must not hold a pool of 20 (controlplane.database.aliases).
    """
    try:
        return _QUESTIONS[wanted](change_ids)
    finally:
        close_old_connections()


_waiters = {
    wanted: Waiters(
        sync_to_async(partial(_read, wanted), thread_sensitive=False),
        poll_s=_POLL_S if wanted is Wanted.PUBLISHED else _POLL_FLEET_S,
    )
    for wanted in Wanted
}


def waits(
    view: Callable[..., HttpResponseBase], cls: type[View]
) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """Wrap a view of a change so that it can wait (`?wait=`): it is called once to see whether the caller may read the
    change and has to wait, and once more afterwards for the answer. `cls`: the view's class.
    """
    answer = sync_to_async(view)

    async def waiting(request: HttpRequest, *, change_id: UUID, **kwargs: Any) -> HttpResponseBase:
        first = await answer(request, change_id=change_id, **kwargs)
        if request.method != "GET" or first.status_code != 200 or "wait" not in request.GET:
            return first
        seconds = wait_of(Query(Request(request), request.GET))
        wanted = Wanted(request.GET.get("for", Wanted.PUBLISHED))
        if seconds == 0 or not await sync_to_async(_read)(wanted, [str(change_id)]):
            return first
        if sum(each.count for each in _waiters.values()) >= settings.PARLEY.limits.change_waiters:
            busy = Busy("As many requests as may wait for a change are waiting already.", retry_after_s=_RETRY_AFTER_S)
            return answer_for(busy)
        try:
            await _waiters[wanted].wait(str(change_id), seconds)
        except Exception as error:  # noqa: BLE001  one answer for whatever the database said
            return answer_for(error, path=cls.__name__)
        return await answer(request, change_id=change_id, **kwargs)

    # What the schema and DRF's own tools look for on a view.
    waiting.cls = cls  # type: ignore[attr-defined]  # attributes of a function
    waiting.initkwargs = {}  # type: ignore[attr-defined]
    waiting.csrf_exempt = True  # type: ignore[attr-defined]
    return waiting
