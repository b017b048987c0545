"""Makes series of rows: what stands in each step of a window, and where nobody knows. Pure.

A gap is a gap: a step of which no row tells anything is None, never zero (truth.md H6).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from controlplane.history.values import LONG_S, MAX_KINDS, MINUTE_S, REST

MAX_POINTS: Final = 1_500
# As many as a picture shows apart, and as a table of them can be read.
_FEW_POINTS: Final = 360
# Steps that people think in, in seconds. Each is a multiple of the one before it that rows are kept in.
STEPS_S: Final = (60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400)

Value = float | None


class WindowInvalid(Exception):
    """A window of time cannot be drawn. `field`: what of it is wrong: `from`, `until` or `step`; the text goes on with
    the problem, after that word.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True, slots=True)
class Window:
    """A time cut into steps of `step_s` seconds: from `since`, which is the beginning of a step, to `until`, which is
    the end of one.
    """

    since: datetime
    until: datetime
    step_s: int

    @property
    def points(self) -> int:
        """The number of steps."""
        return int((self.until - self.since).total_seconds()) // self.step_s

    @property
    def starts(self) -> tuple[datetime, ...]:
        """The beginning of each step."""
        return tuple(self.since + timedelta(seconds=each * self.step_s) for each in range(self.points))

    @property
    def running(self) -> "Window":
        """The window with one step more at its end, which may not be over yet: for what is known at once."""
        return replace(self, until=self.until + timedelta(seconds=self.step_s))

    def index(self, at: datetime) -> int | None:
        """The place of the step in which `at` lies; None outside of the window."""
        place = int((at - self.since).total_seconds() // self.step_s)
        return place if 0 <= place < self.points else None


class Series(NamedTuple):
    """One line of a picture: what it is of, by label, and its value in each step; None: not known."""

    labels: Mapping[str, str]
    values: tuple[Value, ...]

    @property
    def label(self) -> str:
        """What the line is of, in one word."""
        return " ".join(self.labels.values())

    @property
    def total(self) -> float:
        """The sum of the values that are known."""
        return sum(value for value in self.values if value is not None)


class Sum(NamedTuple):
    """How many of something there were in the row that begins `at`; `key`: by which it is told apart."""

    at: datetime
    key: str
    times: int


class Looks(NamedTuple):
    """The sums of `samples` looks in the row that begins `at`, one for each name of a series."""

    at: datetime
    samples: int
    sums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """For how long rows of a minute, and those of ten, are kept."""

    minutes: timedelta
    longer: timedelta


def floor(at: datetime, step_s: int) -> datetime:
    """The beginning of the step of `step_s` seconds in which `at` lies; steps are counted from 1970."""
    seconds = int(at.timestamp())
    return datetime.fromtimestamp(seconds - seconds % step_s, tz=UTC)


def window_of(now: datetime, since: datetime, until: datetime | None, step_s: int, kept: Kept) -> Window:
    """The window between these times in steps of `step_s` seconds; 0: in steps that make a readable picture.

    It ends before the step that is not over yet, whose numbers still grow. Raises WindowInvalid.
    """
    ends = min(until or now, now)
    if since >= ends:
        raise WindowInvalid("from", "must be earlier than the end, and not in the future")
    if since < now - kept.longer - timedelta(seconds=LONG_S):
        raise WindowInvalid("from", f"is longer ago than is kept: {kept.longer.days} days")
    finest = finest_step(now, since, kept)
    if step_s == 0:
        length = (ends - since).total_seconds()
        step_s = next((each for each in STEPS_S if each >= finest and length / each <= _FEW_POINTS), STEPS_S[-1])
    elif step_s < finest or step_s % finest:
        raise WindowInvalid("step", f"must be a multiple of {finest} s: no more is kept of a time so long ago")
    window = Window(floor(since, step_s), floor(ends, step_s), step_s)
    if window.points > MAX_POINTS:
        raise WindowInvalid("step", f"makes {window.points} points; at most {MAX_POINTS} are told at once")
    if window.points < 1:
        raise WindowInvalid("from", "leaves no whole step before the end")
    return window


def finest_step(now: datetime, since: datetime, kept: Kept) -> int:
    """The shortest step in seconds in which everything from `since` on is kept."""
    return MINUTE_S if floor(since, MINUTE_S) >= now - kept.minutes - timedelta(seconds=MINUTE_S) else LONG_S


def summed(window: Window, rows: Iterable[Sum], known: Iterable[datetime]) -> dict[str, tuple[Value, ...]]:
    """For each key of the rows, how many there were in each step. Where nothing was counted it is 0 in steps in which
    something is known (`known`: beginnings of rows), else None. Without any row, `REST` stands there alone, so that
    nothing and not known stay two things.
    """
    told = {place for at in known if (place := window.index(at)) is not None}
    sums: dict[str, dict[int, int]] = {}
    for at, key, times in rows:
        place = window.index(at)
        if place is not None:
            told.add(place)  # who counted something was there
            counts = sums.setdefault(key, {})
            counts[place] = counts.get(place, 0) + times
    return {key: tuple(_of_steps(window, told, counts)) for key, counts in (sums or {REST: {}}).items()}


def _of_steps(window: Window, told: set[int], counts: Mapping[int, int]) -> Iterator[Value]:
    return (counts.get(place, 0) if place in told else None for place in range(window.points))


def averaged(window: Window, rows: Iterable[Looks], names: Sequence[str]) -> dict[str, tuple[Value, ...]]:
    """For each name, the average over the looks of each step, to a tenth; None in a step without a look."""
    samples = [0] * window.points
    sums = [[0] * window.points for _ in names]
    for at, looks, counts in rows:
        place = window.index(at)
        if place is not None:
            samples[place] += looks
            for each, count in zip(sums, counts, strict=True):
                each[place] += count
    return {
        name: tuple(round(total / looks, 1) if looks else None for total, looks in zip(each, samples, strict=True))
        for name, each in zip(names, sums, strict=True)
    }


def most(series: Sequence[Series], room: int = MAX_KINDS) -> tuple[Series, ...]:
    """The `room` series with the greatest sums, greatest first, and behind them the rest as one series (`REST`).

    All must be told apart by one label. A series that is called like the rest is taken for part of it.
    """
    ranked = sorted((each for each in series if each.label != REST), key=lambda each: (-each.total, each.label))
    rest = [*ranked[room:], *(each for each in series if each.label == REST)]
    if not rest:
        return tuple(ranked)
    (label,) = rest[0].labels
    steps = zip(*(each.values for each in rest), strict=True)
    return (*ranked[:room], Series({label: REST}, tuple(_added(step) for step in steps)))


def _added(values: Iterable[Value]) -> Value:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
