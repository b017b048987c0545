"""What a stream may cost: its rate of requests, its admission, how many of them one client may have.

The numbers are those of `xdscore.limits`; here they are enforced. Called by `servicers.stream`, on the event loop.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from adsserver.callers import CallerKey
from xdscore.limits import Limits

# Two samples of lag within the 100 ms that pause accepting (reliability (e)).
_SAMPLE_PERIOD_S = 0.05
_HOUR_S = 3600.0
# As often memory is looked at: 1,500 new streams a second, 60 KiB each, take 22 MiB meanwhile.
_MEMORY_PERIOD_S = 0.25
# The rest is for the streams that are there already (reliability F32).
_MEMORY_PERCENT = 80
_MIB = 1024 * 1024
SHORT_OF_MEMORY = "This server is short of memory; try another one, or later."


# Callers beyond those that are told apart.
_OTHERS = CallerKey()


class RefusedStreamError(Exception):
    """The stream is refused before any response (reliability F15). The text is sent (RESOURCE_EXHAUSTED)."""


class LoopLag:
    """How late the event loop runs what is due, in seconds, sampled all the time."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self.current_s = 0.0

    async def watch(self) -> None:
        """Sample until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _SAMPLE_PERIOD_S
            await asyncio.sleep(_SAMPLE_PERIOD_S)
            self.current_s = max(0.0, loop.time() - due)
            self._observe(self.current_s)


class MemoryBound:
    """Whether the process comes near the memory it may use (reliability F32). `resident_bytes` tells what it uses."""

    def __init__(self, limits: Limits, resident_bytes: Callable[[], int], tell: Callable[[bool], None]) -> None:
        self._at_bytes = limits.memory_mib * _MIB * _MEMORY_PERCENT // 100
        self._resident_bytes = resident_bytes
        self._tell = tell
        self.short = False

    async def watch(self) -> None:
        """Look until cancelled; at once where nothing is bounded."""
        while self._at_bytes:
            self.look()
            await asyncio.sleep(_MEMORY_PERIOD_S)

    def look(self) -> None:
        """Look now."""
        short = 0 < self._at_bytes <= self._resident_bytes()
        if short is not self.short:
            self.short = short
            self._tell(short)


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not tell (it is Linux that does)."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Admission:
    """Lets new streams in at a pace the loop can follow, up to the number a process may hold (resolutions C12)."""

    def __init__(self, limits: Limits, lag: LoopLag, memory: MemoryBound) -> None:
        self._limits = limits
        self._lag = lag
        self._memory = memory
        self._next_at = 0.0
        self.open = 0

    async def enter(self) -> None:
        """Wait for a place and take it. Raises RefusedStreamError, having taken none."""
        limit = self._limits.streams_per_replica
        if self.open >= limit:
            raise RefusedStreamError(
                f"This server holds {limit} streams, as many as it may; try another one, or later."
            )
        if self._memory.short:
            raise RefusedStreamError(SHORT_OF_MEMORY)
        self.open += 1
        try:
            await self._wait()
        except BaseException:
            self.open -= 1
            raise

    def leave(self) -> None:
        """Give the place back."""
        self.open -= 1

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        longest_s = self._limits.admission_wait_ms / 1000
        now = loop.time()
        refuse_at = now + longest_s
        slot = max(now, self._next_at)
        if slot > refuse_at:
            raise RefusedStreamError("Too many streams are being opened; try again later.")
        self._next_at = slot + 1 / self._limits.streams_admitted_per_s
        if slot > now:
            await asyncio.sleep(slot - now)
        while self._lag.current_s * 1000 > self._limits.admission_pause_lag_ms:
            if loop.time() >= refuse_at:
                raise RefusedStreamError("This server is overloaded; try another one, or later.")
            await asyncio.sleep(_SAMPLE_PERIOD_S)


class DeniedNames:
    """Distinct names that each caller was refused in the current hour (reliability (e): probing for what exists).

    Callers are told apart by what was verified of them, or by their address, and never by anything they say of
    themselves: whoever guesses could say something new each time. Bounded: of a caller no more names are remembered
    than raise the alarm, and of callers no more than there may be streams; those beyond count as one, so that nobody is
    forgotten because others came.
    """

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.denied_names_per_h
        self._max_callers = limits.streams_per_replica
        self._names: dict[CallerKey, set[tuple[str, str]]] = {}
        self._until = 0.0

    def refused(self, caller: CallerKey, names: Iterable[tuple[str, str]], now: float) -> bool:
        """Take note of these (type, name); whether they are what makes this caller's too many, once in an hour."""
        if now >= self._until:
            self._names.clear()
            self._until = now + _HOUR_S
        if caller not in self._names and len(self._names) >= self._max_callers:
            caller = _OTHERS
        known = self._names.setdefault(caller, set())
        before = len(known)
        for name in names:
            if len(known) > self._limit:
                break
            known.add(name)
        return before <= self._limit < len(known)


class StreamCounts:
    """Streams per client and per verified identity (resolutions C14)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._nodes: Counter[tuple[str, str]] = Counter()
        self._identities: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def enter(self, identity: str, node_id: str) -> None:
        """Count one stream. Raises RefusedStreamError, having counted none."""
        if self._nodes[identity, node_id] >= self._limits.streams_per_node:
            raise RefusedStreamError(
                f"This node has {self._limits.streams_per_node} streams on this server, as many as it may."
            )
        # Without authentication everybody has the same, empty identity: only the node's own limit can mean anything.
        if identity and self._identities[identity] >= self._limits.streams_per_identity:
            raise RefusedStreamError(
                f"This identity has {self._limits.streams_per_identity} streams on this server, as many as it may."
            )
        self._nodes[identity, node_id] += 1
        self._identities[identity] += 1

    def leave(self, identity: str, node_id: str) -> None:
        """Forget one stream."""
        self._nodes[identity, node_id] -= 1
        if not self._nodes[identity, node_id]:
            del self._nodes[identity, node_id]
        self._identities[identity] -= 1
        if not self._identities[identity]:
            del self._identities[identity]
