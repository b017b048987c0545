"""Counts, for a page of clients, what each of them does not have although its answers alone make it look well.

Whoever asks by name for what it cannot have is told so and acknowledges that (xRFC TP3). Whoever refused content is
given something older in its place, and acknowledges that.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.clients.fleet_selectors import StreamSubscription, fleet_subscriptions
from controlplane.clients.selectors import ClientSummary
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Decision, Denied, Missing, Serve, Undecided, Withheld, decide
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.selectors import ClientFacts
from xdscore.snapshot import EntryKey, Snapshot
from xdscore.xdstp import glob_of

_MAX_NAMES: Final = 300
"""Different names that are looked up for a page; a client's own page looks at all of its own."""
_MAX_NACKS: Final = 500
_NOT_LOOKED_UP: Final = Undecided("it was not looked up")


@dataclass(frozen=True, slots=True)
class Told:
    """`denied`: names it may not read, and hears so; `missing`: names that are not there, hidden, or withheld;
    `refused`: names of which it refused what is published now.
    """

    denied: int = 0
    missing: int = 0
    refused: int = 0

    @property
    def names(self) -> int:
        """Those that it asks for and cannot have."""
        return self.denied + self.missing


def told_of(*, clients: Collection[ClientSummary]) -> Mapping[str, Told]:
    """By client id. A dozen queries for each environment."""
    found = {client.id: Told() for client in clients}
    for environment in {client.environment for client in clients}:
        found.update(_told_here(environment, [each for each in clients if each.environment == environment]))
    return found


def _told_here(environment_key: str, clients: Collection[ClientSummary]) -> Mapping[str, Told]:
    asked = fleet_subscriptions(clients=[client.id for client in clients], max_nacks=_MAX_NACKS)
    every = [each for subscriptions in asked.values() for each in subscriptions]
    # What was refused comes first, should there be too much.
    keys = [key for each in every for key, _ in _refused(each)] + [key for each in every for key in _asked(each)]
    looked_up = tuple(dict.fromkeys(keys))[:_MAX_NAMES]
    if not looked_up:
        return {}
    judge = _Judge(snapshot_of_names(environment_key=environment_key, keys=looked_up), frozenset(looked_up))
    return {client.id: judge.told(_audience(client, judge.snapshot), asked[client.id]) for client in clients}


def _asked(subscription: StreamSubscription) -> Iterator[EntryKey]:
    """The names it asks for one by one; a glob collection is no name (protocol.md H3)."""
    return ((subscription.type, canonical(name)) for name in subscription.names if glob_of(name) is None)


def _refused(subscription: StreamSubscription) -> Iterator[tuple[EntryKey, str]]:
    """The names, with their versions on the wire, that it refused on this stream and that nothing else explains."""
    for nack in subscription.nacks:
        for name, version in nack.suspects:
            yield (subscription.type, canonical(name)), version


def _audience(client: ClientSummary, snapshot: Snapshot | None) -> Audience:
    facts = ClientFacts(client.identity, client.node_id, client.node_cluster)
    return Audience(client.environment) if snapshot is None else snapshot.access.audience(client.environment, facts)


class _Judge:
    """Decides each name once for each audience."""

    def __init__(self, snapshot: Snapshot | None, keys: frozenset[EntryKey]) -> None:
        self.snapshot = snapshot
        self._keys = keys
        self._known: dict[tuple[Audience, EntryKey], Decision] = {}

    def told(self, audience: Audience, subscriptions: Sequence[StreamSubscription]) -> Told:
        decisions = [self._of(audience, key) for key in {key for each in subscriptions for key in _asked(each)}]
        refused = {
            key
            for each in subscriptions
            for key, version in _refused(each)
            if isinstance(served := self._of(audience, key), Serve) and served.content.version == version
        }
        return Told(
            denied=sum(isinstance(decision, Denied) for decision in decisions),
            missing=sum(isinstance(decision, Missing | Withheld) for decision in decisions),
            refused=len(refused),
        )

    def _of(self, audience: Audience, key: EntryKey) -> Decision:
        if key not in self._keys:
            return _NOT_LOOKED_UP
        known = self._known.get((audience, key))
        if known is None:
            known = self._known[audience, key] = decide(audience, by_word[key[0]], key[1], self.snapshot)
        return known
