"""One stream of either variant: a reader and a writer around one engine session. Made by `methods` for every call.

The reader turns requests into session events; the writer composes the next response at the last moment, from what is
current, and waits for the transport to take it: nothing queues (performance.md law 4, resolutions part 7). Nothing here
blocks the event loop.
"""

import asyncio
import math
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar, cast

import grpc
import structlog

from adsserver.callers import Callers, caller_key
from adsserver.engine.events import Acknowledged, Fact, Rejected, Request, Respond, Variant, Violated
from adsserver.engine.publication import Publication
from adsserver.engine.session import EngineSettings, Session
from adsserver.hub import Hub
from adsserver.identity import Caller, NodeError, first_node, same_node
from adsserver.limits import Admission, DeniedNames, RefusedStreamError, StreamCounts
from adsserver.metrics import UNKNOWN_TYPE, Metrics
from adsserver.ports import Facts, StreamInfo
from adsserver.servicers.ends import (
    BROKEN,
    CLIENT_ENDED,
    DRAINING,
    MOVED,
    NOT_HERE,
    NOTHING_LOADED,
    TOO_OLD,
    TOO_SLOW,
    End,
    StreamEndError,
    lost,
)
from adsserver.servicers.refusal_log import RefusalLog
from adsserver.servicers.unsupported import TooManyTypesError, UnsupportedTypes
from adsserver.wire import (
    Decoder,
    Encoder,
    MalformedRequestError,
    NodeFacts,
    OversizedRequestError,
    UnknownTypeRequest,
    decode,
)
from xdscore.client_kinds import kind_of
from xdscore.errors import StatusCode
from xdscore.limits import Limits
from xdscore.resource_types import ResourceType
from xdscore.selectors import ClientFacts
from xdscore.snapshot import Content
from xdscore.token_bucket import TokenBucket

_Result = TypeVar("_Result")
Context = grpc.aio.ServicerContext[bytes, bytes]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# Above this size a request is parsed off the loop: a delta reconnect with some 5,000 versions (resolutions part 7).
_LARGE_REQUEST_BYTES = 256 * 1024
# A status that the client does not read keeps the call open; the handler does not wait for it longer than this.
_ABORT_WAIT_S = 5.0
# Streams that must move reconnect over this time, not at once (resolutions U18).
_MOVE_SPREAD_S = 5.0
# The one violation that ends the stream: what it asks for is refused, and half a subscription would be a lie.
TOO_MANY_NAMES = "C11"
# The session says when to look again; never more often than this, whatever it says.
_SHORTEST_WAIT_S = 0.01


@dataclass(frozen=True, slots=True)
class Shared:
    """What all streams of a process share."""

    hub: Hub
    callers: Callers
    encoder: Encoder
    decoder: Decoder
    facts: Facts
    metrics: Metrics
    limits: Limits
    settings: EngineSettings
    admission: Admission
    counts: StreamCounts
    denied: DeniedNames
    parsers: Executor
    refusals: RefusalLog
    open: set["Stream"] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Begun:
    """What is fixed by the first request."""

    node: NodeFacts
    client: ClientFacts
    info: StreamInfo
    session: Session


class Stream:
    """One call. `service` is the type of a single-type service; None on an aggregated one."""

    def __init__(
        self, shared: Shared, context: Context, variant: Variant, service: ResourceType | None, caller: Caller
    ) -> None:
        self._shared = shared
        self._context = context
        self._variant = variant
        self._service = service
        self._caller = caller
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._end: End | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._look_again: asyncio.TimerHandle | None = None
        self._silent_until = math.inf
        self._too_old_at = math.inf
        self._release: Callable[[], object] = _nothing
        self._counted: tuple[str, str] | None = None
        self._unsupported: UnsupportedTypes | None = None
        self._begun: _Begun | None = None
        self._too_large: dict[ResourceType, int] = {}
        self._writer: asyncio.Task[object] | None = None
        self._writing_since = math.inf
        self._cut = False

    # What the server and the hub ask for

    async def run(self) -> None:
        """Serve until either side ends, then end the call with the reason. Raises only when the call was cancelled."""
        end = CLIENT_ENDED
        try:
            await self._shared.admission.enter()
        except RefusedStreamError as error:
            # Refused before any response, so that the client backs off (reliability F15).
            self._shared.metrics.refused.inc()
            await self._abort(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)))
            return
        self._open()
        reader = self._loop.create_task(self._read())
        try:
            end = await self._write()
        finally:
            reader.cancel()
            self._close(end)
        await self._abort(end)

    @property
    def client(self) -> ClientFacts:
        """What the choice of the environment rests on; only asked of streams that joined the hub."""
        return self._begun.client if self._begun is not None else ClientFacts(identity=self._caller.identity)

    @property
    def unanswered_since(self) -> float:
        """When the oldest response was sent that the client has not answered, by the loop's clock; inf for none."""
        return self._begun.session.unanswered_since() if self._begun is not None else math.inf

    def needed(self) -> Iterator[Content]:
        """Content that the client may have to be sent again although no snapshot has it any more."""
        return self._begun.session.needed() if self._begun is not None else iter(())

    def offer(self, publication: Publication) -> None:
        """Something newer is published: look whether this stream must be told."""
        if self._begun is not None:
            self._silent_until = math.inf
            if self._begun.session.offer(publication, self._loop.time()):
                self._wake.set()

    def move(self) -> None:
        """End soon: the client belongs to another environment now (resolutions U18)."""
        self._end_after(_jitter(_MOVE_SPREAD_S), MOVED)

    def end_if_due(self, now: float) -> None:
        """End if the client has taken nothing of a response for too long (reliability F17), or at the stream's age."""
        if now >= self._too_old_at:
            self._finish(TOO_OLD)
        if self._writer is not None and now - self._writing_since >= self._shared.limits.write_timeout_s:
            self._finish(TOO_SLOW)
            self._writing_since, self._cut = math.inf, True
            self._writer.cancel()

    def drain(self, after_s: float) -> None:
        """End after this time: the process stops."""
        self._end_after(after_s, DRAINING)

    # Life

    def _open(self) -> None:
        shared = self._shared
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
        age_s = shared.limits.connection_age_s * (1 + random.uniform(-spread, spread))  # noqa: S311
        self._too_old_at = self._loop.time() + age_s

    def _leave(self, _: object) -> None:
        self._shared.admission.leave()
        if self._counted is not None:
            self._shared.counts.leave(*self._counted)

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
        if info is not None:
            shared.hub.leave(info.environment, self)
            shared.facts.closed(info, end.cause)
        # How clients come and go is in their timelines in the console; thousands at once are no news for a log.
        if end is not CLIENT_ENDED:
            who = {"peer": self._context.peer()} if info is None else {"stream": info.id, "node_id": info.node_id}
            log.info("stream.closed", **who, code=end.code.name, cause=end.cause)

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

    async def _read(self) -> None:
        """Until the client closes or breaks a rule; a failure ends this stream and no other (reliability threat 8)."""
        try:
            await self._read_all()
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

    async def _read_all(self) -> None:
        limits = self._shared.limits
        bucket = TokenBucket(limits.requests_per_s, limits.request_burst, self._loop.time())
        while True:
            delay_s = bucket.take(self._loop.time())
            if delay_s > 0:
                # Not reading is what slows a flood down (reliability threat 10).
                await asyncio.sleep(delay_s)
            data = await self._context.read()
            if data is grpc.aio.EOF:  # type: ignore[attr-defined]  # grpc-stubs do not know it
                return
            if len(data) < _LARGE_REQUEST_BYTES:
                incoming = self._shared.decoder.decode(data, self._variant, self._service)
            else:
                incoming = await self._elsewhere(decode, data, self._variant, self._service, limits)
            begun = self._begun
            if begun is None:
                begun = self._begun = await self._begin(first_node(incoming.node))
            else:
                same_node(begun.node, incoming.node)
            request = incoming.request
            if isinstance(request, UnknownTypeRequest):
                self._receive_unknown(begun, request)
                continue
            make = begun.session.costly_view(request.kind)
            if make is not None:
                await self._elsewhere(make)
            self._receive(begun, request)

    def _elsewhere(self, work: Callable[..., _Result], *arguments: object) -> Awaitable[_Result]:
        """Whatever takes long and concerns no stream is done off the loop (reliability F25)."""
        return self._loop.run_in_executor(self._shared.parsers, work, *arguments)

    async def _begin(self, node: NodeFacts) -> _Begun:
        shared = self._shared
        waits_until = self._loop.time() + shared.limits.first_snapshot_wait_ms / 1000
        identity = self._caller.identity
        shared.counts.enter(identity, node.id)
        self._counted = (identity, node.id)
        # Without a directory nobody can say which environment this is: silence, then UNAVAILABLE (resolutions C4).
        if not await shared.hub.wait_loaded(shared.limits.first_snapshot_wait_ms / 1000):
            raise StreamEndError(NOTHING_LOADED)
        kind = kind_of(node.user_agent, node.user_agent_version)
        client = ClientFacts(identity, node.id, node.cluster, node.metadata, kind)
        environment = shared.hub.choose(client)
        if self._caller.environment not in {"", environment} or not shared.hub.takes(client, environment):
            raise StreamEndError(NOT_HERE)
        publication = shared.hub.publication(environment)
        info = StreamInfo(
            id=_stream_id(),
            environment=environment,
            identity=identity,
            node_id=node.id,
            node_cluster=node.cluster,
            user_agent=node.user_agent,
            user_agent_version=node.user_agent_version,
            variant=self._variant,
            peer=self._context.peer(),
        )
        session = Session(self._variant, client, shared.settings, publication)
        if publication is None:
            self._silent_until = waits_until
            self._wake.set()
        shared.hub.join(environment, self)
        shared.facts.opened(info)
        return _Begun(node, client, info, session)

    def _receive(self, begun: _Begun, request: Request) -> None:
        self._shared.metrics.requests[self._variant.value, request.kind.word].inc()
        for fact in begun.session.receive(request, self._loop.time()):
            self._learn(begun.info, fact)
        # Most requests are ACKs, after which there is nothing to say.
        if begun.session.dirty:
            self._wake.set()

    def _receive_unknown(self, begun: _Begun, request: UnknownTypeRequest) -> None:
        self._shared.metrics.requests[self._variant.value, UNKNOWN_TYPE].inc()
        if not begun.session.tells_errors:
            return
        if self._unsupported is None:
            self._unsupported = UnsupportedTypes(self._shared.limits)
        if self._variant is Variant.SOTW:
            self._unsupported.receive_sotw(request)
        else:
            self._unsupported.receive_delta(request)
        self._wake.set()

    def _learn(self, info: StreamInfo, fact: Fact) -> None:
        self._shared.facts.learnt(info, fact)
        metrics = self._shared.metrics
        match fact:
            case Acknowledged():
                metrics.acks[fact.kind.word].inc()
            case Rejected():
                metrics.nacks[fact.kind.word].inc()
                if fact.healing:
                    metrics.heals[fact.kind.word].inc()
                if not fact.resources:
                    # reliability T7: no content is to blame, so that nobody but us can have made the mistake.
                    metrics.nacks_without_content[fact.kind.word].inc()
                self._shared.refusals.refused(info, fact)
            case Violated():
                metrics.violations.inc()
                log.info("stream.violated", stream=info.id, node_id=info.node_id, rule=fact.rule)
                if fact.rule == TOO_MANY_NAMES:
                    raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, fact.detail))

    # Writing

    async def _write(self) -> End:
        """Write what there is to say until the stream ends; the reason it ended for."""
        self._writer = asyncio.current_task()
        try:
            while True:
                while self._end is None and (data := self._next()) is not None:
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

    def _next(self) -> bytes | None:
        if self._begun is None:
            return None
        if self._unsupported is not None and (answer := self._unsupported.take()) is not None:
            return self._shared.encoder.encode_errors(
                self._variant, answer.type_url, answer.nonce, answer.version, answer.errors
            )
        response = self._begun.session.compose(self._loop.time())
        self._tell_too_large(self._begun)
        if response is None:
            return None
        self._count(self._begun.info, response)
        # Before the write, so that the record of a response always precedes that of its ACK.
        self._shared.facts.sent(self._begun.info, response)
        return self._shared.encoder.encode(self._variant, response, wrapped=self._begun.node.takes_wrappers)

    def _tell_too_large(self, begun: _Begun) -> None:
        """Say of each state that cannot be sent that it is so, once for each size it has (F24)."""
        now = begun.session.too_large()
        if not now and not self._too_large:
            return
        for kind, size in now.items():
            if self._too_large.get(kind) != size:
                self._shared.metrics.too_large[kind.word].inc()
                limit = self._shared.limits.sotw_state_bytes
                log.warning("stream.state_too_large", stream=begun.info.id, type=kind.word, bytes=size, limit=limit)
        self._too_large = now

    def _count(self, info: StreamInfo, response: Respond) -> None:
        metrics = self._shared.metrics
        word = response.kind.word
        metrics.responses[self._variant.value, word].inc()
        if not response.errors:
            return
        codes = [error.code for error in response.errors]
        for code in set(codes):
            metrics.errors[word, code].inc(codes.count(code))
        if StatusCode.PERMISSION_DENIED not in codes:
            return
        refused = [(word, error.name) for error in response.errors if error.code is StatusCode.PERMISSION_DENIED]
        caller = caller_key(info.identity, info.peer)
        if self._shared.denied.refused(caller, refused, self._loop.time()):
            metrics.probing.inc()
            limit = self._shared.limits.denied_names_per_h
            who = {"identity": caller.identity, "address": caller.address, "node_id": info.node_id}
            log.warning("client.probing", **who, names_per_h=limit)

    async def _send(self, data: bytes) -> None:
        # The write is the back-pressure; `end_if_due` looks at it from time to time.
        self._writing_since = self._loop.time()
        await self._context.write(data)
        self._writing_since = math.inf
        self._shared.metrics.bytes_sent.inc(len(data))

    def _arm(self) -> None:
        """Wake again at the time at which there may be something to write, or to end for, although nothing arrives."""
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None
        due = self._silent_until
        if self._begun is not None:
            due = min(due, self._begun.session.wake_at())
        if due < math.inf:
            due = max(due, self._loop.time() + _SHORTEST_WAIT_S)
            self._look_again = self._loop.call_at(due, self._wake.set)


def behaviour(
    shared: Shared, variant: Variant, service: ResourceType | None
) -> Callable[[object, Context, Caller], Awaitable[None]]:
    """The handler of one streaming method."""

    async def serve(_: object, context: Context, caller: Caller) -> None:
        await Stream(shared, context, variant, service, caller).run()

    return serve


def _stream_id() -> str:
    """Unique among all replicas, and after those of a millisecond before, as UUIDv7 is (RFC 9562, section 5.7): what is
    written of newcomers then belongs into one place of an index, not beside a hundred thousand old ones.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


def _nothing() -> None:
    """Nothing to let go of yet."""


def _jitter(spread_s: float) -> float:
    return random.uniform(0.0, spread_s)  # noqa: S311 - spreads load; nothing secret depends on it
