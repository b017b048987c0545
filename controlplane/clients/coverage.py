"""Counts, for many resources at once, how many connected clients have what of each (truth.md H4).

The numbers are those of a resource's own page, `holdings.resource_holders`. Clients that have the same share one stored
set, and sets that are nearly alike share a keyframe: each is gone through once, however many clients there are.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    counting = _counting(environment_key, keys)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, sources, names, clients in counting.shares():
        of_type = counts[word]
        for name in counting.asked(sources, names):
            of_type[name] += clients
    return {(word, name): clients for word, of_type in counts.items() for name, clients in of_type.items() if clients}


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
    """How many connected clients that ask for each of these names have what of it."""
    counting = _counting(environment_key, keys)
    counts: defaultdict[Key, Counter[Holding]] = defaultdict(Counter)
    for word, sources, names, clients in counting.shares():
        for name in names:
            holdings = [each for source in sources if (each := counting.had(source, name)) is not None]
            if holdings:
                # Nearly all clients have one stream, and of one there is no worst.
                had = holdings[0] if len(holdings) == 1 else holdings[worst(holdings)]
                counts[word, name][had] += clients
    return {key: +counted for key, counted in counts.items()}


def _counting(environment_key: str, keys: Collection[Key]) -> "_Counting":
    """What is to be counted of these names. Five queries, and two more for each 500 sets that were not read lately."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for word, name in keys:
        wanted[word].add(name)
    kinds = _kinds(environment_key, wanted)
    sources = {each for _, sources in kinds for each in sources}
    named = NameSet.objects.filter(pk__in={each.name_set for each in sources if not each.held})
    return _Counting(
        kinds,
        wanted,
        StoredSets({each.held or None for each in sources}),
        {pk: frozenset(unpack_names(bytes(packed))) for pk, packed in named.values_list("pk", "names")},
    )


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


_Share = tuple[str, tuple[_Source, ...], AbstractSet[str], int]
"""A type's word, what streams have of it, some of its names, and how many clients are to be added to each of these
according to what the streams have of it.
"""


class _Counting:
    """What is to be added up to count clients by what they have. `kinds`: how many there are of each kind. `wanted`:
    the names that count, by type. `named`: the names in each set of names that a stream which does not say what it has
    asks for.
    """

    def __init__(
        self,
        kinds: Mapping[_Kind, int],
        wanted: Mapping[str, AbstractSet[str]],
        sets: StoredSets,
        named: Mapping[str, Collection[str]],
    ) -> None:
        self._kinds = kinds
        self._wanted = wanted
        self._sets = sets
        self._named = named

    def shares(self) -> Iterator[_Share]:
        """What is to be added: of all kinds that differ from the same keyframes, the keyframes once; and of each kind
        what differs, in place of what the keyframes have of it.
        """
        alike: Counter[_Kind] = Counter()
        for (word, sources), clients in self._kinds.items():
            bases = tuple(each._replace(held=self._sets.keyframe(each.held)) for each in sources)
            alike[word, bases] += clients
            differing = self._wanted[word] & {
                name
                for base, each in zip(bases, sources, strict=True)
                if base != each
                for name in self._sets.entries(each.held)
            }
            if differing:
                yield word, bases, differing, -clients
                yield word, sources, differing, clients
        for (word, bases), clients in alike.items():
            names = {name for each in bases for name in self._names(word, each)}
            yield word, bases, self._wanted[word] & names, clients

    def asked(self, sources: tuple[_Source, ...], names: AbstractSet[str]) -> AbstractSet[str]:
        """The names among `names` that a client with streams of these sources asks for."""
        only = sources[0].held if len(sources) == 1 else ""
        if only and self._sets.keyframe(only) == only:
            # Nearly always, and of tens of thousands of names: each entry of a keyframe is something.
            return names & self._sets.entries(only).keys()
        return {name for name in names if any(self.had(each, name) is not None for each in sources)}

    def had(self, source: _Source, name: str) -> Holding | None:
        """What a stream has of this name of its type; None where it does not ask for it."""
        if source.held:
            return self._sets.find(source.held, name)
        return UNSAID if source.wildcard or name in self._named.get(source.name_set, ()) else None

    def _names(self, word: str, source: _Source) -> Iterable[str]:
        if source.held:
            return self._sets.entries(source.held)
        return self._wanted[word] if source.wildcard else self._named.get(source.name_set, ())
