"""What a process lets in: a pace its loop can follow, as many streams and as much memory as it may have.

What one caller may have of that is counted by `budgets`. The numbers are those of `xdscore.limits`. Called by the
servicers, on the event loop.
"""

import asyncio
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from pathlib import Path

from adsserver.limits.budgets import Budget, Budgets, RefusedStreamError
from xdscore.callers import CallerKey
from xdscore.limits import Limits

# Two samples of lag within the 100 ms that pause accepting (reliability (e)).
_SAMPLE_PERIOD_S = 0.05
_HOUR_S = 3600.0
# As often memory is looked at: 1,500 new streams a second, 60 KiB each, take 22 MiB meanwhile.
_MEMORY_PERIOD_S = 0.25
# The rest is for the streams that are there already (reliability F32).
_MEMORY_PERCENT = 80
SHORT_OF_MEMORY = "This server is short of memory; try another one, or later."
# Callers beyond those that are told apart.
_OTHERS = CallerKey()
# So much of the pace that a late loop missed is made up for, not more: the rest would come as one block.
_CATCH_UP_S = 0.01
# Those that wait are let in a few at a time: a timer for each costs as much as a tenth of the stream that it lets in.
_TOGETHER_S = 0.005
# Callers that have spent what they have are looked at again after this.
_LOOK_AGAIN_S = 0.01


class LoopLag:
    """Measures, as long as `watch` runs, how late the event loop runs what is due, in seconds."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self.current_s = 0.0

    async def watch(self) -> None:
        """Take samples until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _SAMPLE_PERIOD_S
            await asyncio.sleep(_SAMPLE_PERIOD_S)
            self.current_s = max(0.0, loop.time() - due)
            self._observe(self.current_s)


class MemoryBound:
    """Watches whether the process comes near the memory it may use (reliability F32).

    `allowed_bytes`: that memory, 0 when unknown. `resident_bytes` returns what the process uses. `tell` is called when
    memory becomes short (True), or is no longer (False).
    """

    def __init__(self, allowed_bytes: int, resident_bytes: Callable[[], int], tell: Callable[[bool], None]) -> None:
        self._at_bytes = allowed_bytes * _MEMORY_PERCENT // 100
        self._resident_bytes = resident_bytes
        self._tell = tell
        self.short = False

    async def watch(self) -> None:
        """Call `look` repeatedly until cancelled; returns at once when the allowed memory is unknown."""
        while self._at_bytes:
            self.look()
            await asyncio.sleep(_MEMORY_PERIOD_S)

    def look(self) -> None:
        """Compare the memory in use with the allowed memory now, and call `tell` if the answer changed."""
        short = 0 < self._at_bytes <= self._resident_bytes()
        if short is not self.short:
            self.short = short
            self._tell(short)


def resident_bytes() -> int:
    """The bytes of memory that this process uses; 0 where the system does not tell (only Linux does)."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Admission:
    """Lets new streams in at a pace the event loop can follow, up to the number that a process may hold (decisions
    C12).

    Each caller has a waiting line for its streams, and the lines take turns: a long one makes no other longer. The
    streams of a caller whose budget is spent wait until there is budget again.
    """

    def __init__(self, limits: Limits, lag: LoopLag, memory: MemoryBound, budgets: Budgets) -> None:
        self._limits = limits
        self._lag = lag
        self._memory = memory
        self._budgets = budgets
        self._pace_s = 1 / limits.streams_admitted_per_s
        self._next_at = 0.0
        # Whose turn comes first.
        self._lines: OrderedDict[Budget, deque[asyncio.Future[None]]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self.open = 0

    async def enter(self, key: CallerKey) -> Budget:
        """Wait until the stream may open and count it as open; returns the caller's budget, against which the stream
        counts also while it waits. Raises RefusedStreamError, with nothing counted, when there are too many streams.
        """
        limit = self._limits.streams_per_replica
        refusal = ""
        if self.open >= limit:
            refusal = f"This server holds {limit} streams, as many as it may; try another one, or later."
        elif self._memory.short:
            refusal = SHORT_OF_MEMORY
        if refusal:
            await self._budgets.turned_away(key)
            raise RefusedStreamError(refusal)
        budget = await self._budgets.admit(key)
        self.open += 1
        try:
            await self._wait(budget)
        except BaseException:
            self.leave(budget)
            raise
        return budget

    def leave(self, budget: Budget) -> None:
        """Count a stream that `enter` counted as closed."""
        self.open -= 1
        self._budgets.leave(budget)

    async def _wait(self, budget: Budget) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not self._lines and now >= self._next_at and not self._is_late and budget.owes_opening_s <= 0:
            # Nobody is ahead of it, and nothing speaks against it.
            self._admit(budget, now)
            return
        longest_s = self._limits.admission_wait_ms / 1000
        ahead = len(self._lines.get(budget, ())) * max(1, len(self._lines))
        if max(0.0, self._next_at - now) + ahead * self._pace_s > longest_s:
            raise RefusedStreamError("Too many streams are being opened; try again later.")
        turn = loop.create_future()
        self._lines.setdefault(budget, deque()).append(turn)
        # In the line first: else whoever comes just now would pass who waits.
        self._let_in()
        if turn.done():
            return
        try:
            async with asyncio.timeout(longest_s):
                await turn
        except TimeoutError:
            if self._is_late:
                raise RefusedStreamError("This server is overloaded; try another one, or later.") from None
            who = f"by this {budget.key.words}" if budget.owes_opening_s > 0 else "here"
            raise RefusedStreamError(f"Too many streams are being opened {who}; try again later.") from None

    @property
    def _is_late(self) -> bool:
        return self._lag.current_s * 1000 > self._limits.admission_pause_lag_ms

    def _admit(self, budget: Budget, now: float) -> None:
        self._next_at = max(self._next_at, now - _CATCH_UP_S) + self._pace_s
        budget.opened()

    def _look_at(self, when: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        self._let_in()

    def _let_in(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._is_late:
            again_at = now + _SAMPLE_PERIOD_S
        else:
            while self._next_at <= now and (found := self._next_in_turn()) is not None:
                budget, turn = found
                self._admit(budget, now)
                turn.set_result(None)
            again_at = max(self._next_at, now + _TOGETHER_S) if self._next_at > now else now + _LOOK_AGAIN_S
        if self._lines:
            self._look_at(again_at)

    def _next_in_turn(self) -> tuple[Budget, asyncio.Future[None]] | None:
        """The first waiting stream of the next caller whose budget is not spent: its budget, and the future to set to
        let it in. None when there is none.
        """
        for _ in range(len(self._lines)):
            budget, line = self._lines.popitem(last=False)
            while line and line[0].done():
                line.popleft()
            if not line:
                continue
            turn = line.popleft() if budget.owes_opening_s <= 0 else None
            if line:
                self._lines[budget] = line
            if turn is not None:
                return budget, turn
        return None


class DeniedNames:
    """Counts the distinct names that each caller was refused in the current hour, to notice callers that probe for what
    exists (reliability (e)).

    Callers are told apart by what was verified of them, or by their address, and never by anything they say of
    themselves: whoever guesses could say something new each time. Of a caller no more names are remembered than raise
    the alarm, and of callers no more than there may be streams; callers beyond that count as one, so that nobody is
    forgotten because others came. Of a name only a hash is kept, because a name has up to a kibibyte; when two share
    one, the alarm comes one name later.
    """

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.denied_names_per_h
        self._max_callers = limits.streams_per_replica
        self._names: dict[CallerKey, set[int]] = {}
        self._until = 0.0

    def refused(self, caller: CallerKey, names: Iterable[tuple[str, str]], now: float) -> bool:
        """Note that this caller was denied these names, given as (type, name). Returns True when the caller's number of
        names passes the limit for the first time in the hour. `now` is in seconds on a clock that only goes forward.
        """
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
            known.add(hash(name))
        return before <= self._limit < len(known)
