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
    """Answer probes at `address`, in a thread, until the process ends. Where the address cannot be had, end the process
    now, with one line in the log.
    """
    try:
        StatusThread(role, address, readiness).listen()
    except StatusAddressError as error:
        log.critical("status.cannot_listen", detail=str(error))
        raise SystemExit(EXIT_CANNOT_START) from None


class StatusThread(threading.Thread):
    """A thread with a status server, until the process ends.

    A worker forks. A child would go on listening with nobody to answer, and nobody else could have the port once the
    parent is gone: so a child closes what it inherits. A fork also waits until no answer is being made, as it waits for
    the sweepers: a child must not inherit a lock that nobody releases.
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
        """Start the thread; the port it listens on. Raises StatusAddressError."""
        self.start()
        port = self._listening.result()
        os.register_at_fork(
            before=self._answering.acquire, after_in_parent=self._answering.release, after_in_child=self._leave
        )
        return port

    def run(self) -> None:
        """Serve until the process ends."""
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
