"""What one caller may cost: places, names, bytes and time of the event loop, counted for its identity or its address.

Everything a caller can cause is counted here and nowhere else, from the moment its call arrives; so whatever is opened
or read next cannot pass by a limit. Places and names are refused beyond their limit. Time and bytes are paced, by not
reading on, and only of a caller among others: who is alone harms nobody, so that they are not counted. Nor does who
takes time that nobody else needs: a fleet that comes back at once is served as fast as the loop can. Openings are
paced whether the loop has time or not: each has the database and the workers do more than the loop. On the event loop.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

from xdscore.callers import CallerKey
from xdscore.limits import Limits
from xdscore.token_bucket import TokenBucket

# What gRPC and the loop do for a call and for a request besides what is measured; of both about half (bench: 1,500 new
# streams/s, or 5,000 requests/s, are all that a core can do).
OPENING_S = 0.0004
REQUEST_S = 0.0001
# While it is worked on what takes longer than this everybody else waits: it costs more, the longer the more (the square
# of it, up to ten times as much), so that one piece of 100 ms comes more seldom than 100 pieces of 1 ms.
_LONG_S = 0.005
_DEAREST = 10.0
# Those that owe wait once callers cost more time than passes, and so much before: while there is less to do, nobody
# gains by their waiting.
_LOOP_S_PER_S = 1.0
_LOOP_BURST_S = 0.02
# Who waits for a turn looks again after this at the latest: the others may have left meanwhile.
_LOOK_AGAIN_S = 0.25
# A fleet of one identity comes back at once when a server or a balancer goes away, and again when that happens again.
_COMEBACKS = 3
# Lines of the log about calls of one caller: each is written by the loop, and whoever reads them may be slow.
_LINES = 20
_LINES_PER_S = 1.0
# Of addresses nobody knows how many come by; so many that left are remembered for each place of a replica.
_REMEMBERED = 2


# Requests that are read at once of those that a caller's calls begin with. How large one is shows when it was read, and
# gRPC copies it in one piece; a call that says nothing keeps the others from it no longer than this.
_FIRST_READS = 4
_FIRST_READ_S = 0.025


class RefusedStreamError(Exception):
    """The call is refused, or asked for more than its caller may have. The text is sent to the client
    (RESOURCE_EXHAUSTED, reliability F15).
    """


class _Line:
    """The waiting calls of one caller, which go on one after the other, each as soon as the caller is within its
    budget. `owes_s` returns the seconds until then.
    """

    __slots__ = ("_owes_s", "_timer", "turns")

    def __init__(self, owes_s: Callable[[], float]) -> None:
        self._owes_s = owes_s
        self.turns: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self.turns)

    def ask(self) -> "asyncio.Future[None] | None":
        """None when a call may go on at once, else a future that is done when the call's turn comes. A call that stops
        waiting must cancel the future.
        """
        if not self.turns and self._owes_s() <= 0:
            return None
        turn = asyncio.get_running_loop().create_future()
        self.turns.append(turn)
        self._look_later()
        return turn

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(min(self._owes_s(), _LOOK_AGAIN_S), self._next)

    def _next(self) -> None:
        self._timer = None
        while self.turns and self.turns[0].done():
            self.turns.popleft()
        if self.turns and self._owes_s() <= 0:
            # What it does with its turn it has spent before the next one looks.
            self.turns.popleft().set_result(None)
        if self.turns:
            self._look_later()


class Budget:
    """What one caller may use: open calls, requests, bytes and names. `Budgets` makes it; every call of the caller
    holds it as long as it is open.

    `with budget:` counts the processor time of the block against the caller. Never around an `await`: time that others
    take meanwhile would be counted, too.
    """

    __slots__ = (
        "_besides_s",
        "_budgets",
        "_bytes",
        "_first_reads",
        "_lines",
        "_most_places",
        "_nodes",
        "_openings",
        "_reading",
        "_refused",
        "_since_s",
        "_unsaid",
        "_work",
        "key",
        "name_bytes",
        "parsing",
        "places",
    )

    def __init__(self, key: CallerKey, budgets: "Budgets", now: float) -> None:
        limits = budgets.limits
        self._budgets = budgets
        self.key = key
        self.places = 0
        self._most_places = 0
        self.name_bytes = 0
        self._nodes: Counter[str] = Counter()
        self._work = TokenBucket(limits.caller_work_ms_per_s / 1000, limits.caller_work_burst_ms / 1000, now)
        self._bytes = TokenBucket(limits.caller_bytes_per_s, limits.caller_bytes_burst, now)
        self._openings = TokenBucket(limits.caller_openings_per_s, limits.caller_openings_per_s, now)
        self._lines = TokenBucket(_LINES_PER_S, _LINES, now)
        self._unsaid = 0
        self._since_s: float | None = None
        self._besides_s = 0.0
        self._reading = _Line(lambda: self.owes_s)
        self._refused = _Line(lambda: self.owes_opening_s)
        self._first_reads = asyncio.Semaphore(_FIRST_READS)
        # What is large is parsed beside the loop, by one thread for all: a caller has one request there at a time.
        self.parsing = asyncio.Lock()

    # Places and names: refused beyond their limit.

    def enter(self) -> None:
        """Count a call of this caller as open, until it is counted as closed. The caller may open a multiple of the
        most calls that it had open at once, since this process knows it, before its rate of openings applies.
        """
        self.places += 1
        if self.places > self._most_places:
            self._most_places = self.places
            self._openings.widen(_COMEBACKS * self.places)

    def enter_node(self, node_id: str) -> None:
        """Count a stream of this node as open. Raises RefusedStreamError when the node has too many; it is then not
        counted.
        """
        limit = self._budgets.limits.streams_per_node
        if self._nodes[node_id] >= limit:
            raise RefusedStreamError(f"This node has {limit} streams on this server, as many as it may.")
        self._nodes[node_id] += 1

    def leave_node(self, node_id: str) -> None:
        """Count one stream of this node as closed."""
        self._nodes[node_id] -= 1
        if not self._nodes[node_id]:
            del self._nodes[node_id]

    def hold_names(self, change: int) -> None:
        """Change the count of bytes that names take which streams of this caller subscribe to, by `change`, which may
        be negative. Raises RefusedStreamError when they take too many; they count all the same, until the stream gives
        them back.
        """
        self.name_bytes += change
        limit = self._budgets.limits.name_bytes_per_identity
        if change > 0 and self.name_bytes > limit:
            raise RefusedStreamError(
                f"The names that all streams of this {self.key.words} ask for and what their nodes say of themselves "
                f"take {self.name_bytes} bytes; "
                f"at most {limit} are allowed (name_bytes_per_identity)."
            )

    # Lines: left out beyond their rate.

    def line(self) -> int | None:
        """Whether a log line about this caller may be written now: None if not, else the number of lines left out since
        the last.
        """
        if self._lines.try_take(self._budgets.now()) > 0:
            self._unsaid += 1
            return None
        unsaid, self._unsaid = self._unsaid, 0
        return unsaid

    # Openings, time and bytes: paced.

    def opened(self) -> None:
        """Count the opening of a call, even if the call is refused."""
        if self._budgets.contended:
            self.spend(OPENING_S)
            self._openings.spend(1, self._budgets.now())

    def of_request(self) -> "Budget":
        """The budget as the context of a block that takes in a request: counts what gRPC and the loop do for it too."""
        self._besides_s = REQUEST_S
        return self

    def __enter__(self) -> None:
        # Not even read where it counts for nobody: this clock is a call of the system.
        self._since_s = time.thread_time() - self._besides_s if self._budgets.contended else None
        self._besides_s = 0.0

    def __exit__(self, *_: object) -> None:
        if self._since_s is not None:
            self.spend(time.thread_time() - self._since_s)

    def spend(self, work_s: float) -> None:
        """Count processor time that the event loop worked for this caller, in seconds."""
        if not self._budgets.contended:
            return
        if work_s > _LONG_S:
            work_s *= min(work_s / _LONG_S, _DEAREST)
        now = self._budgets.now()
        self._budgets.loop_time.spend(work_s, now)
        self._work.spend(work_s, now)

    def received(self, size: int) -> None:
        """Count bytes that were read from this caller."""
        if self._budgets.contended:
            self._bytes.spend(size, self._budgets.now())

    @property
    def owes_s(self) -> float:
        """The seconds for which nothing more should be done for this caller; 0.0 when it may go on."""
        if not self._budgets.contended:
            return 0.0
        now = self._budgets.now()
        return max(min(self._work.debt_s(now), self._budgets.loop_time.debt_s(now)), self._bytes.debt_s(now))

    @property
    def owes_opening_s(self) -> float:
        """The seconds for which no call of this caller should be opened or refused; 0.0 when one may be."""
        if not self._budgets.contended:
            return 0.0
        return max(self.owes_s, self._openings.debt_s(self._budgets.now()))

    async def turn(self) -> None:
        """Wait until a call may go on: at once, unless its caller spent more than its budget. Waiting calls of one
        caller go on one after the other.
        """
        turn = self.ask_turn()
        if turn is not None:
            await turn

    async def first_turn(self) -> Callable[[], None]:
        """Wait until the first request of a call may be read. Beside the wait of `turn`, only a few first requests of
        one caller are read at a time. Returns a function to call once the request was read.
        """
        await self.turn()
        if not self._budgets.contended:
            return _nothing
        await self._first_reads.acquire()
        while self.owes_s > 0:
            self._first_reads.release()
            await self.turn()
            await self._first_reads.acquire()
        reading = [self._first_reads]

        def ends() -> None:
            if reading:
                reading.pop().release()

        asyncio.get_running_loop().call_later(_FIRST_READ_S, ends)
        return ends

    def ask_turn(self) -> "asyncio.Future[None] | None":
        """None when a call may go on at once, else a future that is done when the call's turn comes. A call that stops
        waiting must cancel the future.
        """
        # Nobody waits where one caller is alone, and whoever waited before another left has his turn first.
        return self._reading.ask() if self._budgets.contended or self._reading.turns else None

    async def refusal_turn(self) -> None:
        """Wait until one more call of this caller may be refused, so that who is refused again and again is slowed
        down.
        """
        turn = self._refused.ask()
        if turn is not None:
            await turn

    @property
    def refusals_waiting(self) -> int:
        """The number of this caller's calls that wait to be refused."""
        return len(self._refused)

    @property
    def is_untouched(self) -> bool:
        """Whether the budget is as good as a new one: no call holds it and its caller has used up nothing."""
        if self.places or self.name_bytes:
            return False
        now = self._budgets.now()
        return all(bucket.is_full(now) for bucket in (self._work, self._bytes, self._openings, self._lines))


class WriteTurn:
    """The turn of a stream that writes and also waits for other things: `wake` is called when the stream may write."""

    __slots__ = ("_budget", "_turn", "_wake")

    def __init__(self, budget: Budget, wake: Callable[[], object]) -> None:
        self._budget = budget
        self._wake = wake
        self._turn: asyncio.Future[None] | None = None

    def has_come(self) -> bool:
        """Whether the stream may write now. If not, it is put into its caller's waiting line, and `wake` is called when
        it may.
        """
        if self._turn is not None:
            if not self._turn.done():
                return False
            self._turn = None
            return True
        self._turn = self._budget.ask_turn()
        if self._turn is None:
            return True
        self._turn.add_done_callback(lambda _: self._wake())
        return False

    def cancel(self) -> None:
        """Leave the waiting line, because the stream ends."""
        if self._turn is not None:
            self._turn.cancel()


class Budgets:
    """The budgets of all callers of a process. `now` returns seconds on a clock that only goes forward;
    `short_of_memory` returns whether the process has too little memory left.
    """

    def __init__(
        self, limits: Limits, now: Callable[[], float], short_of_memory: Callable[[], bool] = lambda: False
    ) -> None:
        self.limits = limits
        self.now = now
        self.short_of_memory = short_of_memory
        # Calls of all callers that take no place of the server, held or waiting to be refused.
        self._beside = 0
        self._all: dict[CallerKey, Budget] = {}
        self._with_places = 0
        self.contended = False
        """Whether more than one caller has a call open."""
        # Of all callers together: whether there is some left.
        self.loop_time = TokenBucket(_LOOP_S_PER_S, _LOOP_BURST_S, now())

    def __len__(self) -> int:
        return len(self._all)

    @property
    def empty(self) -> bool:
        """Whether no caller has a call open."""
        return not self._with_places

    def enter(self, key: CallerKey) -> Budget:
        """Count a call that just arrived against its caller, until `leave`; returns the caller's budget. Raises
        RefusedStreamError, with nothing counted, when the caller has too many calls open.
        """
        budget = self._all.get(key)
        if budget is None:
            if len(self._all) >= _REMEMBERED * self.limits.streams_per_replica:
                # Too many to remember what each of those that left has spent.
                self._all = {each.key: each for each in self._all.values() if each.places or each.name_bytes}
            budget = self._all[key] = Budget(key, self, self.now())
        limit = self._places(key)
        if budget.places >= limit:
            raise RefusedStreamError(f"This {key.words} has {limit} streams on this server, as many as it may.")
        budget.enter()
        self._count(int(budget.places == 1))
        return budget

    async def admit(self, key: CallerKey) -> Budget:
        """Count a call as `enter` does; but a caller that is refused again and again has to wait for each refusal."""
        try:
            return self.enter(key)
        except RefusedStreamError:
            await self.turned_away(key)
            raise

    async def admit_beside(self, key: CallerKey) -> Budget:
        """Count a call that is no discovery stream as `admit` does, until `leave_beside`. It does not take one of the
        server's streams; but it is refused also when there are as many such calls, of all callers, as there may be
        streams.
        """
        limit = self.limits.streams_per_replica
        if self._beside >= limit:
            raise RefusedStreamError(f"This server answers {limit} calls, as many as it may; try again later.")
        budget = await self.admit(key)
        self._beside += 1
        return budget

    def leave_beside(self, budget: Budget) -> None:
        """Stop counting a call that `admit_beside` counted."""
        self._beside -= 1
        self.leave(budget)

    async def turned_away(self, key: CallerKey) -> None:
        """Count a call that is about to be refused as if it had been opened, and wait if its caller spent its budget.
        There is no wait when too many refused calls wait already, of this caller or of all, or while memory is short.
        """
        budget = self._all.get(key)
        if budget is None:
            return
        budget.opened()
        room = self._beside < self.limits.streams_per_replica and not self.short_of_memory()
        if room and budget.refusals_waiting < self._places(key):
            self._beside += 1
            try:
                await budget.refusal_turn()
            finally:
                self._beside -= 1

    def _places(self, key: CallerKey) -> int:
        if key.identity:
            return self.limits.streams_per_identity
        # With room beside the streams: when these are all there, a balancer still asks for the health.
        room = self.limits.streams_per_replica + self.limits.concurrent_streams
        return self.limits.streams_per_address or room

    def leave(self, budget: Budget) -> None:
        """Stop counting a call that `enter` or `admit` counted."""
        budget.places -= 1
        self._count(-int(not budget.places))

    def _count(self, change: int) -> None:
        self._with_places += change
        self.contended = self._with_places > 1

    def forget(self) -> None:
        """Drop the budgets of callers without an open call that have used up nothing; called now and then."""
        for budget in tuple(self._all.values()):
            if budget.is_untouched:
                del self._all[budget.key]


def _nothing() -> None:
    """Stands for the function that gives a turn back, where no turn was taken."""
