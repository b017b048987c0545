"""The status server of a process that has no event loop of its own: worker and beat. In a thread beside its work."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import structlog
from prometheus_client import generate_latest

from controlplane.config.values import Address
from xdscore.status_http import Readiness, StatusAddressError, StatusHttp

log = structlog.get_logger(__name__)

T = TypeVar("T")

EXIT_CANNOT_START = 2


def status_listen(role: str, address: Address, readiness: Callable[[], Readiness]) -> None:
    """Answer probes at `address`, in a thread, until the process ends. Where the process cannot listen there, it is
    ended now, with one line in the log. `role`: the role of processes that this one has.
    """
    try:
        StatusThread(role, address, readiness).listen()
    except StatusAddressError as error:
        log.critical("status.cannot_listen", detail=str(error))
        raise SystemExit(EXIT_CANNOT_START) from None


class StatusThread(threading.Thread):
    """A thread that answers probes until the process ends.

    A worker forks. A child closes the socket that it inherits: otherwise it would keep the port, with nobody to answer,
    when the parent is gone. A fork waits until no answer is being made, as it waits for the sweeper's jobs, so that the
    child inherits no lock that nobody releases.
    """

    def __init__(self, role: str, address: Address, readiness: Callable[[], Readiness]) -> None:
        super().__init__(name="status", daemon=True)
        self._answering = threading.RLock()
        self._listening: Future[int] = Future()
        self._descriptors: tuple[int, ...] = ()
        self._server = StatusHttp(
            role=role,
            host=address.host,
            port=address.port,
            readiness=lambda: self._whole(readiness),
            metrics=lambda: self._whole(generate_latest),
        )

    def listen(self) -> int:
        """Start the thread, and return the port at which it listens. Raises StatusAddressError."""
        self.start()
        port = self._listening.result()
        os.register_at_fork(
            before=self._answering.acquire, after_in_parent=self._answering.release, after_in_child=self._leave
        )
        return port

    def run(self) -> None:
        """Answer probes until the process ends."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        try:
            port = await self._server.start()
        except StatusAddressError as error:
            self._listening.set_exception(error)
            return
        self._descriptors = self._server.descriptors
        self._listening.set_result(port)
        await asyncio.Event().wait()  # the thread ends with the process

    def _whole(self, question: Callable[[], T]) -> T:
        with self._answering:
            return question()

    def _leave(self) -> None:
        # The files alone: the loop's table of them is shared with the parent.
        for each in self._descriptors:
            os.close(each)
        self._descriptors = ()
        self._answering.release()
