"""Counts NACKs and resource errors for the pictures over time, by what is drawn apart (truth.md H6).

A stream costs nothing here: there is one number for each environment, type, and kind of client or code.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from adsserver.engine.events import Respond
from adsserver.ports import StreamInfo
from controlplane.history.values import MAX_KINDS, MINUTE_S, REST, Tallied, What
from xdscore.client_kinds import kind_of
from xdscore.errors import ResourceError

# While the database is away, for so many minutes of one environment the counts wait; then the oldest give way.
_MAX_WAITING: Final = 4_000
# As exact as the minute is in which something is drawn.
_STEP_S: Final = 5


class TallyKey(NamedTuple):
    """What is counted apart. `word`: the type. `detail`: a kind of client, or a code."""

    environment: str
    what: What
    word: str
    detail: str


class Tallies:
    """The counts since somebody last took them. Who calls holds the lock that guards them."""

    def __init__(self) -> None:
        self._counts: Counter[TallyKey] = Counter()
        self._kinds: dict[str, set[str]] = {}
        self._minute = 0
        # What was told last, and how many times in a row: a fan-out tells all clients of an audience the same.
        self._told: tuple[str, str, tuple[ResourceError, ...]] = ("", "", ())
        self._times = 0

    def errors(self, environment: str, response: Respond) -> None:
        """Count the errors that a response tells."""
        told, word = self._told, response.kind.word
        # Not by value: after a change all streams share another tuple, mostly of equal errors.
        if response.errors is not told[2] or told[0] != environment or told[1] != word:
            self._settle()
            self._told = environment, word, response.errors
        self._times += 1

    def nack(self, stream: StreamInfo, word: str, now: float) -> None:
        """Count a NACK of the type `word`. Which software sends it is what that says of itself, so that only so many
        kinds are told apart in a minute (threat 10). `now`: in seconds.
        """
        minute = int(now // MINUTE_S)
        if minute != self._minute:
            self._minute, self._kinds = minute, {}
        kinds = self._kinds.setdefault(stream.environment, set())
        kind = str(kind_of(stream.user_agent, stream.user_agent_version))
        if len(kinds) < MAX_KINDS:
            kinds.add(kind)
        detail = kind if kind in kinds else REST
        self._counts[TallyKey(stream.environment, What.NACKS, word, detail)] += 1

    def take(self) -> Counter[TallyKey]:
        """The counts since the last call."""
        self._settle()
        taken, self._counts = self._counts, Counter()
        return taken

    def _settle(self) -> None:
        environment, word, errors = self._told
        for error in errors if self._times else ():
            self._counts[TallyKey(environment, What.ERRORS, word, error.code.name)] += self._times
        self._times = 0


class WaitingTallies:
    """Counts that wait to be written, each with the seconds in which they were made, oldest first."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, TallyKey], int] = {}

    def __len__(self) -> int:
        """How many numbers wait."""
        return len(self._counts)

    def add(self, taken: Counter[TallyKey], now: float) -> None:
        """Add counts that were made until `now`, in seconds; the oldest give way where there are too many."""
        step = int(now // _STEP_S)
        for key, count in taken.items():
            self._counts[step, key] = self._counts.get((step, key), 0) + count
        for oldest in list(islice(self._counts, max(len(self._counts) - _MAX_WAITING, 0))):
            del self._counts[oldest]

    def first(self, room: int, now: float) -> Iterator[Tallied]:
        """The first `room` counts, as they are told the database."""
        for (step, key), count in islice(self._counts.items(), room):
            yield Tallied(*key, count, max(now - step * _STEP_S, 0.0))

    def forget(self, count: int) -> None:
        """Drop the first `count` counts, because they are written."""
        for key in list(islice(self._counts, count)):
            del self._counts[key]
