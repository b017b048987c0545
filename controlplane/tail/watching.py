"""The web side of a live tail: one watcher, from its announcement to its end. Belongs to one event loop.

A watcher has a connection of its own to the broker, so that none waits for another. What it is told waits in a bounded
place until it is fetched: whoever reads slowly loses what is oldest, and is told how much. Nothing of it waits for the
broker longer than a moment (law 4).
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from controlplane.common.errors import Busy, DependencyError
from controlplane.common.principal_ids import PrincipalId
from controlplane.tail.sealed import CHANNELS, INTERESTS, batch_opened, interest_sealed
from controlplane.tail.values import Batch, Filter, Interest
from xdscore.limits import Limits

AWAY: Final = (
    "The broker (Redis) does not answer, so nothing can be watched live. Everything else goes on without it; "
    "what happened is kept, and shown where a client or a resource is shown."
)
_ANNOUNCED_EVERY_S: Final = 1.0
# Web requests do not wait for the broker (law 4): this one does, so it waits for a moment only.
_BROKER_S: Final = 2.0
_RETRY_AFTER_S: Final = 5
# Whoever takes nothing for so long, though the connection is open, gives its place back.
_PATIENCE_S: Final = 60.0
_TOO_SLOW: Final = "Nothing of this tail was read for a minute."
MAX_WAITING: Final = 500


@dataclass(frozen=True, slots=True)
class Heard:
    """What a watcher was told since it last asked.

    events: each event's kind and its JSON text, in order.
    left_out: how many more there were that it is not told, because they were too many at once.
    processes: how many ADS processes hear the watcher; 0 where none runs, or none reaches the broker.
    """

    events: tuple[tuple[str, str], ...]
    left_out: int
    processes: int


class Watch:
    """One watcher, while `watching` lasts."""

    def __init__(self, interest: Interest, broker: Any, subscription: Any) -> None:
        self._interest = interest
        self._broker = broker
        self._subscription = subscription
        self._waiting: deque[tuple[str, str]] = deque()
        self._left_out = 0
        self._processes = -1
        self._numbers: dict[str, int] = {}
        self._news = asyncio.Event()
        self._over = ""
        self._asked_at = time.monotonic()

    async def heard(self, within_s: float) -> Heard:
        """What the watcher was told since the last call, as soon as there is any; after this time, whatever there is.
        Raises DependencyError, which says why, once the broker is away, or where this was not called for a minute.
        """
        self._asked_at = time.monotonic() + within_s
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()
        self._news.clear()
        if self._over:
            raise DependencyError(self._over)
        self._asked_at = time.monotonic()
        events, left_out = tuple(self._waiting), self._left_out
        self._waiting.clear()
        self._left_out = 0
        return Heard(events, left_out, max(self._processes, 0))

    async def announce(self) -> None:
        """Tell ADS processes what this watcher wants; they forget it after some seconds. Raises what the broker's
        client raises.
        """
        hearing = await self._broker.publish(INTERESTS, interest_sealed(self._interest))
        if hearing != self._processes:
            self._processes = hearing
            self._news.set()

    async def run(self) -> None:
        """Announce the watcher every second and take what it is told, until cancelled, the broker is away, or nobody
        asks for it any more.
        """
        try:
            due = time.monotonic() + _ANNOUNCED_EVERY_S
            while time.monotonic() - self._asked_at < _PATIENCE_S:
                message = await self._subscription.get_message(timeout=max(0.0, due - time.monotonic()))
                if message is not None:
                    self.take(message["data"])
                if time.monotonic() >= due:
                    await self.announce()
                    due = time.monotonic() + _ANNOUNCED_EVERY_S
            self._over = _TOO_SLOW
            await self._subscription.unsubscribe()
        except (RedisError, OSError):
            self._over = AWAY
        self._news.set()

    def take(self, data: bytes) -> None:
        """Take a message that came on the watcher's channel. What no ADS process of this installation sent to it, what
        came before, and what is of another environment is ignored.
        """
        batch = batch_opened(data, self._interest.channel)
        if batch is None or batch.environment != self._interest.environment or not self._is_new(batch):
            return
        self._waiting.extend(batch.events)
        self._left_out += batch.left_out
        while len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self._left_out += 1
        self._news.set()

    def _is_new(self, batch: Batch) -> bool:
        known = self._numbers.get(batch.process, 0)
        self._numbers[batch.process] = max(known, batch.number)
        return batch.number > known


@asynccontextmanager
async def watching(
    *, environment: str, wanted: Filter, principal: PrincipalId, url: str, limits: Limits
) -> AsyncIterator[Watch]:
    """Watch an environment for this principal, which may read it, until the block ends. `url`: where the broker is.

    Raises Busy where as many as may are watching already, DependencyError where the broker does not answer.
    """
    whose = f"{CHANNELS}{principal}:"
    interest = Interest(f"{whose}{secrets.token_hex(12)}", environment, wanted)
    broker: Any = Redis.from_url(url, socket_timeout=_BROKER_S, socket_connect_timeout=_BROKER_S)
    subscription = broker.pubsub(ignore_subscribe_messages=True)
    watch = Watch(interest, broker, subscription)
    running: asyncio.Task[None] | None = None
    try:
        try:
            async with asyncio.timeout(_BROKER_S):
                await subscription.subscribe(interest.channel)
                await subscription.get_message(timeout=_BROKER_S)
                # Now that it is counted itself: of two that come at once, none overlooks the other.
                _admit([str(each, "utf-8") for each in await broker.pubsub_channels(f"{CHANNELS}*")], whose, limits)
                await watch.announce()
        except (RedisError, OSError) as error:  # TimeoutError is an OSError
            raise DependencyError(AWAY) from error
        running = asyncio.create_task(watch.run())
        yield watch
    finally:
        if running is not None:
            running.cancel()
            await asyncio.wait({running})
        with suppress(RedisError, OSError):
            await subscription.aclose()
            await broker.aclose()


def _admit(channels: list[str], whose: str, limits: Limits) -> None:
    """Raise Busy where too many watch: these are the channels of all watchers, and `whose` begins those of one
    principal.
    """
    own = sum(each.startswith(whose) for each in channels)
    if own > limits.tail_watchers_each:
        raise Busy(
            f"You have {own - 1} live tails open, as many as one may (tail_watchers_each). Close one of them.",
            retry_after_s=_RETRY_AFTER_S,
        )
    if len(channels) > limits.tail_watchers:
        raise Busy(
            f"{len(channels) - 1} live tails are open, as many as may be at once (tail_watchers). Try again later.",
            retry_after_s=_RETRY_AFTER_S,
        )
