"""What was learnt and is not yet written, and how it becomes batches.

Used by the fact thread alone, but for the values it is handed.

Everything here is bounded, so that a database that is away costs memory for open streams and no more: states are kept
one per (stream, type); of streams that came and went meanwhile, of probes and of NACKs those of whoever has most give
way, the oldest first.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from adsserver.engine.events import NamedContent
from adsserver.store.held_moves import NOWHERE, HeldMoves, Reported, Standing
from adsserver.store.held_sets import HeldSets
from adsserver.store.opened import Opened
from adsserver.store.reading_time import ReadingTime
from adsserver.store.recent import Recent
from adsserver.store.sent_secrets import Hearing, SentContents
from adsserver.store.tallies import TallyKey, WaitingTallies
from adsserver.store.waiting_nacks import KeptNack, RawNack, WaitingNacks
from controlplane.catalog.values import ProvenContent
from controlplane.clients.facts import (
    NO_NAMES,
    POLLS,
    ClientFact,
    FactBatch,
    Interned,
    NackFact,
    ProbeFact,
    ReplicaFact,
    StreamEnd,
    StreamFact,
    SubscriptionFact,
    SubscriptionSays,
    SubscriptionState,
    intern_contents,
    intern_names,
)
from controlplane.clients.foreign_text import one_line
from xdscore.client_kinds import family_of
from xdscore.resource_types import RESOURCE_TYPES
from xdscore.shares import beyond

# decisions part 7, "Facts".
# Streams that opened and ended while nothing could be written.
MAX_GONE = 10_000
# Two contents for each name of the largest environment.
MAX_PROVEN = 200_000
MAX_PROBES = 1_000

_MAX_NAME_SETS = 256
_MAX_CONTENT_LISTS = 64

_PEER_CHARS = 255
_CAUSE_CHARS = 300


class Substream(NamedTuple):
    """One type of one stream, as it was when facts were collected. `sent` and `acked` are versions; times are of a
    clock that only goes forward, None: never.

    `reported`: what the client has; None: the stream did not say.
    """

    wildcard: bool
    names: frozenset[str]
    state: SubscriptionState
    sent: str
    sent_at: float | None
    acked: str
    acked_at: float | None
    reported: Reported | None


class Ended(NamedTuple):
    """The fact that a stream ended at the time `at`, of a clock that only goes forward."""

    cause: str
    at: float


class Acknowledgement(NamedTuple):
    """The fact that some client acknowledged a response with these resources, of the type with this `word`."""

    environment: str
    word: str
    resources: tuple[NamedContent, ...]


@dataclass(slots=True)
class Learnt:
    """The facts that the event loop collected since the thread that writes facts last took them."""

    nacks: WaitingNacks[RawNack]
    opened: dict[str, Opened] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)
    substreams: dict[tuple[str, str], Substream] = field(default_factory=dict)
    acknowledged: list[Acknowledgement] = field(default_factory=list)
    probed: list[tuple[Opened, str, NamedContent]] = field(default_factory=list)
    tallies: Counter[TallyKey] = field(default_factory=Counter)


class Pending:
    """The facts that wait to be written to the database: of each stream and type the newest state.

    max_nack_bytes: the stored length of a NACK's text.
    max_nacks: how many NACKs may wait.
    key: a secret of the installation.
    contents: what streams were sent; the secrets in it must not stay in the texts of NACKs.
    clock: returns seconds on a clock that only goes forward.
    """

    def __init__(
        self, *, max_nack_bytes: int, max_nacks: int, key: str, contents: SentContents, clock: Callable[[], float]
    ) -> None:
        self._max_nack_bytes = max_nack_bytes
        self._held = contents
        self._clock = clock
        self._reading = ReadingTime(clock)
        self._opened: dict[str, Opened] = {}
        self._ended: dict[str, Ended] = {}
        self._substreams: dict[tuple[str, str], Substream] = {}
        self._nacks: WaitingNacks[KeptNack] = WaitingNacks(max_nacks)
        self._proven: dict[ProvenContent, None] = {}
        self._probes: dict[ProbeFact, Opened] = {}
        self._tallies = WaitingTallies()
        self._reported: Recent[tuple[str, str, str], str] = Recent(MAX_PROVEN)
        # The resources of the last acknowledgement of a type; held, so that their ids stay their own.
        self._acknowledged: Recent[tuple[str, str], tuple[NamedContent, ...]] = Recent(_MAX_CONTENT_LISTS)
        self._name_sets: Recent[frozenset[str], Interned] = Recent(_MAX_NAME_SETS)
        self._content_lists: Recent[int, tuple[tuple[NamedContent, ...], Interned]] = Recent(_MAX_CONTENT_LISTS)
        self._held_moves = HeldMoves(HeldSets(key))
        self.nacks_dropped = 0
        self.streams_dropped = 0

    def __bool__(self) -> bool:
        """Whether any facts wait."""
        waiting = (self._opened, self._ended, self._substreams, self._nacks, self._proven, self._probes, self._tallies)
        return any(waiting)

    def add(self, learnt: Learnt) -> None:
        """Add facts to those that wait. The caller adds in the order of time: a newer fact replaces an older one."""
        self._opened.update(learnt.opened)
        self._ended.update(learnt.ended)
        self._substreams.update(learnt.substreams)
        hearing = Hearing(self._held, max_bytes=self._max_nack_bytes, time=self._reading)
        for raw in learnt.nacks:
            # Now, while what was sent is at hand: a database that is away may be so for longer.
            text = hearing.kept(raw.opened.accountable, raw.message, raw.kind, raw.resources)
            self.nacks_dropped += self._nacks.add(KeptNack(replace(raw, message=""), text))
        for acknowledgement in learnt.acknowledged:
            self._add_proven(acknowledgement)
        for opened, word, member in learnt.probed:
            self._probes[ProbeFact(opened.client, word, member.name, member.content.version)] = opened
        self._tallies.add(learnt.tallies, self._clock())
        self._bound()

    def batch(self, replica: ReplicaFact, now: float, room: int) -> FactBatch:
        """The next batch to write, of at most `room` keys. Streams come first, because everything else refers to them.
        `now` is the clock's time in seconds.
        """
        opened = list(islice(self._opened.values(), room))
        room -= len(opened)
        substreams = list(islice(self._substreams.items(), room))
        room -= len(substreams)
        ended = list(islice(self._ended.items(), room))
        room -= len(ended)
        nacks = list(islice(self._nacks, room))
        room -= len(nacks)
        proven = tuple(islice(self._proven, room))
        room -= len(proven)
        probes = tuple(islice(self._probes, room))
        room -= len(probes)
        name_sets = {names: self._names(names) for names in {substream.names for _, substream in substreams}}
        refused = [
            tuple(self._contents(contents) for contents in (raw.resources, raw.suspects, raw.kept))
            for raw in (nack.raw for nack in nacks)
        ]
        held = self._held_moves.batch(((key, each.reported) for key, each in substreams if each.reported), now)
        named = (*opened, *(nack.opened for nack in nacks), *(self._probes[probe] for probe in probes))
        clients = {each.client: _client(each, now) for each in named}
        return FactBatch(
            replica=replica,
            clients=tuple(clients.values()),
            streams=tuple(_stream(each, now) for each in opened),
            ends=tuple(
                StreamEnd(stream, one_line(end.cause, max_chars=_CAUSE_CHARS), now - end.at) for stream, end in ended
            ),
            name_sets=_once(name_sets.values()),
            held_sets=held.sets,
            subscriptions=tuple(_subscriptions(substreams, name_sets, held.stands, now)),
            moves=held.moves,
            content_lists=_once(each for lists in refused for each in lists),
            nacks=tuple(_nack(nack, lists, now) for nack, lists in zip(nacks, refused, strict=True)),
            proven=proven,
            probes=probes,
            tallies=tuple(self._tallies.first(room, now)),
        )

    def forget(self, batch: FactBatch) -> None:
        """Drop the facts in the batch made last, because it is written."""
        for stream in batch.streams:
            del self._opened[stream.id]
        for subscription in batch.subscriptions:
            del self._substreams[(subscription.stream, subscription.says.word)]
        self._held_moves.written()
        for end in batch.ends:
            del self._ended[end.id]
            self._held_moves.ended(end.id)
        self._nacks.forget(len(batch.nacks))
        for content in batch.proven:
            del self._proven[content]
        for probe in batch.probes:
            del self._probes[probe]
        self._tallies.forget(len(batch.tallies))

    def _add_proven(self, acknowledgement: Acknowledgement) -> None:
        """Add that these contents were acknowledged (proven), except those that were reported last for their name.

        When a name returns to earlier content, that is reported again.
        """
        environment, word, resources = acknowledgement
        # Of a state most was in the one before, and is the same object there: a look at each costs ten times as much.
        before = frozenset(map(id, self._acknowledged.get((environment, word)) or ()))
        self._acknowledged.put((environment, word), resources)
        for member in resources:
            if id(member) in before:
                continue
            key, version = (environment, word, member.name), member.content.version
            if self._reported.get(key) != version:
                self._reported.put(key, version)
                self._proven[ProvenContent(environment, word, member.name, version)] = None

    def _bound(self) -> None:
        for content in list(islice(self._proven, max(len(self._proven) - MAX_PROVEN, 0))):
            del self._proven[content]
        if len(self._probes) > MAX_PROBES:
            probes = [(probe, opened.accountable) for probe, opened in self._probes.items()]
            for probe in beyond(probes, MAX_PROBES):
                del self._probes[probe]
        if len(self._ended) <= MAX_GONE:
            return
        # Only what the database never heard of: the end of a stream that it knows must reach it.
        unheard = [(stream, self._opened[stream].accountable) for stream in self._ended if stream in self._opened]
        for stream in beyond(unheard, MAX_GONE - (len(self._ended) - len(unheard))):
            del self._ended[stream], self._opened[stream]
            for kind in RESOURCE_TYPES:
                self._substreams.pop((stream, kind.word), None)
            self.streams_dropped += 1

    def _names(self, names: frozenset[str]) -> Interned:
        if not names:
            return NO_NAMES
        return self._name_sets.get(names) or self._name_sets.put(names, intern_names(names))

    def _contents(self, resources: tuple[NamedContent, ...]) -> Interned:
        # By identity, because streams share these tuples; the entry keeps the tuple, so that its id stays its own.
        known = self._content_lists.get(id(resources))
        if known is None:
            interned = intern_contents((member.name, member.content.version) for member in resources)
            known = self._content_lists.put(id(resources), (resources, interned))
        return known[1]


def _once(interned: Iterable[Interned]) -> tuple[Interned, ...]:
    return tuple({each.id: each for each in interned}.values())


def _client(opened: Opened, now: float) -> ClientFact:
    stream = opened.stream
    # As long as the columns are (controlplane.clients.models).
    user_agent = one_line(stream.user_agent, max_chars=200)
    return ClientFact(
        id=opened.client,
        environment=stream.environment,
        identity=one_line(stream.identity, max_chars=2_048),
        node_id=one_line(stream.node_id, max_chars=1_024),
        accountable=opened.accountable,
        node_cluster=one_line(stream.node_cluster, max_chars=255),
        family=family_of(user_agent),
        user_agent=user_agent,
        user_agent_version=one_line(stream.user_agent_version, max_chars=100),
        age_s=now - opened.at,
    )


def _nack(nack: KeptNack, lists: Sequence[Interned], now: float) -> NackFact:
    """The fact of a NACK, for the database. `lists`: the resources of the response, the suspects among them, and what
    the client had of the suspects.
    """
    raw = nack.raw
    resources, suspects, kept = (each.id for each in lists)
    return NackFact(
        client=raw.opened.client,
        accountable=raw.opened.accountable,
        stream=raw.opened.stream.id,
        word=raw.kind.word,
        version=raw.version,
        code=raw.code,
        text=nack.text,
        resources=resources,
        suspects=suspects,
        kept=kept,
        repeats=raw.repeats,
        age_s=now - raw.at,
        evidence=raw.evidence,
        healing=raw.healing,
    )


def _stream(opened: Opened, now: float) -> StreamFact:
    stream = opened.stream
    return StreamFact(
        stream.id,
        opened.client,
        POLLS if stream.polls else stream.variant.value,
        one_line(stream.peer, max_chars=_PEER_CHARS),
        now - opened.at,
    )


def _subscriptions(
    substreams: Iterable[tuple[tuple[str, str], Substream]],
    name_sets: Mapping[frozenset[str], Interned],
    stands: Mapping[tuple[str, str], Standing],
    now: float,
) -> Iterator[SubscriptionFact]:
    # In a fleet that takes a change one of these is that of thousands, which share it.
    known: dict[tuple[str, bool, frozenset[str], SubscriptionState, str, str, str], SubscriptionSays] = {}
    for each_key, (wildcard, names, state, sent, sent_at, acked, acked_at, _) in substreams:
        stream, word = each_key
        held, since = stands.get(each_key, NOWHERE)
        key = (word, wildcard, names, state, sent, acked, held)
        says = known.get(key)
        if says is None:
            says = known[key] = SubscriptionSays(word, name_sets[names].id, wildcard, state, sent, acked, held or None)
        sent_age_s = None if sent_at is None else now - sent_at
        acked_age_s = None if acked_at is None else now - acked_at
        yield SubscriptionFact(stream, says, sent_age_s, acked_age_s, now - since if held else None)
