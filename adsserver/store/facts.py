"""Keeps what streams learnt and writes it behind their back (decisions part 7, "Facts").

The event loop puts facts into `FactBuffer`; one thread takes them each second, or up to half a second later while
clients are busy, and writes them in batches over its own connection. A call never waits for the database, raises
nothing and costs the same however much there is. While the database is away states are kept, and of NACKs the oldest of
whoever sent most give way; no stream is slowed.
"""

import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

import structlog
from django.conf import settings
from django.db import DataError, IntegrityError, connection

from adsserver.engine.events import Acknowledged, Fact, Rejected, Respond, Subscribed, Violated
from adsserver.engine.holdings import Holdings
from adsserver.ports import StreamInfo
from adsserver.store.contents import ContentMemory
from adsserver.store.fact_batches import Acknowledgement, Ended, Learnt, Pending, Substream
from adsserver.store.held_moves import Reported
from adsserver.store.opened import Opened
from adsserver.store.remembered import RememberedResponses
from adsserver.store.sent_secrets import SentContents
from adsserver.store.tallies import Tallies
from adsserver.store.waiting_nacks import RawNack, WaitingNacks
from controlplane.clients.facts import MAX_BATCH_KEYS, FactBatch, ReplicaFact, Serving, SubscriptionState
from controlplane.clients.services import SILENT_S, facts_write
from controlplane.logs.origin import replica_set
from xdscore.limits import Limits
from xdscore.resource_types import ResourceType

log = structlog.get_logger(__name__)

# Read off the class, each costs a look-up in a hot path.
_SENT, _ACKED = SubscriptionState.SENT, SubscriptionState.ACKED
_FLUSH_S = 1.0
# While clients connect, or take a change, the event loop needs the processor more, and what they do next makes the same
# rows anew. So a batch waits until nothing was noted for a moment, but not for long.
_CALM_S = 0.05
_CALM_WITHIN_S = 0.5
# What the judge of a rollout waits for is written after so long at the latest (rollouts.md R3), and no more often,
# however many clients are on the candidate side.
_AWAITED_S = 0.05
# Nearly every response is answered at once. One that may still be is written together with its answer: a change that
# reaches a fleet is then one row for each client, not two. Nothing is older than 2 s when it is written (decisions
# U16): half a second that it may wait for its answer, and the time between two batches.
_ANSWERS_WITHIN_S = 0.5
_HEARTBEAT_S = 5.0
_RETRY_FIRST_S = 1.0
_RETRY_LAST_S = 30.0
# After so long without a write the workers may take this process for dead and close its streams in the database
# (SILENT_S): all of them are then reported again.
_REASSERT_AFTER_S = SILENT_S * 2 / 3
_MISSING_AFTER_S = 10.0
# A batch that the database refuses for what is in it, rather than for its own state, must not hold up the ones behind
# it: the next tries are smaller and smaller, until a single fact is left, which is given up.
_MAX_REFUSALS = 5
_SHRINK = 8
# So many are copied while the event loop may have to wait: some tenths of a millisecond.
_SLICE = 500
# decisions C30: the fact writer is the first to give way to other writers.
_SQLITE_BUSY_MS = 2_000


@dataclass(frozen=True, slots=True)
class FactStatus:
    """Whether facts reach the database, and how many NACKs were dropped because they did not.

    `missing_since`: the time since which no facts reach it, once that is more than ten seconds ago; else None.
    """

    missing_since: datetime | None
    nacks_dropped: int

    @property
    def detail(self) -> str:
        """The problem in one sentence for an operator; empty while all is well."""
        return "" if self.missing_since is None else f"facts since {self.missing_since:%H:%M:%S} UTC are missing"


@dataclass(slots=True, eq=False)
class _OpenSubstream:
    """One type of an open stream, changed in place with every response and request; a `Substream` is a copy of it."""

    key: tuple[str, str]
    wildcard: bool = False
    names: frozenset[str] = frozenset()
    state: SubscriptionState = SubscriptionState.REQUESTED
    nonce: str = ""
    sent: str = ""
    sent_at: float | None = None
    acked: str = ""
    acked_at: float | None = None
    environment: str = ""
    # What the client had at its last request, and what it was sent since; as of when.
    holdings: Holdings | None = None
    unanswered: tuple[Respond, ...] = ()
    held_at: float = 0.0

    def is_sent_after(self, moment: float) -> bool:
        """Whether a response was sent after this time (`moment`) and has no ACK or NACK yet."""
        return self.state is _SENT and self.sent_at is not None and self.sent_at > moment

    def copied(self) -> Substream:
        holdings = self.holdings
        return Substream(
            self.wildcard,
            self.names,
            self.state,
            self.sent,
            self.sent_at,
            self.acked,
            self.acked_at,
            None if holdings is None else Reported(self.environment, holdings, self.unanswered, self.held_at),
        )


@dataclass(slots=True)
class _OpenStream:
    """An open stream and its types, changed in place by the event loop."""

    opened: Opened
    substreams: dict[str, _OpenSubstream] = field(default_factory=dict)

    def substream(self, word: str) -> _OpenSubstream:
        """The record of the type with this word, which is made if there is none."""
        known = self.substreams.get(word)
        if known is None:
            stream = self.opened.stream
            known = self.substreams[word] = _OpenSubstream((stream.id, word), environment=stream.environment)
        return known


class FactBuffer:
    """Collects facts and writes them in batches. Implements ports.Facts.

    write: stores one batch, or raises; returns True when other processes took this one for dead meanwhile.
    clock: returns seconds on a clock that only goes forward.
    serving: returns, on any thread, what each environment is served from.
    contents: what streams were sent. Secrets in it must not stay in the text of a NACK; about content that is not in it
      no text is kept.
    place: names this process among all ADS processes (`replica_place`).
    tell_judge: called, by the thread, with the key of an environment once what its rollout's judge awaits is written.
    """

    def __init__(
        self,
        *,
        write: Callable[[FactBatch], bool | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
        serving: Callable[[], Mapping[str, Serving] | None] = lambda: None,
        contents: SentContents | None = None,
        place: str = "",
        tell_judge: Callable[[str], None] = lambda _: None,
    ) -> None:
        bounds = limits if limits is not None else settings.PARLEY.limits
        self._write = write if write is not None else write_to_database
        self._clock = clock
        self._serving = serving
        self._max_nack_bytes: int = bounds.nack_text_bytes
        self._max_unanswered: int = bounds.unanswered_responses
        self._shortest_gap_s = 1 / bounds.nack_writes_per_s
        self._tell_judge = tell_judge
        # Held by the event loop and the thread for the time of a few assignments, or of a slice of copies; guards the
        # next seven.
        self._lock = threading.Lock()
        # Environments on whose streams something happened that the judge of a rollout waits for.
        self._awaited: set[str] = set()
        self._max_nacks: int = bounds.nacks_waiting
        self._learnt = Learnt(WaitingNacks(self._max_nacks))
        self._tallies = Tallies()
        # What changed since the thread last looked, in order: each has one place, however often it changes.
        self._changed: dict[_OpenSubstream, None] = {}
        self._streams: dict[str, _OpenStream] = {}
        self._remembered = RememberedResponses()
        self._nacks_dropped = 0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="facts", daemon=True)
        # From here on: the thread's own.
        self._id = uuid.uuid4().hex
        replica_set(self._id)
        self._place = place
        self._begins = True
        self._started_at = clock()
        self._pending = Pending(
            max_nack_bytes=self._max_nack_bytes,
            max_nacks=self._max_nacks,
            key=settings.SECRET_KEY,
            contents=contents or ContentMemory(),
            clock=clock,
        )
        self._written_at = self._started_at
        self._judges_to_tell: set[str] = set()
        self._told_to_serve: Mapping[str, Serving] | None = None
        self._retry_s = 0.0
        self._next_try_at = self._started_at
        self._refused = 0
        self._room = MAX_BATCH_KEYS
        self._failing_since: datetime | None = None

    # --- Called on the event loop
    # ---------------------------------------------------------------------------------------

    def opened(self, stream: StreamInfo) -> None:
        """Note that a stream received its first request."""
        opened = Opened(stream, self._clock())
        with self._lock:
            self._streams[stream.id] = _OpenStream(opened)
            self._learnt.opened[stream.id] = opened
            full = self._noted() >= MAX_BATCH_KEYS
        if full:
            self._wake.set()

    def sent(self, stream: StreamInfo, response: Respond) -> None:
        """Note that a response was handed to the transport."""
        now = self._clock()
        with self._lock:
            known = self._streams.get(stream.id)
            if known is None:
                return
            each = known.substream(response.kind.word)
            each.state, each.nonce = _SENT, response.nonce
            each.sent, each.sent_at = response.version, now
            # As many as the client can still answer.
            before, each.held_at = each.unanswered, now
            each.unanswered = (*before, response)[-self._max_unanswered :] if before else (response,)
            if response.errors:
                self._tallies.errors(stream.environment, response)
            self._changed[each] = None
            full = len(self._changed) >= MAX_BATCH_KEYS
        if full:
            self._wake.set()

    def learnt(self, stream: StreamInfo, fact: Fact, holdings: Holdings | None = None) -> None:
        """Note what a request meant, as the engine found: an ACK, a NACK, another subscription. `holdings`: what the
        client has of the type since then.
        """
        if isinstance(fact, Violated):
            return  # counted by the metrics of this process; nobody is told about it later
        now = self._clock()
        with self._lock:
            known = self._streams.get(stream.id)
            if known is None:
                return
            each = known.substream(fact.kind.word)
            match fact:
                case Acknowledged():
                    self._acknowledged(known, each, fact, now)
                case Subscribed():
                    each.wildcard, each.names = fact.wildcard, fact.names
                case Rejected():
                    self._rejected(known, each, fact, now)
            if holdings is not None:
                each.holdings, each.unanswered, each.held_at = holdings, (), now
            self._changed[each] = None
        if isinstance(fact, Rejected):
            self._wake.set()

    def holds(self, stream: StreamInfo, kind: ResourceType, holdings: Holdings) -> None:
        """Note what the client has of a type, where that changed without a word of the client."""
        now = self._clock()
        with self._lock:
            known = self._streams.get(stream.id)
            if known is None:
                return
            each = known.substream(kind.word)
            each.holdings, each.unanswered, each.held_at = holdings, (), now
            self._changed[each] = None

    def closed(self, stream: StreamInfo, cause: str) -> None:
        """Note that the stream ended; `cause` is a sentence for an operator."""
        now = self._clock()
        with self._lock:
            if self._streams.pop(stream.id, None) is not None:
                self._learnt.ended[stream.id] = Ended(cause, now)

    def awaited(self, stream: StreamInfo) -> None:
        """Note that a rollout's judge waits for what was just noted of this stream."""
        with self._lock:
            self._awaited.add(stream.environment)
        self._wake.set()

    def _acknowledged(self, known: _OpenStream, each: _OpenSubstream, fact: Acknowledged, now: float) -> None:
        # An answer to an older response does not say what the client makes of the newest one.
        if fact.nonce == each.nonce:
            # Who takes back what it had goes on refusing what is newer (B11, F17a).
            each.state = SubscriptionState.NACKED if fact.heal else _ACKED
        each.acked, each.acked_at = fact.version, now
        if fact.probed:
            self._learnt.probed.extend((known.opened, fact.kind.word, member) for member in fact.probed)
        environment = known.opened.stream.environment
        if fact.resources and not fact.heal and self._remembered.is_new(environment, fact.resources):
            self._learnt.acknowledged.append(Acknowledgement(environment, fact.kind.word, fact.resources))

    def _rejected(self, known: _OpenStream, each: _OpenSubstream, fact: Rejected, now: float) -> None:
        self._tallies.nack(known.opened.stream, fact.kind.word, now)
        if fact.nonce == each.nonce:
            each.state = SubscriptionState.NACKED
        # Of a text of any size only what can be stored is held on to; one character more shows that it was cut.
        message = fact.nack.message[: 2 * self._max_nack_bytes + 1]
        self._nacks_dropped += self._learnt.nacks.add(
            RawNack(
                known.opened,
                fact.kind,
                fact.version,
                fact.nack.code,
                message,
                fact.resources,
                fact.suspects,
                now,
                fact.evidence,
                fact.kept,
                fact.healing,
            )
        )

    # --- Called from anywhere
    # -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Write the facts that wait, and that this process ends; waits `timeout_s` seconds at most."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def status(self) -> FactStatus:
        """Whether facts reach the database."""
        since = self._failing_since
        if since is not None and datetime.now(UTC) - since < timedelta(seconds=_MISSING_AFTER_S):
            since = None
        return FactStatus(since, self._nacks_dropped + self._pending.nacks_dropped)

    # --- The thread
    # -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_FLUSH_S)
            # A NACK does not wait for the second to be over, but a storm of them costs a bounded number of writes.
            gap_s = _AWAITED_S if self._awaited else self._shortest_gap_s
            self._stopping.wait(max(0.0, self._written_at + gap_s - self._clock()))
            self._wait_for_calm()
            self._wake.clear()
            self._take()
            self._flush()
        self._take(everything=True)
        self._flush(stopping=True)
        connection.close()

    def _wait_for_calm(self) -> None:
        """Wait until no more facts come in, or a fact must be written at once, or the longest delay is over."""
        ends = self._clock() + _CALM_WITHIN_S
        before = -1
        while (noted := self._noted()) != before and self._clock() < ends:
            if self._wake.wait(_CALM_S):
                return
            before = noted

    def _noted(self) -> int:
        """The number of facts that wait to be taken; read without the lock, because an inexact number does no harm."""
        learnt = self._learnt
        return len(self._changed) + len(learnt.opened) + len(learnt.ended)

    def _take(self, *, everything: bool = False) -> None:
        with self._lock:
            taken, self._learnt = self._learnt, Learnt(WaitingNacks(self._max_nacks))
            self._judges_to_tell |= self._awaited
            self._awaited.clear()
            taken.tallies = self._tallies.take()
            # Together with the streams they are of, which were opened before.
            changed, self._changed = self._changed, {}
        # Where somebody refused, it counts at once who else was sent the same.
        everything = everything or len(taken.nacks) > 0 or len(changed) >= MAX_BATCH_KEYS
        answers_soon = math.inf if everything else self._clock() - _ANSWERS_WITHIN_S
        looked_at = iter(changed)
        while some := tuple(islice(looked_at, _SLICE)):
            with self._lock:
                for each in some:
                    if each.is_sent_after(answers_soon):
                        self._changed[each] = None
                    else:
                        taken.substreams[each.key] = each.copied()
        self._pending.add(taken)

    def _flush(self, *, stopping: bool = False) -> None:
        """Write batches until none is left or one fails. `stopping`: this is the last time.

        When there is nothing to write, it is still recorded now and then that this process lives, and at once which
        snapshots it serves.
        """
        now = self._clock()
        if now < self._next_try_at and not stopping:
            return
        if now - self._written_at >= _REASSERT_AFTER_S:
            self._report_again()
        due = stopping or now - self._written_at >= _HEARTBEAT_S or self._serving() != self._told_to_serve
        while due or self._pending:
            now = self._clock()
            batch = self._pending.batch(self._replica(now, stopping=stopping), now, self._room)
            try:
                replaced = self._write(batch)
            except Exception as error:  # noqa: BLE001 - whatever a driver raises, the facts are kept and tried again
                self._failed(batch, error)
                return
            self._pending.forget(batch)
            self._told_to_serve = batch.replica.serves
            self._begins = False
            self._succeeded()
            if replaced:
                log.warning("facts.replaced", detail="an ADS process of the same host, home and address has started")
                self._report_again()
            due = False
        for environment in self._judges_to_tell:
            self._tell_judge(environment)
        self._judges_to_tell.clear()

    def _replica(self, now: float, *, stopping: bool) -> ReplicaFact:
        dropped = self._nacks_dropped + self._pending.nacks_dropped
        age_s = now - self._started_at
        host, serves = socket.gethostname(), self._serving()
        return ReplicaFact(
            self._id, host, os.getpid(), age_s, dropped, stopping, serves, place=self._place, begins=self._begins
        )

    def _succeeded(self) -> None:
        self._written_at = self._clock()
        if self._failing_since is not None:
            log.info(
                "facts.resumed",
                missing_since=self._failing_since.isoformat(),
                streams_dropped=self._pending.streams_dropped,
            )
        self._retry_s, self._refused, self._failing_since = 0.0, 0, None
        self._room = min(self._room * _SHRINK, MAX_BATCH_KEYS)

    def _failed(self, batch: FactBatch, error: Exception) -> None:
        if self._failing_since is None:
            self._failing_since = datetime.now(UTC)
            log.warning("facts.delayed", reason=str(error), keys=batch.keys)
        self._retry_s = min(max(2 * self._retry_s, _RETRY_FIRST_S), _RETRY_LAST_S)
        self._next_try_at = self._clock() + self._retry_s
        if isinstance(error, DataError | IntegrityError | ValueError):
            self._refused += 1
            self._next_try_at = self._clock() + _RETRY_FIRST_S
            if self._room > 1:
                self._room = max(self._room // _SHRINK, 1)
            elif self._refused >= _MAX_REFUSALS:
                log.error("facts.dropped", reason=str(error), keys=batch.keys)
                self._pending.forget(batch)

    def _report_again(self) -> None:
        """Note every open stream as if it had just opened, one at a time, so that the event loop never waits long for
        the lock.
        """
        with self._lock:
            streams = tuple(self._streams.values())
        for stream in streams:
            key = stream.opened.stream.id
            with self._lock:
                if key in self._streams:
                    self._learnt.opened[key] = stream.opened
                    self._changed.update(dict.fromkeys(stream.substreams.values()))
        self._take()


def write_to_database(batch: FactBatch) -> bool:
    """Write a batch over the calling thread's own connection, and return what `facts_write` returns. After a failure
    the connection is dropped, and the next call opens another one.
    """
    try:
        if connection.vendor == "sqlite" and connection.connection is None:
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {_SQLITE_BUSY_MS}")
        return facts_write(batch=batch)
    except Exception:
        connection.close()
        raise
