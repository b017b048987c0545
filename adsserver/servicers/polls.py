"""The subscriptions of clients that poll, over REST (`rest`) or by the unary Fetch methods (`methods`).

A polled subscription is a stream in all but name: it is served from the hub, tells facts and holds names of its
caller's budget. What ends it is silence (protocol.md L5). Who asks is proved anew with each poll; what the poll means
is decided by `engine.poll`.
"""

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

import grpc
import structlog

from adsserver.engine.events import Acknowledged, Fact, SotwRequest, Variant, Violated
from adsserver.engine.holdings import Holdings
from adsserver.engine.poll import Answer, Poll
from adsserver.engine.publication import Publication
from adsserver.identity.identification import Caller, NodeError, first_node
from adsserver.limits.admission import SHORT_OF_MEMORY
from adsserver.limits.budgets import Budget, RefusedStreamError
from adsserver.servicers.begun import Begun
from adsserver.servicers.ends import (
    BEGAN_ANEW,
    BROKEN,
    DRAINING,
    MOVED,
    NOT_POLLED,
    NOTHING_LOADED,
    End,
    StreamEndError,
    lost,
)
from adsserver.servicers.reading import Reading
from adsserver.servicers.reports import Reports
from adsserver.servicers.shared import Shared
from adsserver.servicers.stream import TOO_MANY_NAMES
from adsserver.wire.discovery import Incoming, MalformedRequestError, NodeFacts, OversizedRequestError
from xdscore.callers import caller_key
from xdscore.environment_choice import ClientFacts
from xdscore.errors import ResourceError
from xdscore.holdings import Holding, HoldingState
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# Of who is gone, the pace is remembered: who polls every ten minutes is no new client each time.
_REMEMBERED: Final = 10_000
# L5: after three of its own pauses, and no sooner than a poll may be late, nor later than a person would wait.
_PAUSES: Final = 3
_SHORTEST_S: Final = 10.0
_LONGEST_S: Final = 3_600.0
# The engine gives the loop back in the midst of a long answer; longer than this none takes.
_COMPOSING_S: Final = 10.0

_Key = TypeVar("_Key")


class Key(NamedTuple):
    """What tells two subscriptions apart: who asks, from where, in the name of which node, and for what."""

    identity: str
    address: str
    node_id: str
    node_cluster: str
    word: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """One poll. `wait_s`: how long its client waits for something new."""

    caller: Caller
    peer: str
    incoming: Incoming
    budget: Budget
    wait_s: float = 0.0


@dataclass(eq=False, slots=True)
class Polled:
    """One subscription. `news` is set when there may be something to tell; `end` once it is over."""

    key: Key
    begun: Begun
    poll: Poll
    reports: Reports
    budget: Budget
    at: float
    pause_s: float
    loop: asyncio.AbstractEventLoop
    over: "Callable[[Polled, End], None]"
    release: Callable[[], object] = lambda: None
    end: End | None = None
    turn: int = 0
    waiting: int = 0
    name_bytes: int = 0
    unspoken: dict[str, ResourceError] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def client(self) -> ClientFacts:
        """The facts about the client by which its environment is chosen."""
        return self.begun.client

    def offer(self, publication: Publication) -> None:
        """Take note of a new publication: find out whether it may concern the client."""
        if self.poll.session.offer(publication, self.loop.time()):
            self.news.set()

    def move(self) -> None:
        """End, because the client belongs to another environment now: its next poll begins there."""
        self.over(self, MOVED)

    def heard(self, now: float) -> None:
        """Note a poll, and with it the pace of the client."""
        if self.at:
            # One long pause is forgotten after some polls.
            self.pause_s = max(now - self.at, self.pause_s / 2)
        self.at = now

    def due(self, silence_s: float) -> float:
        """When the subscription is over, if no poll comes before. `silence_s`: what a first poll allows."""
        if self.waiting:
            return math.inf
        pause_s = self.pause_s * _PAUSES if self.pause_s else silence_s
        return self.at + min(max(pause_s, _SHORTEST_S), _LONGEST_S)


@dataclass(frozen=True, slots=True)
class Given:
    """The answer to a poll, and the subscription that it is about."""

    answer: Answer
    polled: Polled

    def received(self) -> None:
        """Note that the client surely has this answer in full."""
        self.polled.poll.received(self.answer.nonce)

    def unspoken(self, errors: dict[str, ResourceError]) -> None:
        """Note what of the answer could not be put into words, so that the client's next word does not count for it."""
        self.polled.unspoken = errors


class Polls:
    """The polled subscriptions of a process. On the event loop."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        # More fits into an answer than into a response of a stream, which may be followed by another.
        limits = replace(
            shared.limits,
            delta_response_bytes=max(shared.limits.delta_response_bytes, shared.limits.sotw_state_bytes),
            errors_per_response=max(shared.limits.errors_per_response, shared.limits.names_per_type),
        )
        self._settings = replace(shared.settings, limits=limits)
        self._open: dict[Key, Polled] = {}
        self._of_node: Counter[tuple[str, str, str]] = Counter()
        self._of_identity: Counter[str] = Counter()
        self._waits: Counter[str] = Counter()
        self._left: OrderedDict[Key, tuple[float, float]] = OrderedDict()
        self._draining = False

    def __len__(self) -> int:
        return len(self._open)

    def needed(self) -> Iterator[Content]:
        """The contents that clients may have to be sent again, even when no snapshot has them any more."""
        for polled in tuple(self._open.values()):
            yield from polled.poll.session.needed()

    def look(self, now: float) -> None:
        """End what nobody polls any more. `now` is the event loop's time."""
        silence_s = self._shared.limits.poll_silence_s
        for polled in tuple(self._open.values()):
            if now >= polled.due(silence_s):
                self._end(polled, NOT_POLLED)

    def close(self) -> None:
        """Take no more polls, and end all subscriptions: the process stops."""
        self._draining = True
        for polled in tuple(self._open.values()):
            self._end(polled, DRAINING)

    async def answer(self, asked: Asked) -> Given:
        """The answer to a poll. Raises StreamEndError with what is wrong, in the words and with the status of a stream
        that ends.
        """
        try:
            given = await self._answer(asked)
        except StreamEndError:
            self._shared.metrics.polls["turned_away"].inc()
            raise
        except (NodeError, MalformedRequestError) as error:
            self._shared.metrics.polls["turned_away"].inc()
            raise StreamEndError(End(grpc.StatusCode.INVALID_ARGUMENT, str(error))) from error
        except (RefusedStreamError, OversizedRequestError) as error:
            self._shared.metrics.polls["turned_away"].inc()
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))) from error
        except Exception as error:
            log.exception("poll.failed", peer=asked.peer)
            raise StreamEndError(BROKEN) from error
        self._shared.metrics.polls["unchanged" if given.answer.unchanged else "whole"].inc()
        return given

    async def answer_bytes(self, data: bytes, kind: ResourceType, caller: Caller, peer: str, budget: Budget) -> Given:
        """The answer to a poll that comes as the bytes of a DiscoveryRequest, as `answer` gives it."""
        reading = Reading(self._shared, Variant.SOTW, kind)
        budget.received(len(data))
        try:
            if reading.is_large(data):
                incoming = await reading.apart(data, budget)
            else:
                with budget.of_request():
                    incoming = reading.read(data)
        except MalformedRequestError as error:
            raise StreamEndError(End(grpc.StatusCode.INVALID_ARGUMENT, str(error))) from error
        except OversizedRequestError as error:
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))) from error
        return await self.answer(Asked(caller, peer, incoming, budget))

    async def _answer(self, asked: Asked) -> Given:
        if self._draining:
            raise StreamEndError(DRAINING)
        node = first_node(asked.incoming.node)
        request = asked.incoming.request
        assert isinstance(request, SotwRequest)  # noqa: S101 - each path and method serves one type
        loop = asyncio.get_running_loop()
        patient_until = loop.time() + self._shared.limits.first_snapshot_wait_ms / 1000
        if not await self._shared.hub.wait_loaded(patient_until - loop.time()):
            raise StreamEndError(NOTHING_LOADED)
        polled = await self._taken_in(asked, node, request)
        identity, wait_s = asked.caller.identity, self._wait_s(asked)
        self._waits[identity] += wait_s > 0
        polled.waiting += 1
        try:
            return await self._told(polled, asked, request, loop.time() + wait_s, patient_until)
        finally:
            polled.waiting -= 1
            polled.at = loop.time()
            _uncount(self._waits, identity, wait_s > 0)

    def _wait_s(self, asked: Asked) -> float:
        """How long a poll may wait. Each that does keeps a connection: beyond its identity's part none does."""
        limits, identity = self._shared.limits, asked.caller.identity
        if identity and self._waits[identity] >= limits.poll_waits_per_identity:
            return 0.0
        return min(asked.wait_s, limits.poll_wait_s)

    async def _taken_in(self, asked: Asked, node: NodeFacts, request: SotwRequest) -> Polled:
        """Take the poll in and say what it means; the subscription that it is of, which may begin with it."""
        shared, loop = self._shared, asyncio.get_running_loop()
        address = caller_key("", asked.peer).address
        key = Key(asked.caller.identity, address, node.id, node.cluster, request.kind.word, frozenset(request.names))
        await asked.budget.turn()
        while True:
            polled = self._open.get(key) or self._begin(key, asked, node, request.kind)
            async with polled.lock:
                if polled.end is not None:
                    continue
                if not polled.poll.follows(request):
                    self._end(polled, BEGAN_ANEW)
                    continue
                polled.heard(loop.time())
                polled.turn += 1
                # Who waits in its name is answered: one at a time waits.
                polled.news.set()
                if (make := polled.poll.session.costly_view(request.kind)) is not None:
                    await loop.run_in_executor(shared.parsers, make)
                with asked.budget.of_request():
                    shared.metrics.requests[Variant.SOTW.value, request.kind.word].inc()
                    self._learn(polled, polled.poll.ask(request, loop.time()))
                    self._count_names(polled)
                return polled

    async def _told(
        self, polled: Polled, asked: Asked, request: SotwRequest, wait_until: float, patient_until: float
    ) -> Given:
        """Wait until there is something to tell, as long as the client waits, or for a first snapshot."""
        loop, hub, mine = asyncio.get_running_loop(), self._shared.hub, polled.turn
        while True:
            polled.news.clear()
            blank = hub.publication(polled.begun.info.environment) is None
            async with polled.lock:
                if polled.end is not None:
                    raise StreamEndError(polled.end)
                overtaken = polled.turn != mine
                if not overtaken:
                    await self._compose(polled, asked.budget, request)
                answer = polled.poll.answer()
            now = loop.time()
            until = patient_until if blank else wait_until
            if blank and now >= until:
                raise StreamEndError(NOTHING_LOADED)
            if not blank and (overtaken or not answer.unchanged or now >= until):
                self._check_size(polled, answer)
                return Given(answer, polled)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(until, polled.poll.session.wake_at()) - now)):
                    await polled.news.wait()

    async def _compose(self, polled: Polled, budget: Budget, request: SotwRequest) -> None:
        """Have the engine say all that there is to say now."""
        shared, poll, info, loop = self._shared, polled.poll, polled.begun.info, asyncio.get_running_loop()
        until = loop.time() + _COMPOSING_S
        while True:
            with budget:
                now = loop.time()
                response = poll.compose(now)
                polled.reports.too_large(info, poll.session.too_large())
                if response is not None:
                    polled.reports.sent(info, response, now)
                    shared.facts.sent(info, response)
            if response is None and (poll.repeats or poll.session.wake_at() > now or now >= until):
                break
            await asyncio.sleep(0)
        self._learn(polled, poll.conclude(request, loop.time()))
        for kind, holdings in poll.session.unheard():
            shared.facts.holds(info, kind, self._spoken(polled, holdings))

    def _check_size(self, polled: Polled, answer: Answer) -> None:
        """Raise StreamEndError where there is a state that no client could read, and the client has none."""
        size = polled.poll.session.too_large().get(polled.poll.kind)
        if size is not None and not answer.nonce and not answer.unchanged:
            limit = self._shared.limits.sotw_state_bytes
            text = f"The state of this type has {size} bytes; at most {limit} can be sent (sotw_state_bytes)."
            raise StreamEndError(End(grpc.StatusCode.UNAVAILABLE, text))

    # What it tells

    def _learn(self, polled: Polled, facts: tuple[Fact, ...]) -> None:
        shared, info = self._shared, polled.begun.info
        if not facts:
            return
        found = polled.poll.session.holdings(polled.poll.kind)
        holdings = None if found is None else self._spoken(polled, found)
        for fact in facts:
            if isinstance(fact, Acknowledged) and polled.unspoken:
                # An answer that lacked it proves nothing of it.
                said = tuple(member for member in fact.resources if member.name not in polled.unspoken)
                fact = replace(fact, resources=said)  # noqa: PLW2901
            shared.facts.learnt(info, fact, holdings)
            polled.reports.learnt(info, fact)
            if isinstance(fact, Violated) and fact.rule == TOO_MANY_NAMES:
                end = End(grpc.StatusCode.RESOURCE_EXHAUSTED, fact.detail)
                self._end(polled, end)
                raise StreamEndError(end)
        polled.begun.said(shared.facts, facts)

    @staticmethod
    def _spoken(polled: Polled, holdings: Holdings) -> Holdings:
        """The holdings, in which what could not be put into words is shown as an error that was told."""
        if not polled.unspoken:
            return holdings
        lacking = {
            name: Holding(HoldingState.ERROR_SENT, "", "", error.xds_code, error.text)
            for name, error in polled.unspoken.items()
        }
        return Holdings(holdings.ground, {**holdings.apart, **lacking})

    def _count_names(self, polled: Polled) -> None:
        held = polled.begun.node.kept_bytes + polled.poll.session.name_bytes
        change, polled.name_bytes = held - polled.name_bytes, held
        try:
            polled.budget.hold_names(change)
        except RefusedStreamError as error:
            self._end(polled, End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)))
            raise

    # Life

    def _begin(self, key: Key, asked: Asked, node: NodeFacts, kind: ResourceType) -> Polled:
        shared, loop = self._shared, asyncio.get_running_loop()
        limits = shared.limits
        of_node = (key.identity or key.address, key.node_id, key.node_cluster)
        if len(self._open) >= limits.polled_subscriptions:
            raise RefusedStreamError(
                f"This server remembers {limits.polled_subscriptions} polled subscriptions, as many as it may; "
                "try another one, or later (polled_subscriptions)."
            )
        # One identity that makes up nodes takes no more than a part of the places; without one a balancer in front may
        # give a whole fleet one address.
        if key.identity and self._of_identity[key.identity] >= limits.polled_per_identity:
            raise RefusedStreamError(
                f"This identity polls {limits.polled_per_identity} subscriptions, as many as it may "
                "(polled_per_identity)."
            )
        if self._of_node[of_node] >= limits.polled_per_node:
            raise RefusedStreamError(
                f"This node polls {limits.polled_per_node} subscriptions, as many as it may (polled_per_node)."
            )
        if shared.budgets.short_of_memory():
            raise RefusedStreamError(SHORT_OF_MEMORY)
        begun = Begun.of(shared, asked.caller, node, Variant.SOTW, asked.peer, settings=self._settings, polls=True)
        reports = Reports(Variant.SOTW, shared.metrics, limits, shared.denied, shared.refusals, shared.error_counts)
        at, pause_s = self._left.pop(key, (0.0, 0.0))
        poll = Poll(kind, begun.client, begun.session)
        polled = Polled(key, begun, poll, reports, asked.budget, at, pause_s, loop, self._end)
        polled.release = shared.callers.hold(asked.caller, lambda reason: self._end(polled, lost(reason)))
        self._open[key] = polled
        self._of_node[of_node] += 1
        self._of_identity[key.identity] += 1
        shared.metrics.polled.inc()
        shared.hub.join(begun.info.environment, polled)
        shared.facts.opened(begun.info)
        return polled

    def _end(self, polled: Polled, end: End) -> None:
        if polled.end is not None:
            return
        shared, key, info = self._shared, polled.key, polled.begun.info
        polled.end = end
        polled.news.set()
        polled.release()
        del self._open[key]
        of_node = (key.identity or key.address, key.node_id, key.node_cluster)
        _uncount(self._of_node, of_node)
        _uncount(self._of_identity, key.identity)
        self._left[key] = polled.at, polled.pause_s
        if len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)
        polled.budget.hold_names(-polled.name_bytes)
        shared.metrics.polled.dec()
        shared.hub.leave(info.environment, polled)
        shared.facts.closed(info, end.cause)
        polled.begun.left(shared.facts)


def _uncount(counts: Counter[_Key], key: _Key, count: int = 1) -> None:
    """Count less of a key, and forget it once there is nothing of it."""
    counts[key] -= count
    if not counts[key]:
        del counts[key]
