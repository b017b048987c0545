"""Counts, for a page of clients, the names that each asks for by name and is told it cannot have.

Such a client acknowledges what it is told (xRFC TP3), so that its answers alone make it look well.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.clients.fleet_selectors import StreamSubscription, fleet_subscriptions
from controlplane.clients.selectors import ClientSummary
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Denied, Missing, Withheld, decide
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.selectors import ClientFacts
from xdscore.snapshot import EntryKey, Snapshot
from xdscore.xdstp import glob_of

_MAX_NAMES: Final = 300
"""Different names that are looked up for a page; a client's own page looks at all of its own."""


@dataclass(frozen=True, slots=True)
class Told:
    """`denied`: names it may not read, and hears so; `missing`: names that are not there, hidden, or withheld."""

    denied: int = 0
    missing: int = 0

    @property
    def names(self) -> int:
        """All of them."""
        return self.denied + self.missing


def told_of(*, environment_key: str, clients: Collection[ClientSummary]) -> Mapping[str, Told]:
    """By client id, what the open streams of these clients of one environment are told of. A dozen queries."""
    asked = fleet_subscriptions(clients=[client.id for client in clients], max_nacks=0)
    keys: dict[EntryKey, None] = {}
    for subscriptions in asked.values():
        for each in subscriptions:
            keys.update(dict.fromkeys(_asked(each)))
    if not keys:
        return {client.id: Told() for client in clients}
    looked_up = tuple(keys)[:_MAX_NAMES]
    judge = _Judge(snapshot_of_names(environment_key=environment_key, keys=looked_up), frozenset(looked_up))
    return {client.id: judge.told(_audience(client, judge.snapshot), asked[client.id]) for client in clients}


def _asked(subscription: StreamSubscription) -> Iterator[EntryKey]:
    """The names it asks for one by one; a glob collection is no name (protocol.md H3)."""
    return ((subscription.type, canonical(name)) for name in subscription.names if glob_of(name) is None)


def _audience(client: ClientSummary, snapshot: Snapshot | None) -> Audience:
    facts = ClientFacts(client.identity, client.node_id, client.node_cluster)
    return Audience(client.environment) if snapshot is None else snapshot.access.audience(client.environment, facts)


class _Judge:
    """Decides each name once for each audience."""

    def __init__(self, snapshot: Snapshot | None, keys: frozenset[EntryKey]) -> None:
        self.snapshot = snapshot
        self._keys = keys
        self._known: dict[tuple[Audience, EntryKey], Told] = {}

    def told(self, audience: Audience, subscriptions: Sequence[StreamSubscription]) -> Told:
        names = {key for each in subscriptions for key in _asked(each)}
        each_told = [self._of(audience, key) for key in names & self._keys]
        return Told(sum(told.denied for told in each_told), sum(told.missing for told in each_told))

    def _of(self, audience: Audience, key: EntryKey) -> Told:
        known = self._known.get((audience, key))
        if known is None:
            match decide(audience, by_word[key[0]], key[1], self.snapshot):
                case Denied():
                    known = Told(denied=1)
                case Missing() | Withheld():
                    known = Told(missing=1)
                case _:
                    known = Told()
            self._known[audience, key] = known
        return known
