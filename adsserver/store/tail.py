"""Tells those who watch what happens on the streams of this process (`controlplane.tail`).

While nobody watches, each fact costs the test of one attribute. While somebody does, the event loop puts a fact into a
bounded queue and goes on; one thread makes events of it five times a second, for a bounded share of its time, and sends
them over the broker. What is too much is counted and told, never sent late. The facts themselves do not come by here:
whatever goes wrong with a tail, they are written (law 6).
"""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import structlog
from redis.exceptions import RedisError

from adsserver.engine.events import Fact, Nack, Rejected, Respond, Violated
from adsserver.engine.holdings import Holdings
from adsserver.ports import Facts, StreamInfo
from adsserver.store.reading_time import ReadingTime
from adsserver.store.sent_secrets import Hearing, SentContents
from adsserver.store.tail_events import Ending, Event, Events, Noted, Opening, What
from controlplane.clients.foreign_text import KeptText
from controlplane.tail.sealed import batch_sealed, interest_opened
from controlplane.tail.values import Batch, Interest
from xdscore.resource_types import ResourceType
from xdscore.shares import accountable
from xdscore.token_bucket import TokenBucket

log = structlog.get_logger(__name__)

# Watchers announce themselves each second; who missed that four times has left.
_FORGOTTEN_AFTER_S: Final = 5.0
_PERIOD_S: Final = 0.2
# Of each period: the event loop needs the processor more.
_WORK_S: Final = 0.03
# What happens in one environment within a period, in a fleet of thousands that takes a change.
_MAX_NOTED: Final = 5_000
# More watchers than web processes let in: what is more was not announced by them.
_MAX_INTERESTS: Final = 100
# What people read of a NACK; the console shows the rest where the client is shown.
_TEXT_BYTES: Final = 1_024

Publish = Callable[[str, bytes], int]
"""Sends bytes to a channel and returns how many listened. May raise RedisError or OSError."""


class _Queue:
    """What happened in one environment and was not looked at yet. The event loop adds, one thread takes; `lost` counts
    what had no room, and only grows.
    """

    def __init__(self) -> None:
        self.noted: deque[Noted] = deque()
        self.lost = 0

    def add(self, noted: Noted) -> None:
        if len(self.noted) < _MAX_NOTED:
            self.noted.append(noted)
        else:
            self.lost += 1


@dataclass(slots=True, eq=False)
class _Watcher:
    """A watcher: what it wants, until when it counts as there without another word, how fast it may be told, and what
    it is told next.
    """

    interest: Interest
    until: float
    rate: TokenBucket
    events: list[tuple[str, str]] = field(default_factory=list)
    left_out: int = 0


class Tap:
    """Collects what happens in environments that somebody watches, and sends it to them.

    publish: sends a message over the broker.
    events_per_s: how many events one watcher is told in a second on average, and at once.
    contents: what streams were sent; no secret in it may stand in what is told.
    clock, now: seconds on a clock that only goes forward, and Unix time.
    """

    def __init__(
        self,
        contents: SentContents,
        publish: Publish,
        *,
        events_per_s: int,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._contents = contents
        self._publish = publish
        self._events_per_s = events_per_s
        self._clock = clock
        self._now = now
        self._process = uuid.uuid4().hex
        self._number = 0
        self._reading = ReadingTime(clock)
        self._lock = threading.Lock()  # of the next, between the threads that hear of watchers and that tell them
        self._watchers: dict[str, _Watcher] = {}
        # Replaced as a whole, by whoever holds the lock, and read by the event loop.
        self._queues: Mapping[str, _Queue] = {}
        self._lost_before: dict[str, int] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tail", daemon=True)
        self.watched = False
        """Whether anybody watches. The event loop asks before it notes anything."""

    def start(self) -> None:
        """Start the thread that tells watchers; it sleeps while there are none."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nobody anything from now on; returns at once."""
        self.watched = False
        self._stopping.set()
        self._wake.set()

    def announced(self, data: bytes) -> None:
        """Take note of an announcement on the channel of interests; what no process of this installation wrote is
        ignored. Any thread.
        """
        interest = interest_opened(data)
        if interest is None:
            return
        until = self._clock() + _FORGOTTEN_AFTER_S
        with self._lock:
            known = self._watchers.get(interest.channel)
            if known is not None and known.interest == interest:
                known.until = until
                return
            if known is None and len(self._watchers) >= _MAX_INTERESTS:
                return
            rate = TokenBucket(self._events_per_s, self._events_per_s, self._clock())
            self._watchers[interest.channel] = _Watcher(interest, until, rate)
            self._arrange()
        self._wake.set()

    def note(self, stream: StreamInfo, what: What) -> None:
        """Note what happened on a stream, if somebody watches its environment. On the event loop."""
        queue = self._queues.get(stream.environment)
        if queue is not None:
            queue.add(Noted(self._now(), stream, what))

    def tell(self) -> None:
        """Send what was noted since the last call to those who want it, and forget those who left. In the thread."""
        ends = self._clock() + _WORK_S
        with self._lock:
            watchers, queues = list(self._watchers.values()), self._queues
        events = Events(self._said_by(Hearing(self._contents, max_bytes=_TEXT_BYTES, time=self._reading)))
        held: list[Noted] = []
        for key, queue in queues.items():
            told = [each for each in watchers if each.interest.environment == key]
            skipped = self._sort(queue, told, events, ends, held)
            lost = queue.lost
            for each in told:
                each.left_out += skipped + lost - self._lost_before.get(key, 0)
            self._lost_before[key] = lost
        left = [each for each in watchers if each.until < self._clock() or not self._sent(each)]
        with self._lock:
            for each in left:
                if self._watchers.get(each.interest.channel) is each:
                    del self._watchers[each.interest.channel]
            self._arrange()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            while self.watched and not self._stopping.wait(_PERIOD_S):
                try:
                    self.tell()
                except Exception:
                    # A fault here must not become one of the streams; nobody is told anything until they ask again.
                    log.exception("tail.failed")
                    with self._lock:
                        self._watchers.clear()
                        self._arrange()

    def _arrange(self) -> None:
        """Keep a queue for each environment that is watched, and for no other. Called with the lock held."""
        wanted = {each.interest.environment for each in self._watchers.values()}
        self._queues = {key: self._queues.get(key) or _Queue() for key in wanted}
        self._lost_before = {key: lost for key, lost in self._lost_before.items() if key in wanted}
        self.watched = bool(wanted)

    def _sort(self, queue: _Queue, watchers: list[_Watcher], events: Events, ends: float, held: list[Noted]) -> int:
        """Give each watcher the events of this queue that it wants; returns how much of it was not looked at, because
        the time `ends` had come. What was taken is added to `held`.
        """
        skipped = 0
        for _ in range(len(queue.noted)):
            noted = queue.noted.popleft()
            # What is known of resources by their `id()` is true as long as they are held.
            held.append(noted)
            now = self._clock()
            if now >= ends:
                skipped += 1
                continue
            for event in events.of(noted):
                for each in watchers:
                    if each.interest.wanted.wants(event.subject):
                        _tell(each, event, now)
        return skipped

    def _sent(self, watcher: _Watcher) -> bool:
        """Whether the watcher is still there: what it is to be told is sent, and somebody listened."""
        if not watcher.events and not watcher.left_out:
            return True
        self._number += 1
        interest = watcher.interest
        batch = Batch(self._process, self._number, interest.environment, tuple(watcher.events), watcher.left_out)
        watcher.events, watcher.left_out = [], 0
        try:
            return self._publish(interest.channel, batch_sealed(batch, interest.channel)) > 0
        except (RedisError, OSError):
            # It announces itself again when the broker is back.
            return False

    def _said_by(self, hearing: Hearing) -> Callable[[StreamInfo, Rejected], KeptText]:
        def said(stream: StreamInfo, fact: Rejected) -> KeptText:
            who = accountable(identity=stream.identity, peer=stream.peer)
            return hearing.kept(who, fact.nack.message, fact.kind, fact.resources)

        return said


def _tell(watcher: _Watcher, event: Event, now: float) -> None:
    if watcher.rate.try_take(now) > 0:
        watcher.left_out += 1
    else:
        watcher.events.append((event.subject.kind.value, event.text(watcher.interest.wanted.name)))


class TappedFacts:
    """Hands facts on, and lets a tap note them while somebody watches. Implements ports.Facts."""

    def __init__(self, facts: Facts, tap: Tap) -> None:
        self._facts = facts
        self._tap = tap

    def opened(self, stream: StreamInfo) -> None:
        """Note that a stream received its first request."""
        self._facts.opened(stream)
        if self._tap.watched:
            self._tap.note(stream, Opening())

    def sent(self, stream: StreamInfo, response: Respond) -> None:
        """Note that a response was handed to the transport."""
        self._facts.sent(stream, response)
        if self._tap.watched:
            self._tap.note(stream, response)

    def learnt(self, stream: StreamInfo, fact: Fact, holdings: Holdings | None = None) -> None:
        """Note what a request meant, as the engine found: an ACK, a NACK, another subscription. `holdings`: what the
        client has of the type since then.
        """
        self._facts.learnt(stream, fact, holdings)
        if self._tap.watched and not isinstance(fact, Violated):
            self._tap.note(stream, _cut(fact) if isinstance(fact, Rejected) else fact)

    def holds(self, stream: StreamInfo, kind: ResourceType, holdings: Holdings) -> None:
        """Note what the client has of a type, where that changed without a word of the client."""
        self._facts.holds(stream, kind, holdings)

    def closed(self, stream: StreamInfo, cause: str) -> None:
        """Note that the stream ended; `cause` is a sentence for an operator."""
        self._facts.closed(stream, cause)
        if self._tap.watched:
            self._tap.note(stream, Ending(cause))

    def awaited(self, stream: StreamInfo) -> None:
        """Note that a rollout's judge waits for what was just noted of this stream."""
        self._facts.awaited(stream)


def _cut(fact: Rejected) -> Rejected:
    # Of a text of any size only what may be shown is held on to; one character more shows that it was cut.
    return replace(fact, nack=Nack(fact.nack.code, fact.nack.message[: 2 * _TEXT_BYTES + 1]))
