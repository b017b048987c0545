"""The answer that goes on: a live tail as server-sent events (SSE), at the cost of one task of the event loop.

It begins when the watcher has its place at the broker, so that whatever refuses it is an ordinary problem document. It
ends by itself after some minutes, when the caller may not read the environment any more, or when the broker is away;
whoever wants more asks again, and is told for how long nobody watched.
"""

import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views import View

from controlplane.api.authentication import principal_again
from controlplane.api.problems import answer_for
from controlplane.broker.client import client_url
from controlplane.catalog.rights import environment_visible
from controlplane.common.errors import ControlPlaneError, DependencyError
from controlplane.common.principal_ids import PrincipalId
from controlplane.tail.values import Filter
from controlplane.tail.watching import Heard, watching

MEDIA: Final = "text/event-stream"
# A balancer ends what is silent for a minute, or for half of one.
_BEAT_S: Final = 15.0
# Revoking a token, a session or a role ends a tail within so long.
_CHECKED_EVERY_S: Final = 5.0
LONGEST_S: Final = 600


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller asks to watch, after it was checked that they may: an environment, a filter, for how many seconds
    at most, and since when nobody watched, in Unix time (None: this is the first request).
    """

    principal: PrincipalId
    environment: str
    filter: Filter
    seconds: float
    since: float | None


class Granted(HttpResponse):
    """The answer of a view that grants a tail; `streams` puts the tail in its place."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(content_type=MEDIA)
        self.wanted = wanted


def since_of(last_event_id: str) -> float | None:
    """The Unix time until which a caller watched, from the id of the last event that they saw; None for a text that is
    no such id.
    """
    text = last_event_id.strip()
    return int(text) / 1000 if text.isascii() and text.isdigit() and len(text) < 16 else None


def streams(
    view: Callable[..., HttpResponseBase], cls: type[View]
) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """Wrap a view so that what it grants becomes a tail. `cls`: the view's class."""
    answer = sync_to_async(view)

    async def streaming(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        first = await answer(request, **kwargs)
        if not isinstance(first, Granted) or request.method != "GET":
            return first
        told = _told(request, first.wanted)
        try:
            beginning = await anext(told)
        except Exception as error:  # noqa: BLE001  one answer for whatever refuses
            return answer_for(error, path=cls.__name__)
        tail = StreamingHttpResponse(_joined(beginning, told), content_type=MEDIA)
        tail["Cache-Control"] = "no-store"
        tail["X-Accel-Buffering"] = "no"  # nginx would collect events until a buffer is full
        return tail

    # What the schema and DRF's own tools look for on a view.
    streaming.cls = cls  # type: ignore[attr-defined]  # attributes of a function
    streaming.initkwargs = {}  # type: ignore[attr-defined]
    streaming.csrf_exempt = True  # type: ignore[attr-defined]
    return streaming


async def _joined(beginning: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield beginning
    async for each in rest:
        yield each


async def _told(request: HttpRequest, wanted: Wanted) -> AsyncIterator[bytes]:
    """The tail, piece by piece. The first piece comes when the watcher has its place; until then it raises Busy or
    DependencyError.
    """
    parley = settings.PARLEY
    may_still = sync_to_async(_may_still, thread_sensitive=False)
    async with watching(
        environment=wanted.environment,
        wanted=wanted.filter,
        principal=wanted.principal,
        url=client_url(),
        limits=parley.limits,
    ) as watch:
        ends = time.monotonic() + wanted.seconds
        checked = beaten = time.monotonic()
        processes = -1
        unseen_s = 0 if wanted.since is None else max(0, round(time.time() - wanted.since))
        while True:
            now = time.monotonic()
            if now >= ends:
                yield _event("end", {"reason": "This tail has lasted as long as one may.", "again": True})
                return
            if now - checked >= _CHECKED_EVERY_S:
                if not await may_still(request, wanted.environment):
                    reason = "What you are signed in with has ended, or may not read this environment any more."
                    yield _event("end", {"reason": reason, "again": False})
                    return
                checked = now
            try:
                heard = await watch.heard(min(_CHECKED_EVERY_S, ends - now))
            except DependencyError as error:
                yield _event("end", {"reason": error.detail, "again": True})
                return
            if heard.processes != processes:
                processes = heard.processes
                yield _event("state", {"processes": processes, "unseen_s": unseen_s})
                unseen_s = 0
            if pieces := _pieces(heard):
                yield pieces
                beaten = time.monotonic()
            elif time.monotonic() - beaten >= _BEAT_S:
                # A comment, and an id without an event: whoever is cut off knows until when they watched.
                yield f": nothing new\nid: {_id()}\n\n".encode()
                beaten = time.monotonic()


def _pieces(heard: Heard) -> bytes:
    pieces = b"".join(_written(kind, text) for kind, text in heard.events)
    return pieces + (_event("left_out", {"count": heard.left_out}) if heard.left_out else b"")


def _event(name: str, content: dict[str, object]) -> bytes:
    return _written(name, json.dumps(content))


def _written(name: str, text: str) -> bytes:
    # JSON has no line end outside of its strings, where it is escaped.
    return f"event: {name}\nid: {_id()}\ndata: {text}\n\n".encode("utf-8", "replace")


def _id() -> int:
    return time.time_ns() // 1_000_000


def _may_still(request: HttpRequest, environment: str) -> bool:
    """Whether the caller may read the environment now. Returns the database connection afterwards
    (controlplane.database.aliases).
    """
    try:
        principal = principal_again(request)
        if principal is None:
            return False
        environment_visible(principal, environment)
    except ControlPlaneError:
        return False
    finally:
        close_old_connections()
    return True
