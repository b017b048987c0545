"""Counts, for many resources at once, how many connected clients have what of each (truth.md H4).

The numbers are those of a resource's own page, `holdings.resource_holders`. Clients that have the same share one stored
set, and sets that are nearly alike share a keyframe: each is gone through once, however many clients there are.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from django.db.models import Count, QuerySet

from controlplane.clients.facts import unpack_names
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.holding_words import UNSAID, worst
from controlplane.clients.models import NameSet, Stream, Subscription
from xdscore.holdings import Holding, HoldingState

Key = tuple[str, str]
"""The word of a type, and a resource's name."""
_DENIED: Final = "XDS2103"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many clients have a resource.

    `asking`: the clients that ask for it. A wildcard does not count where the client may not read the name.
    `running`: those of them that acknowledged the newest revision; `nacked`: those that refused it.
    `denied`: those that ask for it by name and may not read it.
    """

    asking: int = 0
    running: int = 0
    nacked: int = 0
    denied: int = 0

    @property
    def unserved(self) -> "Coverage":
        """The coverage as it is when the newest revision is not served, so that no client runs it."""
        return replace(self, running=0)


class _Source(NamedTuple):
    """The id of the stored set of what a stream has of a type. Empty where the stream does not say it; then only what
    it asks for is known: `wildcard`, and the names in the set with the id `name_set`.
    """

    held: str
    wildcard: bool = False
    name_set: str = ""


_Kind = tuple[str, tuple[_Source, ...]]
"""A type's word, and what each stream of a client has of it: clients with an equal one have the same."""


def coverage_of(*, environment_key: str, versions: Mapping[Key, str]) -> Mapping[Key, Coverage]:
    """The coverage of each of these resources, by (type, name). `versions` has, for each, the version on the wire of
    its newest revision.
    """
    found = _holdings_counted(environment_key, versions.keys())
    return {key: _coverage(found.get(key, {}), version) for key, version in versions.items()}


def asking_counted(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, int]:
    """How many connected clients ask for each of these names; those for which nobody asks are left out."""
    found = _holdings_counted(environment_key, keys)
    return {key: asking for key, had in found.items() if (asking := sum(had.values()))}


def _coverage(had: Mapping[Holding, int], version: str) -> Coverage:
    """The coverage that follows from how many clients have what. `version`: that of the newest revision."""
    asking = running = nacked = denied = 0
    for holding, clients in had.items():
        asking += clients
        newest = holding.version == version
        running += clients if newest and holding.state is HoldingState.ACKED else 0
        nacked += clients if newest and holding.state is HoldingState.NACKED else 0
        denied += clients if holding.code == _DENIED else 0
    return Coverage(asking, running, nacked, denied)


def _holdings_counted(environment_key: str, keys: Collection[Key]) -> Mapping[Key, Mapping[Holding, int]]:
    """How many connected clients that ask for each of these names have what of it. Five queries, and two more for each
    500 sets that were not read lately.
    """
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for word, name in keys:
        wanted[word].add(name)
    kinds = _kinds(environment_key, wanted)
    sources = {each for _, sources in kinds for each in sources}
    named = NameSet.objects.filter(pk__in={each.name_set for each in sources if not each.held})
    counting = _Counting(
        wanted,
        StoredSets({each.held or None for each in sources}),
        {pk: frozenset(unpack_names(bytes(packed))) for pk, packed in named.values_list("pk", "names")},
    )
    return counting.of(kinds)


def _kinds(environment_key: str, words: Collection[str]) -> Mapping[_Kind, int]:
    """How many clients there are of each kind."""
    rows: QuerySet[Subscription] = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in=words
    )
    opened = Stream.objects.filter(closed_at=None, client__environment__key=environment_key).values("client")
    several = opened.annotate(streams=Count("pk")).filter(streams__gt=1).values("client")
    columns = ("type", "holding_set", "wildcard", "name_set")
    found: Counter[_Kind] = Counter()
    alone = rows.exclude(stream__client__in=several).values_list(*columns).annotate(clients=Count("stream"))
    for word, held, wildcard, name_set, clients in alone:
        found[word, (_source(held, name_set, wildcard=wildcard),)] += clients
    of_client: defaultdict[tuple[str, str], list[_Source]] = defaultdict(list)
    for client, word, held, wildcard, name_set in rows.filter(stream__client__in=several).values_list(
        "stream__client", *columns
    ):
        of_client[client, word].append(_source(held, name_set, wildcard=wildcard))
    found.update((word, tuple(sorted(sources))) for (_, word), sources in of_client.items())
    return found


def _source(held: str | None, name_set: str, *, wildcard: bool) -> _Source:
    return _Source(held) if held is not None else _Source("", wildcard, name_set)


class _Counting:
    """Counts who has what. `wanted`: the names that count, by type. `named`: the names in each set of names that a
    stream which does not say what it has asks for.
    """

    def __init__(
        self, wanted: Mapping[str, AbstractSet[str]], sets: StoredSets, named: Mapping[str, Collection[str]]
    ) -> None:
        self._wanted = wanted
        self._sets = sets
        self._named = named
        self._counts: defaultdict[Key, Counter[Holding]] = defaultdict(Counter)

    def of(self, kinds: Mapping[_Kind, int]) -> Mapping[Key, Mapping[Holding, int]]:
        """How many clients have what, by (type, name)."""
        alike: Counter[_Kind] = Counter()
        for (word, sources), clients in kinds.items():
            bases = tuple(each._replace(held=self._sets.keyframe(each.held)) for each in sources)
            alike[word, bases] += clients
            differing = {
                name
                for base, each in zip(bases, sources, strict=True)
                if base != each
                for name in self._sets.entries(each.held)
            }
            self._add(word, bases, differing, -clients)
            self._add(word, sources, differing, clients)
        for (word, bases), clients in alike.items():
            names = {name for each in bases for name in self._names(word, each)}
            self._add(word, bases, names, clients)
        return {key: +counted for key, counted in self._counts.items()}

    def _names(self, word: str, source: _Source) -> Iterable[str]:
        if source.held:
            return self._sets.entries(source.held)
        return self._wanted[word] if source.wildcard else self._named.get(source.name_set, ())

    def _add(self, word: str, sources: tuple[_Source, ...], names: AbstractSet[str], clients: int) -> None:
        wanted = names & self._wanted[word]
        if len(sources) == 1:  # nearly all clients have one stream, and of one there is no worst
            for name in wanted:
                if (had := self._of(sources[0], name)) is not None:
                    self._counts[word, name][had] += clients
            return
        for name in wanted:
            holdings = [had for each in sources if (had := self._of(each, name)) is not None]
            if holdings:
                self._counts[word, name][holdings[worst(holdings)]] += clients

    def _of(self, source: _Source, name: str) -> Holding | None:
        if source.held:
            return self._sets.find(source.held, name)
        return UNSAID if source.wildcard or name in self._named.get(source.name_set, ()) else None
