"""How bytes become requests of one stream: small ones at once, large ones in a thread. Made by `stream`."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from adsserver.engine.events import Variant
from adsserver.limits.budgets import Budget
from adsserver.servicers.shared import Shared
from adsserver.wire.discovery import Incoming, decode
from xdscore.resource_types import ResourceType

_Result = TypeVar("_Result")

# Above this size a request is parsed off the loop: a delta reconnect with some 5,000 versions (decisions part 7).
_LARGE_REQUEST_BYTES = 256 * 1024


class Reading:
    """Parses what the client of one stream sends. `service`: the type of a single-type service; None on ADS."""

    __slots__ = ("_loop", "_service", "_shared", "_variant")

    def __init__(self, shared: Shared, variant: Variant, service: ResourceType | None) -> None:
        self._shared = shared
        self._variant = variant
        self._service = service
        self._loop = asyncio.get_running_loop()

    def is_large(self, data: bytes) -> bool:
        """Whether a request of so many bytes would hold up the loop too long."""
        return len(data) >= _LARGE_REQUEST_BYTES

    def read(self, data: bytes) -> Incoming:
        """The request in these bytes, which are not large. Raises as `wire.discovery.decode` does."""
        return self._shared.decoder.decode(data, self._variant, self._service)

    async def apart(self, data: bytes, budget: Budget) -> Incoming:
        """The request in these bytes, which are large; the time that it takes is spent from the caller's budget. Raises
        as `wire.discovery.decode` does.
        """
        shared = self._shared
        spent_s: list[float] = []

        def work() -> Incoming:
            started_s = time.thread_time()
            try:
                return decode(data, self._variant, self._service, shared.limits)
            finally:
                spent_s.append(time.thread_time() - started_s)

        async with budget.parsing:
            await budget.turn()
            try:
                return await self.elsewhere(work)
            finally:
                # The thread holds the loop up almost as long: protobuf reads a message in one piece.
                budget.spend(sum(spent_s))

    def elsewhere(self, work: Callable[..., _Result], *arguments: object) -> Awaitable[_Result]:
        """The result of long work that touches no stream, done in a thread (reliability F25)."""
        return self._loop.run_in_executor(self._shared.parsers, work, *arguments)
