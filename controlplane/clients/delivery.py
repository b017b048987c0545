"""What became of contents that were published: who was sent them, and what each client said. Values only, never rows.

For the status of a change (decisions U2). A client counts when it was sent something that the change wrote, by what is
stored of each name (truth.md H4); many clients share one such set, which is judged once. A name of which nothing was
sent, because something else is served of it or the client may not read it, counts for nothing. Where nobody says what a
client has, its answer to the type as a whole stands for it (`type_answers`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, IntEnum, auto
from itertools import chain, product
from typing import Final, NamedTuple

from django.db.models import Q, QuerySet

from controlplane.clients.facts import SubscriptionState
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import Subscription
from controlplane.clients.selectors import covering
from controlplane.clients.type_answers import answer_to_type
from xdscore.holdings import Holding, HoldingState

# decisions U2: a client that says nothing for so long is silent.
SILENT_AFTER = timedelta(seconds=30)
# Sending takes a moment, and a fact about it up to two seconds more: until then, who asks for the name is expected.
EXPECTED_FOR = timedelta(seconds=5)


class Reaction(IntEnum):
    """How far a client has come with a change. Where several streams or names of a client differ, its highest value
    counts.
    """

    LEFT = 0  # it was sent it, and left or was sent something later before it answered
    ACKED = 1
    SILENT = 2
    EXPECTED = 3  # it asks for the name and was not sent anything yet
    WAITING = 4  # it was sent it, and may still answer
    NACKED = 5


@dataclass(frozen=True, slots=True)
class Written:
    """What a change wrote of one name. `version`: of its content on the wire; empty: it deleted the name.

    `later`: the versions that were written of the name since. Who has one of them is past this one.
    """

    version: str
    later: frozenset[str] = frozenset()

    def is_in(self, version: str) -> bool:
        """Whether this version is what was written, or something later."""
        return version != "" and (version == self.version or version in self.later)


class _Had(Enum):
    """How far a client has come with one name, but for the time that it had for that."""

    REFUSED = auto()
    TAKEN = auto()
    OPEN = auto()  # sent and not answered; or refused together with others, and to be sent again apart from them
    PASSED = auto()  # it refused something later, and never answered this one
    GONE = auto()  # it is to have nothing of the name, as the change says
    BEHIND = auto()  # it asks for the name and has something earlier, or nothing
    BARRED = auto()  # it was told why it does not get the name


class _Kind(NamedTuple):
    """What streams have in common that stand alike: their type, whether it is a wildcard, and the id of their set."""

    type: str
    wildcard: bool
    held: str | None


class _There(NamedTuple):
    """Whose a stream is, and when it ended."""

    client: str
    closed_at: datetime | None

    def is_there(self, since: datetime) -> bool:
        return self.closed_at is None or self.closed_at > since


class _Row(NamedTuple):
    """What a stream was sent last of a type and made of it; `client`: whose it is."""

    client: str
    stream: str
    closed_at: datetime | None
    state: str
    sent_at: datetime | None


_Streams = Mapping[str, _There]
_WrittenByType = Mapping[str, Mapping[str, Written]]
_STANDS: Final = ("wildcard", "holding_set_id", "stream_id", "stream__client_id", "stream__closed_at")
_ROW: Final = ("stream__client_id", "stream_id", "stream__closed_at", "state", "sent_at")
_AT_ANY_TIME: Final = {
    _Had.REFUSED: Reaction.NACKED,
    _Had.TAKEN: Reaction.ACKED,
    _Had.PASSED: Reaction.LEFT,
    _Had.BARRED: None,
}
"""What needs no look at when."""
_ANSWERED: Final = {SubscriptionState.ACKED: Reaction.ACKED, SubscriptionState.NACKED: Reaction.NACKED}
_ALL: Final = 500  # of more streams than these, those of everybody are read


class FleetRead:
    """How the clients of an environment stand at `now`, the database's time: read once for whatever number of changes
    is asked about.
    """

    def __init__(self, environment_key: str, now: datetime) -> None:
        self._environment = environment_key
        self._now = now
        self._since: datetime | None = None
        self._standing: dict[str, Mapping[_Kind, _Streams]] = {}
        self._sets = StoredSets()

    def reactions(self, *, written: _WrittenByType, since: datetime) -> Mapping[str, Reaction]:
        """How far each client has come with the contents that were published at `since`, by client id. `written`: by
        the word of the type, then by name. Ask about older contents first: what left before is not read.
        """
        found: dict[str, set[Reaction]] = defaultdict(set)
        for client, reaction in chain(self._of_names(written, since), self._of_types(written, since)):
            if reaction is not None:
                found[client].add(reaction)
        return {client: max(each) for client, each in found.items()}

    def _of_names(self, written: _WrittenByType, since: datetime) -> Iterator[tuple[str, Reaction | None]]:
        """What each client made of each name, where it is known what it has."""
        timed: dict[str, dict[str, Collection[_Had]]] = defaultdict(dict)  # by type and stream
        for kind, streams in self._stand(written, since):
            had = _had(kind, written[kind.type], self._sets)
            still = {stream: each.client for stream, each in streams.items() if each.is_there(since)}
            if had <= _AT_ANY_TIME.keys():
                said = {_AT_ANY_TIME[one] for one in had}
                yield from product(still.values(), said)
            else:
                timed[kind.type].update(dict.fromkeys(still, had))
        for word, of_streams in timed.items():
            for row in _rows(self._there(since).filter(type=word), of_streams):
                for one in of_streams.get(row.stream, ()):
                    yield row.client, _reaction(one, row, since, self._now)

    def _of_types(self, written: _WrittenByType, since: datetime) -> Iterator[tuple[str, Reaction | None]]:
        """What each of the other clients answered to the type."""
        for word in {kind.type for kind, _ in self._stand(written, since) if kind.held is None}:
            unsaid = covering(_there(since).filter(holding_set=None), self._environment, word, written[word])
            for row in map(_Row._make, unsaid.values_list(*_ROW)):
                yield row.client, _reaction_to_type(row, since, self._now)

    def _stand(self, types: Collection[str], since: datetime) -> Iterator[tuple[_Kind, _Streams]]:
        """The streams of these types by what they have in common, without those that ended before `since`."""
        if self._since is None or since < self._since:
            self._since, self._standing = since, {}
        for word in types:
            if word not in self._standing:
                alike: dict[_Kind, dict[str, _There]] = defaultdict(dict)
                rows = self._there(self._since).filter(type=word)
                for wildcard, held, stream, client, closed_at in rows.values_list(*_STANDS):
                    alike[_Kind(word, wildcard, held)][stream] = _There(client, closed_at)
                self._standing[word] = alike
                self._sets.read({kind.held for kind in alike})
            yield from self._standing[word].items()

    def _there(self, since: datetime) -> QuerySet[Subscription]:
        return _there(since).filter(stream__client__environment__key=self._environment)


def _there(since: datetime) -> QuerySet[Subscription]:
    """The subscriptions of streams that were open at `since`, or later."""
    return Subscription.objects.filter(Q(stream__closed_at=None) | Q(stream__closed_at__gt=since))


def _rows(rows: QuerySet[Subscription], streams: Collection[str]) -> Iterator[_Row]:
    """What these streams were sent last, and maybe others, too."""
    some = rows.filter(stream__in=list(streams)) if len(streams) < _ALL else rows
    return map(_Row._make, some.values_list(*_ROW))


def _had(kind: _Kind, names: Mapping[str, Written], sets: StoredSets) -> frozenset[_Had]:
    """What such streams made of these names, as far as they say so."""
    if kind.held is None:
        return frozenset()
    each = (_had_of(sets.find(kind.held, name), written, wildcard=kind.wildcard) for name, written in names.items())
    return frozenset(had for had in each if had is not None)


def _had_of(holding: Holding | None, written: Written, *, wildcard: bool) -> _Had | None:
    """How far a client that has this has come with what was written of the name; None where it does not ask for the
    name.
    """
    if holding is None:
        if not wildcard:
            return None
        return _Had.BEHIND if written.version else _Had.GONE
    barred = holding.state in {HoldingState.ERROR_SENT, HoldingState.SILENT}
    refused = holding.state is HoldingState.NACKED
    if refused and holding.version == written.version:
        had = _Had.REFUSED
    elif written.is_in(holding.acked):
        had = _Had.TAKEN
    elif written.is_in(holding.version):
        had = _Had.PASSED if refused else _Had.OPEN
    elif barred:
        had = _Had.BARRED if written.version else _Had.GONE
    else:
        had = _Had.BEHIND
    return had


def is_behind(holding: Holding | None, written: Written) -> bool:
    """Whether a client that has this of a name, and asks for it, has yet to take what was written of it."""
    return _had_of(holding, written, wildcard=False) in {_Had.REFUSED, _Had.OPEN, _Had.PASSED, _Had.BEHIND}


def _reaction(had: _Had, row: _Row, since: datetime, now: datetime) -> Reaction | None:
    if had in _AT_ANY_TIME:
        return _AT_ANY_TIME[had]
    if had is _Had.BEHIND:
        # Before it has answered one response it may not be sent the next.
        held_up = row.sent_at is not None and row.sent_at >= since and row.state == SubscriptionState.SENT.value
        waited = held_up and _unanswered(row, now) is Reaction.WAITING
        return Reaction.EXPECTED if waited else _expected(row, since, now)
    if had is _Had.OPEN:
        return _unanswered(row, now)
    if row.sent_at is None or row.sent_at < since:
        return None
    # What it refused of the type was not that the name is gone.
    return _unanswered(row, now) if row.state == SubscriptionState.SENT.value else Reaction.ACKED


def _reaction_to_type(row: _Row, since: datetime, now: datetime) -> Reaction | None:
    answer = answer_to_type(row.state, row.sent_at, since=since)
    if answer is SubscriptionState.REQUESTED:
        return _expected(row, since, now)
    return _ANSWERED.get(answer) or _unanswered(row, now)


def _expected(row: _Row, since: datetime, now: datetime) -> Reaction | None:
    return Reaction.EXPECTED if row.closed_at is None and now - since < EXPECTED_FOR else None


def _unanswered(row: _Row, now: datetime) -> Reaction:
    if row.closed_at is not None or row.sent_at is None:
        return Reaction.LEFT
    return Reaction.SILENT if now - row.sent_at >= SILENT_AFTER else Reaction.WAITING
