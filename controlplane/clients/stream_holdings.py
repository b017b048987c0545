"""Reads what the streams of one client, or of all clients of an environment, have of names. Values only, never rows.

Where a client has several streams, the one that needs attention counts (`holding_words.WORST_FIRST`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db.models import Q, QuerySet

from controlplane.clients.facts import unpack_names
from controlplane.clients.holding_history import History, Standing
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.holding_words import FORGOTTEN, UNSAID, worst
from controlplane.clients.models import NameSet, Subscription
from xdscore.holdings import Holding, HoldingState

# As many as there are connected clients in the largest environment, each with two streams.
_MAX_STREAMS: Final = 100_000
_COLUMNS: Final = (
    "stream_id",
    "stream__client_id",
    "stream__client__node_id",
    "stream__client__environment_id",
    "type",
    "holding_set_id",
    "held_at",
    "stream__opened_at",
)
_HELD: Final = ("stream_id", "stream__client_id", "holding_set_id")

Key = tuple[str, str]
"""A type's word and a name."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a client has of a name, on the stream that counts and on all of them."""

    standing: Standing
    holding: Holding
    all: tuple[Holding, ...]

    def away(self) -> "Found":
        """What is known of it once the client went away."""
        holding = self.holding._replace(state=HoldingState.UNKNOWN, code="", message="")
        return Found(self.standing, holding, (holding,))


@dataclass(frozen=True, slots=True)
class OfOne:
    """What the streams of one client have. `asked`: the types that they ask for; `unsaid`: those of which a stream does
    not say what it has, or nobody knows it any more.
    """

    found: Mapping[Key, Found]
    asked: frozenset[str]
    unsaid: frozenset[str]


def of_one(rows: QuerySet[Subscription], sets: StoredSets, history: History, at: datetime | None = None) -> OfOne:
    """What the streams of these rows, which are of one client, have of each name; with `at`, what they had then."""
    held: dict[Key, list[tuple[Standing, Holding]]] = defaultdict(list)
    asked, unsaid = set(), set()
    read = [(_standing(row), row) for row in rows.order_by("stream_id", "type").values(*_COLUMNS, "name_set__names")]
    sets.read({standing.held for standing, _ in read})
    if at is not None:
        history.read(standing for standing, _ in read)
    for now, row in read:
        standing, silence = now, UNSAID
        asked.add(standing.type)
        names = {*unpack_names(bytes(row["name_set__names"])), *sets.items(standing.held)}
        if at is not None and standing.held is not None:
            known, held_id = history.held_at(standing, at)
            if known and held_id is None:
                continue  # it had not asked for anything yet
            silence = UNSAID._replace(message=FORGOTTEN.format(hours=settings.PARLEY.limits.holding_history_h))
            standing = replace(standing, held=held_id, since=None)
            sets.read([standing.held])
        if standing.held is None:
            unsaid.add(standing.type)
        had = sets.items(standing.held) if standing.held is not None else dict.fromkeys(names, silence)
        for name, holding in had.items():
            held[standing.type, name].append((standing, holding))
    return OfOne({key: _counting(each) for key, each in held.items()}, frozenset(asked), frozenset(unsaid))


def moved_since(rows: QuerySet[Subscription], sets: StoredSets, history: History, moment: datetime) -> frozenset[Key]:
    """Of what the streams of these rows had something else at `moment` than now, or nobody knows what they had."""
    found: set[Key] = set()
    standings = [_standing(row) for row in rows.filter(Q(held_at__gt=moment) | Q(held_at=None)).values(*_COLUMNS)]
    history.read(standings)
    for standing in standings:
        known, before = history.held_at(standing, moment)
        sets.read([standing.held, before])
        now, then = sets.items(standing.held), sets.items(before)
        changed = (name for name in now.keys() | then.keys() if not known or now.get(name) != then.get(name))
        found.update((standing.type, name) for name in changed)
    return frozenset(found)


def of_everybody(
    *, environment_key: str, word: str, names: Collection[str], sets: StoredSets, clients: Collection[str] = ()
) -> Mapping[str, Mapping[str, Found]]:
    """What each connected client that asks for one of these names of a type has of it: by name and client id.
    `clients`: only those with these ids; none: all.
    """
    streams, unsaid = _streams(environment_key, word, names, sets, clients)
    return {name: _of_name(streams, name, sets, unsaid[name]) for name in names}


def _streams(
    environment_key: str, word: str, names: Collection[str], sets: StoredSets, clients: Collection[str]
) -> tuple[list[Standing], Mapping[str, Collection[str]]]:
    """The open streams that ask for a type, whose sets are read into `sets`; and what `_unsaid` says of them."""
    rows = _open(environment_key, word)
    if clients:
        rows = rows.filter(stream__client__in=clients)
    streams = [Standing(*values) for values in rows.values_list(*_COLUMNS)[:_MAX_STREAMS]]
    sets.read({each.held for each in streams})
    return streams, _unsaid(names, word, [each.stream for each in streams if each.held is None])


def _open(environment_key: str, word: str) -> QuerySet[Subscription]:
    """The subscriptions of open streams to this type."""
    return Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type=word
    )


def _standing(row: Mapping[str, object]) -> Standing:
    return Standing(*(row[column] for column in _COLUMNS))  # type: ignore[arg-type]  # as the columns are


def _counting(held: list[tuple[Standing, Holding]]) -> Found:
    holdings = tuple(holding for _, holding in held)
    standing, holding = held[worst(holdings)]
    return Found(standing, holding, holdings)


def _unsaid(names: Collection[str], word: str, silent: Collection[str]) -> Mapping[str, Collection[str]]:
    """For each name, the ids of those of the `silent` streams, which do not say what they have of this type, that ask
    for it. At most two queries.
    """
    if not silent:
        return dict.fromkeys(names, ())
    rows = Subscription.objects.filter(stream__in=list(silent), type=word)
    asked = list(rows.values_list("stream_id", "wildcard", "name_set"))
    sets = NameSet.objects.filter(pk__in={pk for _, _, pk in asked}).values_list("pk", "names")
    unpacked = {pk: frozenset(unpack_names(bytes(packed))) for pk, packed in sets}
    return {
        name: {stream for stream, wildcard, pk in asked if wildcard or name in unpacked.get(pk, ())} for name in names
    }


def holdings_of_everybody(
    *, environment_key: str, word: str, names: Collection[str]
) -> Mapping[str, Mapping[str, Holding]]:
    """What each connected client that asks for one of these names of a type has of it: by name and client id."""
    by_set: dict[str, list[str]] = defaultdict(list)
    silent: dict[str, str] = {}  # client by stream
    for stream, client, held in _open(environment_key, word).values_list(*_HELD)[:_MAX_STREAMS]:
        if held is None:
            silent[stream] = client
        else:
            by_set[held].append(client)
    sets = StoredSets(by_set)
    unsaid = _unsaid(names, word, silent)
    found: dict[str, dict[str, Holding]] = {}
    for name in names:
        # Thousands of clients have the same set, and nearly each has one stream.
        had: list[tuple[Holding | None, list[str]]] = [
            (sets.find(held, name), clients) for held, clients in by_set.items()
        ]
        had.append((UNSAID, [silent[stream] for stream in unsaid[name]]))
        of_name = found[name] = {}
        for holding, clients in had:
            if holding is None:
                continue
            if of_name.keys().isdisjoint(clients) and len(set(clients)) == len(clients):
                of_name.update(dict.fromkeys(clients, holding))
                continue
            for client in clients:
                other = of_name.get(client)
                of_name[client] = holding if other is None else (other, holding)[worst((other, holding))]
    return found


def _of_name(streams: Iterable[Standing], name: str, sets: StoredSets, unsaid: Collection[str]) -> dict[str, Found]:
    held: dict[str, list[tuple[Standing, Holding]]] = defaultdict(list)
    for standing, holding in _held(streams, name, sets, unsaid):
        held[standing.client].append((standing, holding))
    return {client: _counting(each) for client, each in held.items()}


def _held(
    streams: Iterable[Standing], name: str, sets: StoredSets, unsaid: Collection[str]
) -> Iterator[tuple[Standing, Holding]]:
    """What each of these streams has of a name, where it has, or may have, anything of it."""
    known: dict[str | None, Holding | None] = {}
    for standing in streams:
        if standing.held not in known:
            known[standing.held] = sets.find(standing.held, name)
        holding = UNSAID if standing.stream in unsaid else known[standing.held]
        if holding is not None:
            yield standing, holding
