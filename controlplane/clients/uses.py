"""Finds which clients acknowledged a resource and do not use it yet (truth.md H5). Values only, never rows.

The references of stored revisions say what a client needs, its subscriptions what it asks for, and what is stored of
each name since when it has the resource. Clients that have and ask for the same are judged once.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db.models import Q, QuerySet

from controlplane.catalog.links import Content, references_of
from controlplane.clients.asks import names_covered
from controlplane.clients.clock import database_now
from controlplane.clients.facts import unpack_names
from controlplane.clients.held_sets import STREAM_MARK_BYTES, stream_mark
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.in_use import ANSWER_WITHIN, USED, USERS, Key, NotInUse, Unused, not_asked_for
from controlplane.clients.models import Client, HoldingMove, NameSet, Subscription
from xdscore.client_kinds import ClientFamily
from xdscore.holdings import Holding, HoldingState

Taking = tuple[str, Content]
"""A client's id, and a content that it acknowledged."""
_BATCH: Final = 500
_TAKEN_WITHIN: Final = timedelta(seconds=5)  # of being published, most clients have acknowledged it
_NOTHING: Final = frozenset[Key]()
_ALL: Final = 200  # of so many clients and more, everybody's subscriptions are read


class Uses:
    """What contents need, and which of it clients ask for: read once for all the questions of one page."""

    def __init__(self, environment_key: str) -> None:
        self.environment_key = environment_key
        self.families: dict[str, str] = {}
        self._needed: dict[Content, frozenset[Key]] = {}
        self._asked: Mapping[str, frozenset[Key]] = {}
        self._wanted: frozenset[Key] | None = None

    def needed(self, contents: Collection[Content]) -> Mapping[Content, frozenset[Key]]:
        """What those of these contents need that need something."""
        unread = set(contents) - self._needed.keys()
        if unread:
            found = references_of(environment_key=self.environment_key, contents=unread, types=USED)
            self._needed.update({content: frozenset(found.get(content, ())) for content in unread})
        return {content: self._needed[content] for content in contents if self._needed[content]}

    def asked(self, wanted: Collection[Key], clients: Collection[str]) -> Mapping[str, frozenset[Key]]:
        """Which of the names `wanted`, and of others that were asked about before, these connected clients ask for, by
        client id.
        """
        if self._wanted is not None and self._wanted.issuperset(wanted):
            return self._asked
        rows = _rows(self.environment_key, {word for word, _ in wanted}, clients)
        self.families.update((row.client, row.family) for row in rows)
        return _asked(rows, wanted)

    def of_everybody(
        self, words: Collection[str], wanted: Collection[Key]
    ) -> tuple[Mapping[str, list["_Row"]], Mapping[str, frozenset[Key]]]:
        """The subscriptions of all connected clients to types with these words, and which of the names `wanted` each of
        them asks for, by client id.
        """
        rows = _rows(self.environment_key, {*words, *(word for word, _ in wanted)})
        standings: dict[str, list[_Row]] = defaultdict(list)
        for row in rows:
            self.families[row.client] = row.family
            if row.type in words:
                standings[row.client].append(row)
        self._asked, self._wanted = _asked(rows, wanted), frozenset(wanted)
        return standings, self._asked


def unfollowed(*, uses: Uses, taken: Collection[Taking]) -> Mapping[Taking, tuple[Key, ...]]:
    """What connected clients need for contents that they acknowledged at least `ANSWER_WITHIN` ago, `taken`, and do not
    ask for; without those that miss nothing. At most five queries for 200 clients.
    """
    using = [each for each in taken if each[1][0] in USERS]
    needed = uses.needed({content for _, content in using})
    clients = {client for client, content in using if content in needed}
    if not clients:
        return {}
    asked = uses.asked({key for needs in needed.values() for key in needs}, clients)
    families = dict(uses.families)
    if silent := clients - families.keys():  # they ask for nothing of these types
        families.update(Client.objects.filter(pk__in=silent).values_list("pk", "family"))
    found = (
        ((client, content), not_asked_for(needed[content], asked.get(client, ()), ClientFamily(families[client])))
        for client, content in using
        if content in needed and client in families
    )
    return {taking: missing for taking, missing in found if missing}


def not_in_use(*, uses: Uses, versions: Mapping[Key, str], since: datetime | None = None) -> NotInUse:
    """The connected clients that have each of these resources, given with its version by (type, name), since
    `ANSWER_WITHIN` ago at least and do not use it yet. `since`: when they were published, if that may be lately.
    """
    environment_key, needs = uses.environment_key, _needs(uses, versions)
    if not needs:
        return NotInUse()
    age = database_now() - since if since is not None else timedelta.max
    if age < ANSWER_WITHIN:
        return NotInUse(waits=True)
    standings, asked = uses.of_everybody({word for word, _ in needs}, {key for keys in needs.values() for key in keys})
    taken = _Taken({key: versions[key] for key in needs}, standings.values())
    alike: dict[_Alike, list[str]] = defaultdict(list)
    for client, each in standings.items():
        alike[each[0].family, asked.get(client, _NOTHING), taken.now(each)].append(client)
    lacking = {kind: lacks for kind in alike if (lacks := _lacks(kind, needs))}
    waits = age < ANSWER_WITHIN + _TAKEN_WITHIN
    if not lacking:
        return NotInUse(waits=waits)
    counting = _Counting()
    before = taken.before(environment_key)
    for kind, lacks in lacking.items():
        having: dict[frozenset[Key], list[str]] = defaultdict(list)
        for client in alike[kind]:
            having[before(standings[client], kind[2])].append(client)
        for had, clients in having.items():
            counting.add({key: lacks[key] for key in lacks.keys() & had}, clients)
    return counting.found(waits=waits)


def _needs(uses: Uses, versions: Mapping[Key, str]) -> Mapping[Key, frozenset[Key]]:
    """What those of these resources need that need something, by (type, name)."""
    contents = {(*key, version) for key, version in versions.items() if key[0] in USERS and version}
    return {(word, name): keys for (word, name, _), keys in uses.needed(contents).items()}


class _Counting:
    """Counts the clients that do not use resources, by resource."""

    def __init__(self) -> None:
        self._counts: dict[Key, int] = defaultdict(int)
        self._missing: dict[Key, set[Key]] = defaultdict(set)
        self._clients: set[str] = set()

    def add(self, lacks: Mapping[Key, tuple[Key, ...]], clients: Collection[str]) -> None:
        """Count these clients, which do not ask for this, given by the resource that needs it."""
        for key, missing in lacks.items():
            self._counts[key] += len(clients)
            self._missing[key].update(missing)
        if lacks:
            self._clients.update(clients)

    def found(self, *, waits: bool) -> NotInUse:
        """All that were counted."""
        ordered = sorted(self._counts, key=lambda key: (-self._counts[key], key))
        unused = (Unused(*key, self._counts[key], tuple(sorted(self._missing[key]))) for key in ordered)
        return NotInUse(frozenset(self._clients), tuple(unused), waits)


_Alike = tuple[str, frozenset[Key], frozenset[Key]]
"""The family of a client, what it asks for of the names that others need, and what it acknowledged."""


def _lacks(kind: _Alike, needs: Mapping[Key, frozenset[Key]]) -> Mapping[Key, tuple[Key, ...]]:
    """What such clients do not ask for, by the resource that needs it."""
    family, asked, had = kind
    found = ((key, not_asked_for(needs[key], asked, ClientFamily(family))) for key in had if not needs[key] <= asked)
    return {key: missing for key, missing in found if missing}


class _Row(NamedTuple):
    """A subscription of an open stream of a client of this family: the type's word, whether it is a wildcard, the id of
    the set of names that it asks for, and that of the set of what the stream has of the type.
    """

    client: str
    family: str
    stream: str
    type: str
    wildcard: bool
    name_set: str
    held: str | None


_COLUMNS: Final = (
    "stream__client_id",
    "stream__client__family",
    "stream_id",
    "type",
    "wildcard",
    "name_set_id",
    "holding_set_id",
)


def _rows(environment_key: str, words: Collection[str], clients: Collection[str] = ()) -> tuple[_Row, ...]:
    """What the connected clients with the ids `clients` (none: all) are subscribed to of these types."""
    rows = _subscriptions(environment_key, words)
    if clients and len(clients) < _ALL:
        rows = rows.filter(stream__client__in=clients)
    return tuple(map(_Row._make, rows.values_list(*_COLUMNS)))


def _subscriptions(environment_key: str, words: Collection[str]) -> QuerySet[Subscription]:
    """What the connected clients are subscribed to of these types."""
    return Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in=list(words)
    )


def _asked(rows: Collection[_Row], wanted: Collection[Key]) -> Mapping[str, frozenset[Key]]:
    """Which of the names `wanted` clients with these subscriptions ask for, by client id."""
    by_word: dict[str, set[str]] = defaultdict(set)
    for word, name in wanted:
        by_word[word].add(name)
    of_client: dict[str, list[tuple[str, bool, str]]] = defaultdict(list)
    for client, _, _, word, wildcard, name_set, _ in rows:
        if word in by_word:
            of_client[client].append((word, wildcard, name_set))
    alike: dict[tuple[tuple[str, bool, str], ...], list[str]] = defaultdict(list)
    for client, of_them in of_client.items():
        alike[tuple(of_them)].append(client)
    covers = _covers({_Subscribed(*one) for each in alike for one in each}, by_word)
    found: dict[str, frozenset[Key]] = {}
    for each, clients in alike.items():
        parts = [covers.get(_Subscribed(*one), _NOTHING) for one in each]
        found.update(dict.fromkeys(clients, parts[0] if len(parts) == 1 else _NOTHING.union(*parts)))
    return found


class _Subscribed(NamedTuple):
    """A subscription: the type's word, whether it is a wildcard, and the id of the set of names that it asks for."""

    type: str
    wildcard: bool
    name_set: str


def _covers(
    subscriptions: Collection[_Subscribed], wanted: Mapping[str, Collection[str]]
) -> Mapping[_Subscribed, frozenset[Key]]:
    """Which of the names `wanted`, by type, each of these subscriptions asks for."""
    of_set: dict[str, list[_Subscribed]] = defaultdict(list)
    for each in subscriptions:
        of_set[each.name_set].append(each)
    found: dict[_Subscribed, frozenset[Key]] = {}
    ids = sorted(of_set)
    for start in range(0, len(ids), _BATCH):
        for pk, packed in NameSet.objects.filter(pk__in=ids[start : start + _BATCH]).values_list("pk", "names"):
            names = unpack_names(bytes(packed))
            for each in of_set[pk]:
                covered = names_covered(names, wildcard=each.wildcard, wanted=wanted[each.type])
                found[each] = frozenset((each.type, name) for name in covered)
    return found


_Had = tuple[str, str | None]
"""The word of a type, and the id of a set of what a stream has of it; None where the stream does not say it."""


class _Taken:
    """Which of some resources, given with their versions, clients have acknowledged."""

    def __init__(self, versions: Mapping[Key, str], standings: Iterable[Collection[_Row]]) -> None:
        self._versions = versions
        self._sets = StoredSets({each.held for of_client in standings for each in of_client})
        self._of_set: dict[_Had, frozenset[Key]] = {}

    def now(self, standings: Sequence[_Row]) -> frozenset[Key]:
        """What the client with these streams has."""
        return self._of([(each.type, each.held) for each in standings])

    def before(self, environment_key: str) -> Callable[[Sequence[_Row], frozenset[Key]], frozenset[Key]]:
        """A function that returns, of the streams of a client and what it has now, what it had `ANSWER_WITHIN` ago as
        well.
        """
        before = database_now() - ANSWER_WITHIN
        words = {word for word, _ in self._versions}
        recent = _moved(environment_key, words, before)
        stood = _stood(environment_key, words, before) if recent else {}
        self._sets.read(set(stood.values()))

        def then(each: _Row) -> str | None:
            # Where it is not kept what a stream stood on, it is as if it had stood on nothing.
            moved = (each.stream, each.type) in recent
            return stood.get((each.type, stream_mark(each.stream))) if moved else each.held

        def had(standings: Sequence[_Row], now: frozenset[Key]) -> frozenset[Key]:
            if all((each.stream, each.type) not in recent for each in standings):
                return now
            return now & self._of([(each.type, then(each)) for each in standings])

        return had

    def _of(self, had: Sequence[_Had]) -> frozenset[Key]:
        """What a client has acknowledged whose streams have these sets, each given with its type."""
        if len(had) == 1:
            return self._in_set(had[0])
        by_word: dict[str, list[str | None]] = defaultdict(list)
        for word, held in had:
            by_word[word].append(held)
        return _NOTHING.union(*(self._of_type(word, held) for word, held in by_word.items()))

    def _of_type(self, word: str, had: Sequence[str | None]) -> frozenset[Key]:
        taken = [self._in_set((word, held)) for held in had]
        if len(taken) == 1:
            return taken[0]
        if None in had:
            return _NOTHING  # nobody says what a stream has whose set is None
        # Of several streams, each that asks for the name has to have it.
        return frozenset(
            key
            for key in _NOTHING.union(*taken)
            if all(key in each or self._sets.find(held, key[1]) is None for held, each in zip(had, taken, strict=True))
        )

    def _in_set(self, had: _Had) -> frozenset[Key]:
        """The resources that a client acknowledged whose stream has this set of this type."""
        known = self._of_set.get(had)
        if known is None:
            known = self._of_set[had] = self._read(*had)
        return known

    def _read(self, word: str, held: str | None) -> frozenset[Key]:
        if held is None:
            return _NOTHING
        keyframe, entries = self._sets.keyframe(held), self._sets.entries(held)
        named = {(word, name): holding for name, holding in entries.items() if (word, name) in self._versions}
        taken = {key for key, holding in named.items() if self._is_taken(key, holding)}
        base = self._in_set((word, keyframe)) if keyframe != held else _NOTHING
        return base.difference(named) | taken

    def _is_taken(self, key: Key, holding: Holding | None) -> bool:
        return holding is not None and holding.state is HoldingState.ACKED and holding.version == self._versions[key]


def _moved(environment_key: str, words: Collection[str], before: datetime) -> frozenset[tuple[str, str]]:
    """The open streams, with the type of each, of which it is not certain that they had then what they have."""
    rows = _subscriptions(environment_key, words).filter(Q(held_at=None) | Q(held_at__gt=before))
    return frozenset(rows.values_list("stream_id", "type"))


def _stood(environment_key: str, words: Collection[str], before: datetime) -> Mapping[tuple[str, bytes], str | None]:
    """The id of the set on which each stream stood at that time that stands on another since, by type and mark of the
    stream; None for none yet.
    """
    moves = HoldingMove.objects.filter(environment__key=environment_key, type__in=words, at__gt=before)
    found: dict[tuple[str, bytes], str | None] = {}
    for word, from_set, packed in moves.order_by("at", "pk").values_list("type", "from_set", "streams"):
        marks = bytes(packed)
        for start in range(0, len(marks), STREAM_MARK_BYTES):
            found.setdefault((word, marks[start : start + STREAM_MARK_BYTES]), from_set)
    return found
