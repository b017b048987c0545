"""Reads back what streams had before: since when they have something, and what they had at a time (truth.md H6)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import models

from controlplane.clients.held_sets import has_mark, stream_mark
from controlplane.clients.holding_sets import StoredSets
from controlplane.clients.models import HoldingMove

# Of one stream, looked at one after the other.
_MAX_STEPS: Final = 64
# The newest moves of all streams, among which a fleet that moves together has all of its own.
_NEWEST: Final = 256
# Of what a page shows, whose moves are not among those, read together.
_MAX_OLDER: Final = 2_000


@dataclass(frozen=True, slots=True)
class Standing:
    """A stream and the set that it stands on. `node_id`: of its client, whose id is `client`; `since`: from when on it
    stands there; `opened_at`: when the stream was opened.
    """

    stream: str
    client: str
    node_id: str
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
    to_set: str
    streams: bytes


_COLUMNS: Final = ("id", "at", "from_set", "to_set", "streams")
_Of = tuple[int, str]
"""The row id of an environment, and the word of a type."""


class History:
    """What streams had before, as one question needs it: of all the streams that it is about, moves are read at once,
    and so are the sets between which they moved. Four queries for a type, and two for each 500 sets.
    """

    def __init__(self, sets: StoredSets) -> None:
        self._sets = sets
        self._moves: dict[tuple[_Of, str], tuple[_Move, ...]] = {}

    def read(self, standings: Iterable[Standing]) -> None:
        """Read the moves of these streams, so that to ask about one of them costs no query any more."""
        unread: dict[_Of, set[str]] = defaultdict(set)
        for each in standings:
            if each.held is not None and (_of(each), each.stream) not in self._moves:
                unread[_of(each)].add(each.stream)
        for of, streams in unread.items():
            self._read(of, streams)
        found = (move for of, streams in unread.items() for stream in streams for move in self._moves[of, stream])
        self._sets.read({held for move in found for held in (move.from_set, move.to_set)})

    def _read(self, of: _Of, streams: Collection[str]) -> None:
        """Read the newest moves of these streams of one environment that are of one type."""
        rows = HoldingMove.objects.filter(environment=of[0], type=of[1]).order_by("-at", "-id")
        newest = _moves(rows[:_NEWEST])
        marks = {stream: stream_mark(stream) for stream in streams}
        found = {stream: [move for move in newest if has_mark(move.streams, marks[stream])] for stream in streams}
        # A stream that moves apart from others has its moves further back, and the database looks for them.
        lacking = [stream for stream in streams if len(found[stream]) < _MAX_STEPS]
        if len(newest) == _NEWEST and lacking:
            theirs = models.Q()
            for number, stream in enumerate(lacking):
                rows = rows.annotate(**{f"place{number}": _Place(models.Value(marks[stream]), "streams")})
                theirs |= models.Q(**{f"place{number}__gt": 0})
            last = newest[-1]
            before = models.Q(at__lt=last.at) | models.Q(at=last.at, pk__lt=last.id)
            older = _moves(rows.filter(theirs, before)[: min(_MAX_OLDER, _MAX_STEPS * len(lacking))])
            for stream in lacking:
                found[stream] += (move for move in older if has_mark(move.streams, marks[stream]))
        self._moves.update({(of, stream): tuple(moves[:_MAX_STEPS]) for stream, moves in found.items()})

    def since(self, standing: Standing, names: Collection[str]) -> Mapping[str, datetime]:
        """Since when, at the latest, the stream has had of each of these names what it has now."""
        unchanged, found = set(names), {}
        held, at, before = standing.held, standing.since or standing.opened_at, None
        for _ in range(_MAX_STEPS):
            move = self._move_to(standing, held, before)
            if move is None or not unchanged:
                break
            at = move.at
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
        self.read([standing])
        moves = (each for each in self._moves[_of(standing), standing.stream] if each.to_set == held)
        return next((each for each in moves if before is None or each.id < before), None)


class _Place(models.Func):
    """A database expression: where some bytes first stand within others, from 1 on; 0 where they do not."""

    function = "INSTR"
    output_field = models.IntegerField()

    def __init__(self, part: Any, whole: Any) -> None:
        super().__init__(whole, part)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Sequence[Any]]:
        """The expression in PostgreSQL's words."""
        turned = self.copy()
        turned.set_source_expressions(list(reversed(self.get_source_expressions())))
        return turned.as_sql(compiler, connection, function="POSITION", arg_joiner=" IN ", **context)


def _of(standing: Standing) -> _Of:
    return standing.environment, standing.type


def _moves(rows: models.QuerySet[HoldingMove]) -> list[_Move]:
    found: Iterator[tuple[Any, ...]] = rows.values_list(*_COLUMNS).iterator()
    return [_Move(pk, at, start, end, bytes(packed)) for pk, at, start, end, packed in found]
