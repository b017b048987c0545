"""A way to ADS that remembers what went through it: whether a client was ever sent something is then no server's word.

Each client gets a way, and so a port, of its own. HTTP/2 carries the bytes of a resource as they are, so that a word
that stands in a resource is found in them.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.fault_proxy import FaultProxy, running_proxies


class Ear(FaultProxy):
    """The way of one client. `port`: what the client connects to."""

    def __init__(self, target_port: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(target_port, loop)
        self._heard: list[tuple[float, bytes]] = []

    def heard(self, word: str) -> bool:
        """Whether the client was ever sent something with this word in it."""
        return self.first_s(word) is not None

    def first_s(self, word: str) -> float | None:
        """When the client was first sent something with this word in it, by `time.monotonic`; None: never."""
        return next(iter(self._times(word)), None)

    def last_s(self, word: str) -> float | None:
        """When the client was last sent something with this word in it, by `time.monotonic`; None: never."""
        return next(reversed(self._times(word)), None)

    def carries(self, data: bytes) -> None:
        """Remember what the server sent."""
        self._heard.append((time.monotonic(), data))

    def _times(self, word: str) -> list[float]:
        return [at for at, data in tuple(self._heard) if word.encode() in data]


@contextmanager
def ears(target_port: int, count: int) -> Iterator[list[Ear]]:
    """Run so many ways to this port until the block ends."""
    with running_proxies(Ear, [target_port] * count) as found:
        yield found
