"""Which set of what it has each stream stands on, and which streams went from one set to another (truth.md H3, H6).

A move is from what was written last to what is written now: what came in between within a second is not kept. However
many clients make the same move, it is one fact. Used by the fact thread alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from adsserver.engine.events import Respond
from adsserver.engine.holdings import Ground, Holdings
from adsserver.store.held_sets import HeldSet, HeldSets
from controlplane.clients.facts import MoveFact
from controlplane.clients.held_sets import HeldRow, stream_mark

Key = tuple[str, str]
"""The id of a stream and the word of a type."""


class Reported(NamedTuple):
    """What a client had at its last request, and what it was sent since; `at`: when that was so, by a clock that only
    goes forward.
    """

    environment: str
    holdings: Holdings
    unanswered: tuple[Respond, ...]
    at: float


class Standing(NamedTuple):
    """The id of the set that a stream has of a type (empty: none is known), and since when, by a clock that only goes
    forward.
    """

    held: str
    since: float


NOWHERE: Final = Standing("", 0.0)


class HeldBatch(NamedTuple):
    """What of one batch of facts is about what clients have: the sets, on which of them streams stand, and moves."""

    sets: tuple[HeldRow, ...]
    stands: Mapping[Key, Standing]
    moves: tuple[MoveFact, ...]


class HeldMoves:
    """Makes moves of what streams report. `sets`: makes the sets."""

    def __init__(self, sets: HeldSets) -> None:
        self._sets = sets
        self._written: dict[str, dict[str, Standing]] = {}
        self._batch: Mapping[Key, Standing] = {}

    def batch(self, reported: Iterable[tuple[Key, Reported]], now: float) -> HeldBatch:
        """What is to be written of these reports; `now`: the clock's time in seconds."""
        sets: dict[str, HeldSet] = {}
        # In a fleet that takes a change thousands rest on the same, mostly one after the other.
        resting: dict[tuple[str, str, Ground], str] = {}
        last, held = None, ""
        stands: dict[Key, Standing] = {}
        moves: dict[tuple[str, str, str, str], list[tuple[str, float]]] = defaultdict(list)
        for key, (environment, holdings, unanswered, at) in reported:
            stream, word = key
            rests = (environment, word, holdings.ground) if not unanswered and not holdings.apart else None
            if rests is None or rests != last:
                held = resting.get(rests, "") if rests is not None else ""
                if not held:
                    made = self._sets.held(environment, word, holdings, unanswered)
                    held = made.id
                    sets[held] = made
                    if rests is not None:
                        resting[rests] = held
                last = rests
            written = self._written.get(stream)
            before = written.get(word, NOWHERE) if written is not None else NOWHERE
            if before.held == held:
                stands[key] = before
                continue
            stands[key] = Standing(held, at)
            moves[environment, word, before.held, held].append((stream, at))
        self._batch = stands
        rows = {row.id: row for held in sets.values() for row in self._sets.rows(held)}
        return HeldBatch(tuple(rows.values()), stands, tuple(_move(*each, now) for each in moves.items()))

    def written(self) -> None:
        """The batch made last is written."""
        for (stream, word), standing in self._batch.items():
            self._written.setdefault(stream, {})[word] = standing
        self._batch = {}

    def ended(self, stream: str) -> None:
        """The stream ended, and that is written."""
        self._written.pop(stream, None)


def _move(key: tuple[str, str, str, str], streams: list[tuple[str, float]], now: float) -> MoveFact:
    environment, word, from_set, to_set = key
    marks = sorted(stream_mark(stream) for stream, _ in streams)
    age_s = now - max(at for _, at in streams)
    return MoveFact(environment, word, from_set or None, to_set, b"".join(marks), len(marks), age_s)
