"""Requests that write take turns: a few at once in each web process, the others wait in the order in which they came.

Django gives every request a thread at once. Two hundred that write would all wait for the same lock: SQLite lets
whoever asks at the right moment go first, so that some wait until their time is up, and PostgreSQL's pool runs out. In
turns, none of the database's own bounds is ever reached because of a crowd (F7, F28). Who waits holds no thread and no
connection, and its body is there already: a slow sender keeps nobody waiting. Nor does who waits for somebody outside:
they give their turn back first (`controlplane.waiting_outside`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Self, cast
from weakref import WeakKeyDictionary

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from controlplane.api.paths import PREFIX
from controlplane.api.problems import problem
from controlplane.errors import Busy
from controlplane.waiting_outside import turn_give_back
from xdscore.limits import Limits

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})  # RFC 9110 section 9.2.1
_RETRY_AFTER_S: Final = 2

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class _Turn:
    """One request's turn. Begins and ends on its event loop; any thread may give it back."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._held = True

    def give_back(self) -> None:
        self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._turns.release()


class Turns:
    """At most `at_once` hold a turn; at most `waiting` wait for one, first come first served. Of one event loop."""

    def __init__(self, *, at_once: int, waiting: int) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._most = waiting
        self._waiting = 0

    async def __aenter__(self) -> Self:
        """Wait for a turn. Raises Busy where too many wait already."""
        if self._turns.locked() and self._waiting >= self._most:
            raise Busy(
                f"{self._most:,} requests that write wait for their turn, as many as may. Nothing was changed.",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        turn_give_back.set(_Turn(self._turns).give_back)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Let the next one go, unless that was done before."""
        give_back = turn_give_back.get()
        if give_back is not None:
            give_back()
        turn_give_back.set(None)


class TurnsMiddleware:
    """Holds a request that writes until its turn. In a synchronous chain, whose threads are the caller's, no one."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Respond) -> None:
        self._respond = get_response
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """The answer, in its turn."""
        return self._in_turn(request) if self._asynchronous else self._respond(request)

    async def _in_turn(self, request: HttpRequest) -> HttpResponseBase:
        if request.method in _READS:
            return await cast(Awaitable[HttpResponseBase], self._respond(request))
        try:
            async with self._here():
                return await cast(Awaitable[HttpResponseBase], self._respond(request))
        except Busy as error:
            if request.path.startswith(PREFIX):
                return problem(error)
            headers = {"Retry-After": str(error.retry_after_s)}
            return HttpResponse(error.detail, status=error.status, content_type="text/plain", headers=headers)

    def _here(self) -> Turns:
        loop = asyncio.get_running_loop()
        turns = self._turns.get(loop)
        if turns is None:
            limits: Limits = settings.PARLEY.limits
            turns = self._turns[loop] = Turns(at_once=limits.writes_at_once, waiting=limits.writes_waiting)
        return turns
