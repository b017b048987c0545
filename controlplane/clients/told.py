"""Counts what clients ask for and cannot have, for their list, their pages, and the one word that says how they stand:
by what they have on their streams, as all who ask what a client has (truth.md H4).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import Subscription
from controlplane.clients.selectors import ClientSummary
from controlplane.clients.stream_holdings import Key
from xdscore.holdings import Holding, HoldingState

_DENIED: Final = "XDS2103"
_BARRED: Final = (HoldingState.ERROR_SENT, HoldingState.SILENT)
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class ToldCounts:
    """How many names a client asks for and cannot have. `denied`: those that it may not read, and is told so;
    `missing`: those that do not exist, or are hidden from it or withheld.
    """

    denied: int = 0
    missing: int = 0

    @property
    def names(self) -> int:
        """The number of names that the client asks for and cannot have."""
        return self.denied + self.missing


def told_of(*, clients: Collection[ClientSummary]) -> Mapping[str, ToldCounts]:
    """How many names each of these clients asks for and cannot have, by client id. One query for 500 clients, and two
    for sets that were not read lately.
    """
    ids = [client.id for client in clients if client.connected]
    rows = [
        row
        for start in range(0, len(ids), _BATCH)
        for row in Subscription.objects.filter(
            stream__client__in=ids[start : start + _BATCH], stream__closed_at=None, holding_set__isnull=False
        ).values_list("stream__client_id", "type", "holding_set_id")
    ]
    sets = _Barred({held for _, _, held in rows})
    names: dict[str, dict[Key, bool]] = {}
    for client, word, held in rows:
        of_client = names.setdefault(client, {})
        for name, denied in sets.of(held).items():
            # Of several streams, one that is denied it counts.
            of_client[word, name] = denied or of_client.get((word, name), False)
    return {client.id: _counts(names.get(client.id, {})) for client in clients}


def _counts(names: Mapping[Key, bool]) -> ToldCounts:
    denied = sum(names.values())
    return ToldCounts(denied, len(names) - denied)


class _Barred:
    """The names in sets that clients cannot have, and whether that is because they may not read them."""

    def __init__(self, ids: Collection[str | None]) -> None:
        self._sets = StoredSets(ids)
        self._keyframes: dict[str, Mapping[str, bool]] = {}

    def of(self, held: str) -> Mapping[str, bool]:
        """The names in one set. Thousands of sets may differ by a name or two from one keyframe, which is gone through
        once.
        """
        keyframe = self._sets.keyframe(held)
        if keyframe not in self._keyframes:
            self._keyframes[keyframe] = _barred(self._sets.entries(keyframe))
        if keyframe == held:
            return self._keyframes[keyframe]
        own = self._sets.entries(held)
        kept = {name: denied for name, denied in self._keyframes[keyframe].items() if name not in own}
        return {**kept, **_barred(own)}


def _barred(entries: Mapping[str, Holding | None]) -> Mapping[str, bool]:
    return {
        name: holding.code == _DENIED
        for name, holding in entries.items()
        if holding is not None and holding.state in _BARRED
    }
