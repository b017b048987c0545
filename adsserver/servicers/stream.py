"""One stream of either variant: a reader and a writer around one engine session. Made by `methods` for every call.

The reader turns requests into session events; the writer composes the next response at the last moment, from what is
current, and waits for the transport to take it: nothing queues (performance.md law 4, decisions part 7). Nothing here
blocks the event loop.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import cast

import grpc
import structlog

from adsserver.engine.events import Fact, Request, Variant, Violated
from adsserver.engine.holdings import Holdings
from adsserver.engine.publication import Publication
from adsserver.identity.identification import Caller, NodeError, first_node, same_node
from adsserver.limits.budgets import Budget, RefusedStreamError, WriteTurn
from adsserver.metrics import UNKNOWN_TYPE
from adsserver.ports import StreamInfo
from adsserver.servicers.begun import Begun
from adsserver.servicers.ends import (
    BROKEN,
    CLIENT_ENDED,
    DRAINING,
    MOVED,
    NOTHING_LOADED,
    TOO_OLD,
    TOO_SLOW,
    End,
    StreamEndError,
    lost,
    no_request,
)
from adsserver.servicers.reading import Reading
from adsserver.servicers.reports import Reports
from adsserver.servicers.shared import Context, Shared
from adsserver.servicers.unsupported import TooManyTypesError, UnsupportedTypes
from adsserver.wire.discovery import (
    Incoming,
    MalformedRequestError,
    NodeFacts,
    OversizedRequestError,
    UnknownTypeRequest,
)
from xdscore.callers import caller_key
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content
from xdscore.token_bucket import TokenBucket

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# A status that the client does not read keeps the call open; the handler does not wait for it longer than this.
_ABORT_WAIT_S = 5.0
# Streams that were opened together do not renew what has a ttl together. Longer than the longest interval.
_RENEWAL_SPREAD_S = 2.0**18
# Streams that must move reconnect over this time, not at once (decisions U18).
_MOVE_SPREAD_S = 5.0
# The one violation that ends the stream: what it asks for is refused, and half a subscription would be a lie.
TOO_MANY_NAMES = "C11"
# The session says when to look again; never more often than this, whatever it says.
_SHORTEST_WAIT_S = 0.01


class Stream:
    """One call of a discovery service. `service`: the type of a single-type service such as CDS; None on ADS."""

    def __init__(
        self, shared: Shared, context: Context, variant: Variant, service: ResourceType | None, caller: Caller
    ) -> None:
        self._shared = shared
        self._context = context
        self._variant = variant
        self._caller = caller
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._end: End | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._look_again: asyncio.TimerHandle | None = None
        self._waits_until = self._silent_until = math.inf
        self._too_old_at = math.inf
        self._release: Callable[[], object] = lambda: None  # where no turn was taken
        self._budget: Budget | None = None
        self._counted: str | None = None
        self._name_bytes = 0
        self._first_by = math.inf
        self._asked = False
        self._unsupported: UnsupportedTypes | None = None
        self._begun: Begun | None = None
        self._reading = Reading(shared, variant, service)
        self._reports = Reports(
            variant, shared.metrics, shared.limits, shared.denied, shared.refusals, shared.error_counts
        )
        self._writer: asyncio.Task[object] | None = None
        self._writing_since = math.inf
        self._cut = False

    # What the server and the hub ask for

    async def run(self) -> None:
        """Serve until client or server ends it, then end the call with the reason. Raises only if it was cancelled."""
        end = CLIENT_ENDED
        try:
            budget = await self._shared.admission.enter(caller_key(self._caller.identity, self._context.peer()))
        except RefusedStreamError as error:
            # Refused before any response, so that the client backs off (reliability F15).
            self._shared.metrics.refused.inc()
            await self._abort(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)))
            return
        self._open(budget)
        reader = self._loop.create_task(self._read(budget))
        try:
            end = await self._write(budget)
        finally:
            reader.cancel()
            self._close(end)
        await self._abort(end)

    @property
    def client(self) -> ClientFacts:
        """The facts about the client by which its environment is chosen. Not to be asked before the first request."""
        return self._begun.client if self._begun is not None else ClientFacts(identity=self._caller.identity)

    @property
    def unanswered_since(self) -> float:
        """When the oldest response without an ACK or NACK was sent, by the event loop's clock; inf for none."""
        return self._begun.session.unanswered_since() if self._begun is not None else math.inf

    def needed(self) -> Iterator[Content]:
        """The contents that the client may have to be sent again, even when no snapshot has them any more."""
        return self._begun.session.needed() if self._begun is not None else iter(())

    def offer(self, publication: Publication) -> None:
        """Take note of a new publication: find out whether the client must be sent something."""
        if self._begun is not None:
            self._silent_until = math.inf
            if self._begun.session.offer(publication, self._loop.time()):
                self._wake.set()

    def move(self) -> None:
        """End the stream soon, because its client belongs to another environment now (decisions U18)."""
        self._end_after(random.uniform(0.0, _MOVE_SPREAD_S), MOVED)  # noqa: S311 - spreads load, keeps no secret

    def end_if_due(self, now: float) -> None:
        """End if the client has taken nothing of a response for too long (reliability F17), if it never asked for
        anything (threat 10), or if the stream is as old as it may be. `now` is the event loop's time.
        """
        if now >= self._too_old_at:
            self._finish(TOO_OLD)
        if now >= self._first_by:
            self._finish(no_request(self._shared.limits.first_request_ms))
        if self._writer is not None and now - self._writing_since >= self._shared.limits.write_timeout_s:
            self._finish(TOO_SLOW)
            self._writing_since, self._cut = math.inf, True
            self._writer.cancel()

    def drain(self, after_s: float) -> None:
        """End the stream in `after_s` seconds, because the process stops."""
        self._end_after(after_s, DRAINING)

    # Life

    def _open(self, budget: Budget) -> None:
        shared = self._shared
        self._budget = budget
        shared.open.add(self)
        shared.metrics.streams.inc()
        shared.metrics.opened[self._variant.value].inc()
        # Its place is held until the transport is done with the call, for one that is never read to its end costs that
        # much memory: until the end of the task in which grpc calls this handler. The context would take a callback,
        # too, and then keep itself until the collector comes.
        cast("asyncio.Task[None]", asyncio.current_task()).add_done_callback(self._leave)
        # A credential that ends, by its time or because it was revoked, takes the stream with it (reliability S2).
        self._release = shared.callers.hold(self._caller, lambda reason: self._finish(lost(reason)))
        # With jitter, and long after the first response (protocol.md J3).
        spread = shared.limits.connection_age_jitter_percent / 100
        age_s = shared.limits.connection_age_s * (1 + random.uniform(-spread, spread))  # noqa: S311 - spreads load
        self._too_old_at = self._loop.time() + age_s

    def _leave(self, _: object) -> None:
        if (budget := self._budget) is None:
            return
        if self._counted is not None:
            budget.leave_node(self._counted)
        budget.hold_names(-self._name_bytes)
        self._shared.admission.leave(budget)

    def _close(self, end: End) -> None:
        shared = self._shared
        self._end = end
        for timer in self._timers:
            timer.cancel()
        if self._look_again is not None:
            self._look_again.cancel()
        self._release()
        shared.open.discard(self)
        shared.metrics.streams.dec()
        shared.metrics.ended[end.code.name].inc()
        info = None if self._begun is None else self._begun.info
        if self._begun is not None and info is not None:
            shared.hub.leave(info.environment, self)
            shared.facts.closed(info, end.cause)
            self._begun.left(shared.facts)
        # How clients come and go is in their timelines in the console; thousands at once are no news for a log.
        if end is not CLIENT_ENDED and self._budget is not None and (unsaid := self._budget.line()) is not None:
            who = {"peer": self._context.peer()} if info is None else {"stream": info.id, "node_id": info.node_id}
            log.info("stream.closed", **who, code=end.code.name, cause=end.cause, unsaid=unsaid)

    async def _abort(self, end: End) -> None:
        if end.code is grpc.StatusCode.OK:
            return
        try:
            async with asyncio.timeout(_ABORT_WAIT_S):
                await self._context.abort(end.code, end.text)
        except TimeoutError:
            # The client does not read: the status stays with the transport until the connection ends.
            return

    def _finish(self, end: End) -> None:
        if self._end is None:
            self._end = end
            self._wake.set()

    def _end_after(self, after_s: float, end: End) -> None:
        self._timers.append(self._loop.call_later(after_s, self._finish, end))

    # Reading

    async def _read(self, budget: Budget) -> None:
        """Read requests until the client closes or breaks a rule; a failure ends only this stream (threat 8)."""
        try:
            await self._read_all(budget)
            self._finish(CLIENT_ENDED)
        except StreamEndError as error:
            self._finish(error.end)
        except (MalformedRequestError, NodeError) as error:
            self._finish(End(grpc.StatusCode.INVALID_ARGUMENT, str(error)))
        except (OversizedRequestError, RefusedStreamError, TooManyTypesError) as error:
            self._finish(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)))
        except Exception:
            log.exception("stream.failed", peer=self._context.peer())
            self._finish(BROKEN)

    async def _read_all(self, budget: Budget) -> None:
        limits = self._shared.limits
        bucket = TokenBucket(limits.requests_per_s, limits.request_burst, self._loop.time())
        while True:
            delay_s = bucket.take(self._loop.time())
            if delay_s > 0:
                # Not reading is what slows a flood down (reliability threat 10): of a stream here, of a caller below.
                await asyncio.sleep(delay_s)
            if (begun := self._begun) is None:
                was_read = await budget.first_turn()
                # From now on: what its caller's turn took is no silence of this stream.
                self._first_by = self._loop.time() + limits.first_request_ms / 1000
                data = await self._context.read()
                was_read()
            else:
                if (turn := budget.ask_turn()) is not None:
                    await turn
                data = await self._context.read()
                if (turn := self._shared.hub.answer_turn(begun.info.environment)) is not None:
                    await turn
            if data is grpc.aio.EOF:  # type: ignore[attr-defined]  # grpc-stubs do not know it
                return
            self._first_by = math.inf
            budget.received(len(data))
            # All streams of a caller may have read something when it has spent what it has.
            if (turn := budget.ask_turn()) is not None:
                await turn
            incoming = await self._reading.apart(data, budget) if self._reading.is_large(data) else data
            while (before := self._take_in(incoming, budget)) is not None:
                await before()
            # All of it would be kept until the next request comes, which may be never.
            del data, incoming

    def _take_in(self, incoming: Incoming | bytes, budget: Budget) -> Callable[[], Awaitable[object]] | None:
        """Take in a request, or the bytes of one. Returns what must be waited for before, if there is something: then
        it was not taken in, and this is to be called again.
        """
        # What does not wait is counted at once: two looks at a clock that is dear for each request.
        with budget.of_request():
            if isinstance(incoming, bytes):
                incoming = self._reading.read(incoming)
            begun = self._begun
            if begun is None:
                node = first_node(incoming.node)
                self._enter(node, budget)
                if not self._shared.hub.is_loaded:
                    return self._until_loaded
                begun = self._begun = self._started(node)
            else:
                same_node(begun.node, incoming.node)
            request = incoming.request
            if isinstance(request, UnknownTypeRequest):
                self._receive_unknown(begun, request)
            elif (make := begun.session.costly_view(request.kind)) is not None:
                # For everybody who may see the same: nobody's cost.
                return partial(self._reading.elsewhere, make)
            else:
                self._receive(begun, request)
        self._count_names(begun, budget)
        return None

    def _enter(self, node: NodeFacts, budget: Budget) -> None:
        """Count the stream for its node; once, however often its first request is looked at."""
        if self._counted is None:
            budget.enter_node(node.id)
            self._counted = node.id
            self._waits_until = self._loop.time() + self._shared.limits.first_snapshot_wait_ms / 1000

    async def _until_loaded(self) -> None:
        # Without a directory nobody can say which environment this is: silence, then UNAVAILABLE (decisions C4).
        if not await self._shared.hub.wait_loaded(self._waits_until - self._loop.time()):
            raise StreamEndError(NOTHING_LOADED)

    def _started(self, node: NodeFacts) -> Begun:
        shared = self._shared
        peer = self._context.peer()
        phase_s = random.uniform(0.0, _RENEWAL_SPREAD_S)  # noqa: S311 - spreads load, keeps no secret
        begun = Begun.of(shared, self._caller, node, self._variant, peer, settings=shared.settings, phase_s=phase_s)
        if shared.hub.publication(begun.info.environment) is None:
            self._silent_until = self._waits_until
            self._wake.set()
        shared.hub.join(begun.info.environment, self)
        shared.facts.opened(begun.info)
        return begun

    def _receive(self, begun: Begun, request: Request) -> None:
        self._shared.metrics.requests[self._variant.value, request.kind.word].inc()
        facts = begun.session.receive(request, self._loop.time())
        if facts:
            holdings = begun.session.holdings(request.kind)
            for fact in facts:
                self._learn(begun.info, fact, holdings)
            begun.said(self._shared.facts, facts)
        # Most requests are ACKs, after which there is nothing to say.
        if begun.session.dirty:
            self._asked = True
            self._wake.set()

    def _count_names(self, begun: Begun, budget: Budget) -> None:
        """Count the memory of names and node against the caller. Raises RefusedStreamError when it has too much."""
        held = begun.node.kept_bytes + begun.session.name_bytes
        held += self._unsupported.name_bytes if self._unsupported is not None else 0
        if held == self._name_bytes:
            return
        change, self._name_bytes = held - self._name_bytes, held
        budget.hold_names(change)
        limit = self._shared.limits.name_bytes_per_stream
        if held > limit:
            raise RefusedStreamError(
                f"The names that this stream asks for and what its node says of itself take {held} bytes; "
                f"at most {limit} are allowed (name_bytes_per_stream)."
            )

    def _receive_unknown(self, begun: Begun, request: UnknownTypeRequest) -> None:
        self._shared.metrics.requests[self._variant.value, UNKNOWN_TYPE].inc()
        if not begun.session.tells_errors:
            return
        if self._unsupported is None:
            self._unsupported = UnsupportedTypes(self._shared.limits)
        if self._variant is Variant.SOTW:
            self._unsupported.receive_sotw(request)
        else:
            self._unsupported.receive_delta(request)
        self._asked = True
        self._wake.set()

    def _learn(self, info: StreamInfo, fact: Fact, holdings: Holdings | None) -> None:
        self._shared.facts.learnt(info, fact, holdings)
        self._reports.learnt(info, fact)
        if isinstance(fact, Violated) and fact.rule == TOO_MANY_NAMES:
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, fact.detail))

    # Writing

    async def _write(self, budget: Budget) -> End:
        """Write responses until the stream ends; returns the reason why it ended."""
        self._writer = asyncio.current_task()
        turn = WriteTurn(budget, self._wake.set)
        try:
            while True:
                while self._end is None and (data := self._next_in_turn(budget, turn)) is not None:
                    await self._send(data)
                if self._end is None and self._loop.time() >= self._silent_until:
                    self._end = NOTHING_LOADED
                if self._end is not None:
                    return self._end
                self._arm()
                await self._wake.wait()
                self._wake.clear()
        except asyncio.CancelledError:
            # By `end_if_due`, unless the call was cancelled, too.
            if not self._cut or self._end is None or self._writer is None or self._writer.uncancel() > 0:
                raise
            return self._end
        except StreamEndError as error:
            return error.end
        except Exception:
            if self._context.cancelled():
                return CLIENT_ENDED
            log.exception("stream.failed", peer=self._context.peer())
            return BROKEN
        finally:
            turn.cancel()

    def _next_in_turn(self, budget: Budget, turn: WriteTurn) -> bytes | None:
        """The bytes to write now, or None. Answers to requests are kept back until it is the stream's `turn`;
        publications are not. Does not block.
        """
        if not self._asked:
            return self._next()
        if not turn.has_come():
            return None
        with budget:
            data = self._next()
            self._asked = self._has_more_to_say(answered=data is not None)
        return data

    def _has_more_to_say(self, *, answered: bool) -> bool:
        """Whether requests are not answered to the end yet, after a look that found an answer, or none."""
        if self._begun is None:
            return False
        session = self._begun.session
        if answered and (session.dirty or self._unsupported is not None):
            return True
        # The engine may be in the midst of a long answer.
        return session.wake_at() <= self._loop.time()

    def _next(self) -> bytes | None:
        if self._begun is None:
            return None
        if self._unsupported is not None and (answer := self._unsupported.take()) is not None:
            return self._shared.encoder.encode_errors(
                self._variant, answer.type_url, answer.nonce, answer.version, answer.errors
            )
        session, info = self._begun.session, self._begun.info
        response = session.compose(self._loop.time())
        self._reports.too_large(info, session.too_large())
        if response is None:
            for kind, holdings in session.unheard():
                self._shared.facts.holds(info, kind, holdings)
            return None
        self._reports.sent(info, response, self._loop.time())
        if not response.heartbeat:
            # Before the write, so that the record of a response always precedes that of its ACK.
            self._shared.facts.sent(info, response)
        node = self._begun.node
        return self._shared.encoder.encode(
            self._variant, response, wrapped=node.takes_wrappers, takes_ttls=node.takes_ttls
        )

    async def _send(self, data: bytes) -> None:
        # The write is the back-pressure; `end_if_due` looks at it from time to time.
        self._writing_since = self._loop.time()
        await self._context.write(data)
        self._writing_since = math.inf
        self._shared.metrics.bytes_sent.inc(len(data))

    def _arm(self) -> None:
        """Set a timer for when there may be something to write, or a reason to end, though nothing arrives."""
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None
        due = self._silent_until
        if self._begun is not None:
            due = min(due, self._begun.session.wake_at())
        if due < math.inf:
            due = max(due, self._loop.time() + _SHORTEST_WAIT_S)
            self._look_again = self._loop.call_at(due, self._wake.set)
