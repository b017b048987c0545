"""Finds which clients acknowledged a resource and do not use it yet (truth.md H5). Values only, never rows.

The references of stored revisions say what a client needs, its subscriptions what it asks for, and what is stored of
each name since when it has the resource. Clients that have and ask for the same are judged once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from django.db.models import QuerySet

from controlplane.catalog.links import Content, references_of
from controlplane.clients.asks import names_covered
from controlplane.clients.clock import database_now
from controlplane.clients.facts import unpack_names
from controlplane.clients.held_sets import STREAM_MARK_BYTES, stream_mark
from controlplane.clients.holding_history import Standing
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.in_use import ANSWER_WITHIN, USED, USERS, Key, NotInUse, Unused, not_asked_for
from controlplane.clients.models import HoldingMove, NameSet, Stream, Subscription
from xdscore.client_kinds import ClientFamily
from xdscore.holdings import Holding, HoldingState

Taking = tuple[str, Content]
"""A client's id, and a content that it acknowledged."""
_T = TypeVar("_T")
_BATCH: Final = 500
_TAKEN_WITHIN: Final = timedelta(seconds=5)  # of being published, most clients have acknowledged it
_ALL: Final = 200  # of so many clients and more, everybody's subscriptions are read
_STANDING: Final = (
    "stream_id",
    "stream__client_id",
    "stream__client__environment_id",
    "type",
    "holding_set_id",
    "held_at",
    "stream__opened_at",
)


def unfollowed(*, environment_key: str, taken: Collection[Taking]) -> Mapping[Taking, tuple[Key, ...]]:
    """What connected clients need for contents that they acknowledged at least `ANSWER_WITHIN` ago, `taken`, and do not
    ask for; without those that miss nothing. At most five queries for 200 clients.
    """
    using = [each for each in taken if each[1][0] in USERS]
    needed = references_of(environment_key=environment_key, contents={content for _, content in using}, types=USED)
    using = [each for each in using if each[1] in needed]
    if not using:
        return {}
    wanted = {key for needs in needed.values() for key in needs}
    asking = _Asking(environment_key, wanted, {client for client, _ in using})
    lacking = {follow: asking.lacking(follow, needed) for follow in asking.follows}
    found = ((each, lacking.get(asking.of(each[0]), {}).get(each[1])) for each in using)
    return {taking: missing for taking, missing in found if missing}


def not_in_use(*, environment_key: str, versions: Mapping[Key, str], since: datetime | None = None) -> NotInUse:
    """The connected clients that have each of these resources, given with its version by (type, name), since
    `ANSWER_WITHIN` ago at least and do not use it yet. `since`: when they were published, if that may be lately.
    """
    contents = {(*key, version) for key, version in versions.items() if key[0] in USERS and version}
    needed = references_of(environment_key=environment_key, contents=contents, types=USED)
    if not needed:
        return NotInUse()
    age = database_now() - since if since is not None else timedelta.max
    if age < ANSWER_WITHIN:
        return NotInUse(waits=True)
    needs = {(word, name): keys for (word, name, _), keys in needed.items()}
    asking = _Asking(environment_key, {key for keys in needs.values() for key in keys})
    lacking = {follow: asking.lacking(follow, needs) for follow in asking.follows}
    standings = {
        client: each
        for client, each in _standings(environment_key, {word for word, _ in needs}).items()
        if lacking.get(asking.of(client))
    }
    taken = _Taken(environment_key, {key: versions[key] for key in needs}, standings.values())
    counts: dict[Key, int] = defaultdict(int)
    missing: dict[Key, set[Key]] = defaultdict(set)
    clients: set[str] = set()
    for client, each in standings.items():
        lacks = lacking[asking.of(client)]
        for key in taken.by(each) & lacks.keys():
            counts[key] += 1
            missing[key].update(lacks[key])
            clients.add(client)
    ordered = sorted(counts, key=lambda key: (-counts[key], key))
    return NotInUse(
        frozenset(clients),
        tuple(Unused(*key, counts[key], tuple(sorted(missing[key]))) for key in ordered),
        waits=age < ANSWER_WITHIN + _TAKEN_WITHIN,
    )


class _Follow(NamedTuple):
    """What a client asks for of the types of the names in question: of each subscription the type's word, whether it
    is a wildcard, and the id of the set of names. Clients with an equal one ask for the same.
    """

    family: str = ClientFamily.OTHER.value
    subscriptions: tuple[tuple[str, bool, str], ...] = ()


class _Asking:
    """Which of the names `wanted` connected clients ask for: those with the ids `clients`, or all."""

    def __init__(self, environment_key: str, wanted: Collection[Key], clients: Collection[str] = ()) -> None:
        by_word: dict[str, set[str]] = defaultdict(set)
        for word, name in wanted:
            by_word[word].add(name)
        streams = Stream.objects.filter(closed_at=None, client__environment__key=environment_key)
        rows = Subscription.objects.filter(
            stream__closed_at=None, stream__client__environment__key=environment_key, type__in=by_word
        )
        if clients and len(clients) < _ALL:
            streams, rows = streams.filter(client__in=clients), rows.filter(stream__client__in=clients)
        asked: dict[str, set[tuple[str, bool, str]]] = defaultdict(set)
        for client, word, wildcard, names in rows.values_list("stream__client_id", "type", "wildcard", "name_set_id"):
            asked[client].add((word, wildcard, names))
        self._follows = {
            client: _Follow(family, tuple(sorted(asked.get(client, ()))))
            for client, family in streams.values_list("client_id", "client__family")
        }
        self._covers = _covers({each for of_client in asked.values() for each in of_client}, by_word)

    def of(self, client: str) -> _Follow:
        """What the client asks for."""
        return self._follows.get(client, _Follow())

    @property
    def follows(self) -> AbstractSet[_Follow]:
        """All that connected clients ask for: what `of` returns for each, once."""
        return set(self._follows.values())

    def lacking(self, follow: _Follow, needs: Mapping[_T, Iterable[Key]]) -> Mapping[_T, tuple[Key, ...]]:
        """What clients that ask for this, and acknowledged resources with these needs, are expected to ask for and do
        not, by resource; without those of which nothing is missing.
        """
        covered = frozenset[Key]().union(*(self._covers.get(each, frozenset()) for each in follow.subscriptions))
        family = ClientFamily(follow.family)
        found = {each: not_asked_for(keys, covered, family) for each, keys in needs.items()}
        return {each: missing for each, missing in found.items() if missing}


def _covers(
    subscriptions: Collection[tuple[str, bool, str]], wanted: Mapping[str, Collection[str]]
) -> Mapping[tuple[str, bool, str], frozenset[Key]]:
    """Which of the names `wanted`, by type, each of these subscriptions asks for."""
    found: dict[tuple[str, bool, str], frozenset[Key]] = {}
    ids = sorted({name_set for _, _, name_set in subscriptions})
    of_set = defaultdict(list)
    for each in subscriptions:
        of_set[each[2]].append(each)
    for start in range(0, len(ids), _BATCH):
        for pk, packed in NameSet.objects.filter(pk__in=ids[start : start + _BATCH]).values_list("pk", "names"):
            names = unpack_names(bytes(packed))
            for each in of_set[pk]:
                word, wildcard, _ = each
                covered = names_covered(names, wildcard=wildcard, wanted=wanted[word])
                found[each] = frozenset((word, name) for name in covered)
    return found


def _standings(environment_key: str, words: Collection[str]) -> Mapping[str, list[Standing]]:
    """What the open streams of connected clients stand on of these types, by client id."""
    rows: QuerySet[Subscription] = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in=words
    )
    found: dict[str, list[Standing]] = defaultdict(list)
    for values in rows.values_list(*_STANDING):
        standing = Standing(*values)
        found[standing.client].append(standing)
    return found


class _Taken:
    """Which of some resources, given with their versions, clients acknowledged `ANSWER_WITHIN` ago and have still."""

    def __init__(
        self, environment_key: str, versions: Mapping[Key, str], standings: Iterable[Collection[Standing]]
    ) -> None:
        streams = [each for of_client in standings for each in of_client]
        self._before = database_now() - ANSWER_WITHIN if streams else None
        self._versions = versions
        self._stood = _stood(environment_key, {each.type for each in streams}, self._before)
        self._sets = StoredSets({each.held for each in streams} | set(self._stood.values()))
        self._of_set: dict[str, frozenset[Key]] = {}

    def by(self, standings: Collection[Standing]) -> frozenset[Key]:
        """Those that the client whose streams these are has taken for so long."""
        now = self._of([(each.type, each.held) for each in standings])
        recent = any(self._is_recent(each) for each in standings)
        return now & self._of([(each.type, self._held_before(each)) for each in standings]) if now and recent else now

    def _is_recent(self, standing: Standing) -> bool:
        return standing.since is None or self._before is None or standing.since > self._before

    def _held_before(self, standing: Standing) -> str | None:
        """What the stream stood on so long ago; None for nothing, and where it is not kept any more."""
        if not self._is_recent(standing):
            return standing.held
        return self._stood.get((standing.type, stream_mark(standing.stream)))

    def _of(self, had: Collection[tuple[str, str | None]]) -> frozenset[Key]:
        """What a client has acknowledged whose streams have these sets, each given with its type."""
        by_word: dict[str, list[str | None]] = defaultdict(list)
        for word, held in had:
            by_word[word].append(held)
        return frozenset[Key]().union(*(self._of_type(word, held) for word, held in by_word.items()))

    def _of_type(self, word: str, had: Collection[str | None]) -> frozenset[Key]:
        sets = [held for held in had if held is not None]
        if len(sets) < len(had):
            return frozenset()  # nobody says what a stream has whose set is None
        taken = [self._in_set(word, held) for held in sets]
        if len(taken) == 1:
            return taken[0]
        # Of several streams, each that asks for the name has to have it.
        return frozenset(
            key
            for key in frozenset[Key]().union(*taken)
            if all(key in each or self._sets.find(held, key[1]) is None for held, each in zip(sets, taken, strict=True))
        )

    def _in_set(self, word: str, held: str) -> frozenset[Key]:
        if held not in self._of_set:
            keyframe, entries = self._sets.keyframe(held), self._sets.entries(held)
            named = {(word, name): holding for name, holding in entries.items() if (word, name) in self._versions}
            taken = {key for key, holding in named.items() if self._is_taken(key, holding)}
            base = self._in_set(word, keyframe) if keyframe != held else frozenset[Key]()
            self._of_set[held] = (base - named.keys()) | taken
        return self._of_set[held]

    def _is_taken(self, key: Key, holding: Holding | None) -> bool:
        return holding is not None and holding.state is HoldingState.ACKED and holding.version == self._versions[key]


def _stood(
    environment_key: str, words: Collection[str], before: datetime | None
) -> Mapping[tuple[str, bytes], str | None]:
    """The id of the set on which each stream stood at that time that stands on another since, by type and mark of the
    stream; None for none yet.
    """
    if before is None:
        return {}
    moves = HoldingMove.objects.filter(environment__key=environment_key, type__in=words, at__gt=before)
    found: dict[tuple[str, bytes], str | None] = {}
    for word, from_set, packed in moves.order_by("at", "pk").values_list("type", "from_set", "streams"):
        marks = bytes(packed)
        for start in range(0, len(marks), STREAM_MARK_BYTES):
            found.setdefault((word, marks[start : start + STREAM_MARK_BYTES]), from_set)
    return found
