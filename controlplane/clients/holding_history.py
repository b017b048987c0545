"""Reads back what streams had before: since when they have something, and what they had at a time (truth.md H6)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.clients.held_sets import has_mark, stream_mark
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import HoldingMove

# Of one stream, looked at one after the other.
_MAX_STEPS: Final = 64
# Of all moves to one set, the newest.
_MAX_MOVES: Final = 64


@dataclass(frozen=True, slots=True)
class Standing:
    """A stream and the set that it stands on. `since`: from when on; `opened_at`: when the stream was opened."""

    stream: str
    client: str
    environment: int
    type: str
    held: str | None
    since: datetime | None
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class _Move:
    id: int
    at: datetime
    from_set: str | None
    streams: bytes


class History:
    """What streams had before, as one question needs it: moves that many streams made are read once."""

    def __init__(self, sets: StoredSets) -> None:
        self._sets = sets
        self._moves: dict[tuple[int, str, str], tuple[_Move, ...]] = {}

    def since(self, standing: Standing, names: Collection[str]) -> Mapping[str, datetime]:
        """Since when, at the latest, the stream has had of each of these names what it has now."""
        unchanged, found = set(names), {}
        held, at, before = standing.held, standing.since or standing.opened_at, None
        for _ in range(_MAX_STEPS):
            move = self._move_to(standing, held, before)
            if move is None or not unchanged:
                break
            at = move.at
            self._sets.read([move.from_set])
            changed = {
                each for each in unchanged if self._sets.find(move.from_set, each) != self._sets.find(held, each)
            }
            found.update(dict.fromkeys(changed, at))
            unchanged -= changed
            held, before = move.from_set, move.id
        return {**dict.fromkeys(unchanged, at), **found}

    def held_at(self, standing: Standing, moment: datetime) -> tuple[bool, str | None]:
        """The id of the set that the stream stood on at a time, None for none yet; and whether that is known."""
        held, before = standing.held, None
        if standing.since is None or standing.since <= moment:
            return held is not None, held
        for _ in range(_MAX_STEPS):
            move = self._move_to(standing, held, before)
            if move is None:
                return False, None
            if move.at <= moment:
                return True, held
            held, before = move.from_set, move.id
            if held is None:
                return True, None
        return False, None

    def _move_to(self, standing: Standing, held: str | None, before: int | None) -> _Move | None:
        """The last move of this stream that led to a set, of those older than the move `before`."""
        if held is None:
            return None
        mark = stream_mark(standing.stream)
        moves = (each for each in self._moves_to(standing, held) if before is None or each.id < before)
        return next((each for each in moves if has_mark(each.streams, mark)), None)

    def _moves_to(self, standing: Standing, held: str) -> tuple[_Move, ...]:
        key = (standing.environment, standing.type, held)
        known = self._moves.get(key)
        if known is None:
            rows = HoldingMove.objects.filter(to_set=held, environment=standing.environment, type=standing.type)
            values = rows.order_by("-at", "-id").values_list("id", "at", "from_set", "streams")[:_MAX_MOVES]
            known = self._moves[key] = tuple(_Move(pk, at, start, bytes(packed)) for pk, at, start, packed in values)
        return known
