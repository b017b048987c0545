"""Requests have threads that outlive them, one request at a time (controlplane.ops.kept_threads)."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async

from controlplane.ops.kept_threads import KEPT, KeptThreads
from tests.support.waiting import eventually


class Requests:
    """An application that notes in which thread each request runs; a request ends once it is let go."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.served = KeptThreads(self._serve)

    async def _serve(self, scope: Any, receive: Any, _send: Any) -> None:  # noqa: ARG002 - the protocol's
        self.threads.append(await sync_to_async(threading.get_ident)())
        await receive()
        assert await sync_to_async(threading.get_ident)() in self.threads

    async def run(self, go: asyncio.Event) -> None:
        await self.served({"type": "http"}, go.wait, None)


def let_go() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def until(there: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, there, within_s=10)


async def test_request__after_another__has_its_thread() -> None:
    requests = Requests()

    for _ in range(3):
        await requests.run(let_go())

    assert len(requests.threads) == 3
    assert len(set(requests.threads)) == 1


async def test_requests__beside_each_other__have_a_thread_each_and_as_many_stay_as_may() -> None:
    requests, go = Requests(), asyncio.Event()
    open_now = [asyncio.create_task(requests.run(go)) for _ in range(KEPT + 4)]
    await until(lambda: len(requests.threads) == KEPT + 4)
    go.set()
    await asyncio.gather(*open_now)

    assert len(set(requests.threads)) == KEPT + 4
    assert len(requests.served._idle) == KEPT
    await requests.run(let_go())
    assert requests.threads[-1] in requests.threads[:-1]


async def test_request__broken_off__its_thread_is_given_to_nobody() -> None:
    requests, go = Requests(), asyncio.Event()
    broken = asyncio.create_task(requests.run(go))
    await until(lambda: bool(requests.threads))
    broken.cancel()
    with suppress(asyncio.CancelledError):
        await broken

    await requests.run(let_go())

    assert len(requests.threads) == 2
    assert len(requests.served._idle) == 1
