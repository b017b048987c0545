"""Requests that write take turns: a few at once in each web process, the others wait in the order in which they came.

Django gives every request a thread at once. Two hundred that write would all wait for the same lock: SQLite lets
whoever asks at the right moment go first, so that some wait until their time is up, and PostgreSQL's pool runs out. In
turns, none of the database's own bounds is ever reached because of a crowd (F7, F28). Who waits holds no thread and no
connection, and its body is there already: a slow sender keeps nobody waiting. Nor does who waits for somebody outside:
they give their turn back first (`controlplane.database.waiting_outside`).

Sign-ins have lanes of their own, for anybody may send one and each costs as much as a thousand other requests: they
neither take the turns of those who write, nor more threads and processors than they have turns. Browsers in which
somebody signed in before do not wait behind those in which nobody did.
"""

import asyncio
from collections.abc import Mapping
from enum import Enum
from typing import Final, Self
from weakref import WeakKeyDictionary

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from controlplane.accounts.browsers import browser_read, cookie_name
from controlplane.api.paths import PREFIX
from controlplane.api.problems import problem
from controlplane.common.errors import Busy
from controlplane.database.waiting_outside import turn_give_back
from controlplane.http.gates import Middleware, Respond
from xdscore.limits import Limits

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})  # RFC 9110 section 9.2.1
_RETRY_AFTER_S: Final = 2


class _Turn:
    """The right of one request to be carried out now. Made and released on one event loop; any thread may give it
    back.
    """

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


class Lane(Enum):
    """A queue in which requests wait for their turn. The value names these requests in the text of a refusal."""

    WRITES = "requests that write"
    SIGN_INS = "sign-ins"
    KNOWN_SIGN_INS = "sign-ins of known browsers"


class Turns:
    """Lets at most `at_once` requests be carried out at a time, while at most `waiting` others wait, first come first
    served. Belongs to one event loop. `waiters` and `limit`, for refusals: which requests wait, and the name of the
    limit on them.
    """

    def __init__(self, *, at_once: int, waiting: int, waiters: str, limit: str) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._most = waiting
        self._waiting = 0
        self._refusal = f"{waiting:,} {waiters} wait for their turn, as many as may ({limit}). Nothing was changed."

    async def __aenter__(self) -> Self:
        """Wait for a turn. Raises Busy where as many as may are waiting already."""
        if self._turns.locked() and self._waiting >= self._most:
            raise Busy(self._refusal, retry_after_s=_RETRY_AFTER_S)
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        turn_give_back.set(_Turn(self._turns).give_back)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Give the turn back, unless the request gave it back before."""
        give_back = turn_give_back.get()
        if give_back is not None:
            give_back()
        turn_give_back.set(None)


class TurnsMiddleware(Middleware):
    """Middleware that lets a request that writes wait for its turn. In a synchronous chain of middleware no request
    waits, because each has a thread of its own.
    """

    def __init__(self, get_response: Respond) -> None:
        super().__init__(get_response)
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Mapping[Lane, Turns]] = WeakKeyDictionary()

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """What the rest of a synchronous chain of middleware answers, without waiting for a turn."""
        return self.rest(request)

    async def answer_soon(self, request: HttpRequest) -> HttpResponseBase:
        """What the rest of an asynchronous chain of middleware answers; a request that writes waits for its turn first.
        An answer that refuses, where as many as may are waiting already.
        """
        if request.method in _READS:
            return await self.rest_soon(request)
        try:
            async with self._here()[_lane(request)]:
                return await self.rest_soon(request)
        except Busy as error:
            if request.path.startswith(PREFIX):
                return problem(error)
            headers = {"Retry-After": str(error.retry_after_s)}
            return HttpResponse(error.detail, status=error.status, content_type="text/plain", headers=headers)

    def _here(self) -> Mapping[Lane, Turns]:
        loop = asyncio.get_running_loop()
        turns = self._turns.get(loop)
        if turns is None:
            turns = self._turns[loop] = {lane: _turns(lane, settings.PARLEY.limits) for lane in Lane}
        return turns


def _lane(request: HttpRequest) -> Lane:
    if request.path != settings.LOGIN_URL:
        return Lane.WRITES
    # What a browser keeps is signed, so that nobody who never signed in gets among those who did.
    known = browser_read(request.COOKIES.get(cookie_name(), "")) is not None
    return Lane.KNOWN_SIGN_INS if known else Lane.SIGN_INS


def _turns(lane: Lane, limits: Limits) -> Turns:
    writes = lane is Lane.WRITES
    return Turns(
        at_once=limits.writes_at_once if writes else limits.logins_at_once,
        waiting=limits.writes_waiting if writes else limits.logins_waiting,
        waiters=lane.value,
        limit="writes_waiting" if writes else "logins_waiting",
    )
