"""Counts, for a page of clients, what each of them does not have although its answers alone make it look well.

Whoever asks by name for what it cannot have is told so and acknowledges that (xRFC TP3).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from controlplane.clients.asks import Asks
from controlplane.clients.fleet_selectors import clients_ask
from controlplane.clients.selectors import ClientSummary
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Decision, Denied, Missing, Withheld, decide
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.snapshot import EntryKey, Snapshot
from xdscore.xdstp import glob_of

_MAX_NAMES: Final = 300
"""The most different names that are looked up for a page of clients; a client's own page looks at all of its own."""


@dataclass(frozen=True, slots=True)
class ToldCounts:
    """How many names a client asks for and cannot have. `denied`: names it may not read, and hears so; `missing`: names
    that do not exist, or are hidden or withheld.
    """

    denied: int = 0
    missing: int = 0

    @property
    def names(self) -> int:
        """The number of names that the client asks for and cannot have."""
        return self.denied + self.missing


def told_of(*, clients: Collection[ClientSummary]) -> Mapping[str, ToldCounts]:
    """How many names each of these clients asks for and cannot have, by client id. A dozen queries for each
    environment.
    """
    found = {client.id: ToldCounts() for client in clients}
    for environment in {client.environment for client in clients}:
        found.update(_told_here(environment, [each for each in clients if each.environment == environment]))
    return found


def _told_here(environment_key: str, clients: Collection[ClientSummary]) -> Mapping[str, ToldCounts]:
    asks, names = clients_ask(clients=[client.id for client in clients])
    # Clients of one workload ask for the same names, hundreds of them: each set is gone through once.
    named = {each: tuple(_keys(each, names)) for each in dict.fromkeys(map(_set_of, asks))}
    looked_up = frozenset(islice(dict.fromkeys(key for keys in named.values() for key in keys), _MAX_NAMES))
    if not looked_up:
        return {}
    snapshot = snapshot_of_names(environment_key=environment_key, keys=looked_up)
    judge = _Judge(
        snapshot if snapshot is None else _narrowed(snapshot, looked_up),
        {each: looked_up.intersection(keys) for each, keys in named.items()},
    )
    asked: dict[str, set[_Set]] = defaultdict(set)
    for ask in asks:
        asked[ask.client].add(_set_of(ask))
    return {client.id: judge.told(_audience(client, judge.snapshot), asked[client.id]) for client in clients}


_Set = tuple[str, str]
"""A type and the id of the set of names that a subscription to it asks for."""


def _set_of(ask: Asks) -> _Set:
    return (ask.word, ask.name_set)


def _keys(asked: _Set, names: Mapping[str, Collection[str]]) -> Iterator[EntryKey]:
    """The type and name of each name that a subscription asks for itself; a glob collection is no name (protocol.md
    H3).
    """
    word, name_set = asked
    return ((word, canonical(name)) for name in names[name_set] if glob_of(name) is None)


def _narrowed(snapshot: Snapshot, keys: Collection[EntryKey]) -> Snapshot:
    """The snapshot without the access rules that match none of these names: a page of clients has then few
    audiences.
    """
    access = snapshot.access
    return replace(
        snapshot, access=access.only({each for word, name in keys for each in access.row(by_word[word], name)})
    )


def _audience(client: ClientSummary, snapshot: Snapshot | None) -> Audience:
    return Audience(client.environment) if snapshot is None else snapshot.audience(client.facts)


class _Judge:
    """Decides each name once for each audience. `named`: the names to look at of each set of names."""

    def __init__(self, snapshot: Snapshot | None, named: Mapping[_Set, frozenset[EntryKey]]) -> None:
        self.snapshot = snapshot
        self._named = named
        self._known: dict[tuple[Audience, EntryKey], Decision] = {}

    def told(self, audience: Audience, asked: Collection[_Set]) -> ToldCounts:
        keys: frozenset[EntryKey] = frozenset().union(*(self._named[each] for each in asked))
        decisions = [self._of(audience, key) for key in keys]
        return ToldCounts(
            denied=sum(isinstance(decision, Denied) for decision in decisions),
            missing=sum(isinstance(decision, Missing | Withheld) for decision in decisions),
        )

    def _of(self, audience: Audience, key: EntryKey) -> Decision:
        known = self._known.get((audience, key))
        if known is None:
            known = self._known[audience, key] = decide(audience, by_word[key[0]], key[1], self.snapshot)
        return known
