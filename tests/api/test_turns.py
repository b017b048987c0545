"""Requests that write take turns in a web process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from controlplane.accounts.browsers import browser_write
from controlplane.api.turns import TurnsMiddleware
from tests.api.conftest import limited

ASK = RequestFactory()


class Room:
    """What lies behind the middleware: it lets nobody go before it is told to."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.came: list[str] = []
        self._leave = {"all": asyncio.Event()}

    async def answer(self, request: HttpRequest) -> HttpResponse:
        self.inside.append(request.path)
        self.came.append(request.path)
        await self._leave.setdefault(request.path, self._leave["all"]).wait()
        self.inside.remove(request.path)
        return HttpResponse(status=204)

    def hold(self, path: str) -> None:
        self._leave[path] = asyncio.Event()

    def leave(self, path: str = "all") -> None:
        self._leave[path].set()


def asked(chain: TurnsMiddleware, request: HttpRequest) -> "asyncio.Task[HttpResponse]":
    answer: Awaitable[Any] = chain(request)  # type: ignore[assignment]  # asynchronous, as the room is
    return asyncio.ensure_future(answer)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  it is the code under test that must come by, and it sets no event
            await asyncio.sleep(0)


async def test_write__more_than_may_at_once__wait_in_their_order(settings: Settings) -> None:
    limited(settings, writes_at_once=2)
    room = Room()
    room.hold("/0")
    chain = TurnsMiddleware(room.answer)

    tasks = [asked(chain, ASK.post(f"/{number}")) for number in range(5)]
    await until(lambda: len(room.inside) == 2)
    await asyncio.sleep(0)
    first = list(room.came)
    room.leave("/0")
    await until(lambda: len(room.came) == 3)
    room.leave()
    await asyncio.gather(*tasks)

    assert first == ["/0", "/1"]
    assert room.came == ["/0", "/1", "/2", "/3", "/4"]


async def test_read__while_every_turn_is_taken__does_not_wait(settings: Settings) -> None:
    limited(settings, writes_at_once=1)
    room = Room()
    chain = TurnsMiddleware(room.answer)

    tasks = [asked(chain, ASK.put("/write")), asked(chain, ASK.delete("/next")), asked(chain, ASK.get("/read"))]
    await until(lambda: "/read" in room.inside)
    inside = list(room.inside)
    room.leave()
    await asyncio.gather(*tasks)

    assert inside == ["/write", "/read"]


@pytest.mark.parametrize(
    ("path", "media"), [("/api/v1/environments", "application/problem+json"), ("/environments", "text/plain")]
)
async def test_write__as_many_as_may_wait_already__429(settings: Settings, path: str, media: str) -> None:
    limited(settings, writes_at_once=1, writes_waiting=1)
    room = Room()
    chain = TurnsMiddleware(room.answer)
    tasks = [asked(chain, ASK.post("/first")), asked(chain, ASK.post("/second"))]
    await until(lambda: bool(room.inside))
    await asyncio.sleep(0)

    refused = await asked(chain, ASK.post(path))

    assert (refused.status_code, refused["Retry-After"], refused["Content-Type"]) == (429, "2", media)
    assert b"1 requests that write wait" in refused.content
    room.leave()
    assert [each.status_code for each in await asyncio.gather(*tasks)] == [204, 204]


def signing_in(kept: str = "") -> HttpRequest:
    """A password from a browser that keeps this of us."""
    request = ASK.post("/login")
    request.COOKIES["parley-browser"] = kept
    return request


async def test_sign_ins__a_flood_of_them__holds_up_neither_writes_nor_browsers_that_are_known(
    settings: Settings,
) -> None:
    limited(settings, writes_at_once=1, logins_at_once=2)
    known = browser_write(User(pk=1, password="pbkdf2"))
    room = Room()
    chain = TurnsMiddleware(room.answer)

    tasks = [asked(chain, signing_in()) for _ in range(6)]
    await until(lambda: len(room.inside) == 2)
    tasks += [asked(chain, ASK.post("/write")), asked(chain, signing_in(known)), asked(chain, signing_in(known + "x"))]
    await until(lambda: "/write" in room.inside and room.inside.count("/login") == 3)
    await asyncio.sleep(0)
    inside = sorted(room.inside)
    room.leave()
    await asyncio.gather(*tasks)

    assert inside == ["/login", "/login", "/login", "/write"]


async def test_sign_ins__as_many_as_may_wait_already__429_that_names_the_limit(settings: Settings) -> None:
    limited(settings, logins_at_once=1, logins_waiting=1)
    room = Room()
    chain = TurnsMiddleware(room.answer)
    tasks = [asked(chain, signing_in()) for _ in range(2)]
    await until(lambda: bool(room.inside))
    await asyncio.sleep(0)

    refused = await asyncio.wait_for(asked(chain, signing_in()), timeout=20)

    assert (refused.status_code, refused["Retry-After"]) == (429, "2")
    assert b"1 sign-ins wait for their turn, as many as may (logins_waiting)" in refused.content
    room.leave()
    await asyncio.gather(*tasks)


async def test_write__whoever_waits_leaves__its_turn_goes_to_the_next(settings: Settings) -> None:
    limited(settings, writes_at_once=1)
    room = Room()
    chain = TurnsMiddleware(room.answer)
    first, gone, last = (asked(chain, ASK.post(f"/{name}")) for name in ("first", "gone", "last"))
    await until(lambda: bool(room.inside))
    await asyncio.sleep(0)

    gone.cancel()
    room.leave()
    await asyncio.gather(first, last)

    assert room.came == ["/first", "/last"]


async def test_write__fails__gives_its_turn_back(settings: Settings) -> None:
    limited(settings, writes_at_once=1)

    async def failing(request: HttpRequest) -> HttpResponse:
        raise OSError(request.path)

    chain = TurnsMiddleware(failing)

    for path in ("/first", "/second"):
        with pytest.raises(OSError, match=path):
            await asked(chain, ASK.post(path))
