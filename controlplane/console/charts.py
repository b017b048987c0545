"""Pictures over time, as pages show them: lines, a sentence that says what is seen, and a table of the same numbers.

The table is all there is without scripts; static/console/chart.js draws from it, so that the two cannot differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controlplane.clients.clock import database_now
from controlplane.history.convergence import Convergence
from controlplane.history.selectors import counted_series, fleet_series, history_kept, tally_series
from controlplane.history.series import Series, Sum, Value, Window, WindowInvalid, most, window_of
from controlplane.history.values import REST, What
from controlplane.rollouts.values import VerdictView

# What a page shows without being asked: three hours, minute by minute.
RECENT: Final = timedelta(hours=3)
DAY: Final = timedelta(hours=24)
# Lines that eyes tell apart in one picture; each has a pattern of dashes of its own, in console.css.
_MAX_LINES: Final = 6
_TONES: Final[Mapping[str, str]] = {
    "acked": "good",
    "sent": "busy",
    "requested": "warn",
    "nacked": "bad",
    "disconnected": "off",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a picture. `tone`: its colour and dashes, the last part of a class in console.css."""

    label: str
    tone: str


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of one moment. `x`: seconds since 1970, or since a change was published; `label`: the same in words;
    `cells`: a text for each line.
    """

    x: float
    label: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture. `key`: its id on the page. `says`: sentences about what is seen. `measure`: what a number counts.

    `rows`: newest first; empty where the sentences say everything. `clock`: whether `x` is a time of day; else seconds
        since `since`, in words.
    """

    key: str
    title: str
    says: tuple[str, ...]
    measure: str
    lines: tuple[Line, ...] = ()
    rows: tuple[Row, ...] = ()
    clock: bool = True
    since: str = "it was published"


def recent(length: timedelta = RECENT) -> Window:
    """The window of the last `length` up to now, in steps that make a readable picture."""
    now = database_now()
    return window_of(now, now - length, None, 0, history_kept())


def fleet_chart(environment_keys: Sequence[str], window: Window) -> Chart:
    """The clients of these environments by state, added up."""
    series = fleet_series(environment_keys=environment_keys, window=window)
    return fleet_picture(series, window)


def fleet_picture(series: Sequence[Series], window: Window) -> Chart:
    """The picture of clients by state. A state in which nobody was is left out."""
    title, measure = "Clients by state", "clients"
    drawn = [each for each in series if each.total]
    if not drawn:
        known = any(value is not None for each in series for value in each.values)
        nobody = "No client is known" if known else "Clients were not counted"
        return Chart("fleet", title, (f"{nobody} {_span(window)}.",), measure)
    last = max(place for place, value in enumerate(drawn[0].values) if value is not None)
    stood = ", ".join(f"{_number(each.values[last])} {each.label}" for each in drawn if each.values[last])
    says = [f"At {_clock(window.starts[last], window)}: {stood or 'nobody'}."]
    refused = next((each for each in drawn if each.label == "nacked"), None)
    if refused is not None:
        most_, place = _peak(refused.values)
        says.append(f"Most that refused something: {_number(most_)} at {_clock(window.starts[place], window)}.")
    says.extend(_gaps(drawn[0].values, window))
    lines = tuple(Line(each.label, _TONES[each.label]) for each in drawn)
    return Chart("fleet", title, tuple(says), measure, lines, _rows(drawn, window))


def nacks_chart(environment_keys: Sequence[str], window: Window) -> Chart:
    """The NACKs in these environments by type."""
    series = tally_series(what=What.NACKS, by="type", environment_keys=environment_keys, window=window)
    return counts_picture("nacks", f"NACKs {_each(window)}, by type", "NACK", series, window)


def kinds_chart(environment_keys: Sequence[str], window: Window) -> Chart:
    """The NACKs in these environments by kind of client."""
    series = tally_series(what=What.NACKS, by="detail", environment_keys=environment_keys, window=window)
    return counts_picture("kinds", f"NACKs {_each(window)}, by kind of client", "NACK", series, window)


def errors_chart(environment_keys: Sequence[str], window: Window) -> Chart:
    """The resource errors that clients of these environments were told, by code."""
    series = tally_series(what=What.ERRORS, by="detail", environment_keys=environment_keys, window=window)
    return counts_picture("errors", f"Errors told {_each(window)}, by code", "error", series, window)


def kept_nacks_chart(rows: Sequence[Sum], window: Window, *, label: str) -> Chart:
    """The NACKs of which the rows are still kept, those of the step that is not over yet among them; `label` says what
    their keys are.
    """
    window = window.running
    series = counted_series(label=label, rows=rows, window=window)
    chart = counts_picture("nacks", f"NACKs {_each(window)}", "NACK", series, window)
    if not chart.rows:
        return chart
    note = "Of each client and type the newest few are kept, so there may have been more."
    return Chart(chart.key, chart.title, (*chart.says, note), chart.measure, chart.lines, chart.rows)


def since_chart(rows: Sequence[Sum], first: datetime, last: datetime, *, label: str) -> Chart | None:
    """The kept NACKs of something that went on from `first` to `last`, at most the last day of it; None where it is so
    long ago that nothing of it is kept, or so short that nothing can be drawn yet.
    """
    now = database_now()
    around = timedelta(minutes=10)
    until = min(now, last + around)
    try:
        window = window_of(now, max(first - around, until - DAY), until, 0, history_kept())
    except WindowInvalid:
        return None
    return kept_nacks_chart(rows, window, label=label)


def counts_picture(key: str, title: str, one: str, series: Sequence[Series], window: Window) -> Chart:
    """A picture of how often something happened that is called `one`; of many lines the smallest are one."""
    drawn = [each for each in most(series, _MAX_LINES - 1) if each.total]
    measure = f"{one}s"
    if not drawn:
        known = any(value is not None for each in series for value in each.values)
        if not known:
            return Chart(key, title, (f"Nothing is known of the time {_span(window)}.",), measure)
        return Chart(key, title, (f"No {one} {_span(window)}.", *_gaps(series[0].values, window)), measure)
    sums = [_sum(step) for step in zip(*(each.values for each in drawn), strict=True)]
    total = sum(value for value in sums if value is not None)
    peak, place = _peak(sums)
    last = max(at for at, value in enumerate(sums) if value)
    says = (
        f"{_number(total)} {one}{'' if total == 1 else 's'} {_span(window)}.",
        f"Most at {_clock(window.starts[place], window)}: {_number(peak)}.",
        f"Last at {_clock(window.starts[last], window)}.",
        *_gaps(sums, window),
    )
    lines = tuple(
        Line(each.label, "rest" if each.label == REST else f"line-{number}") for number, each in enumerate(drawn, 1)
    )
    return Chart(key, title, says, measure, lines, _rows(drawn, window))


def convergence_chart(found: Convergence) -> Chart:
    """How a change came to its clients."""
    title, measure = "How the change spread", "clients"
    if not found.took:
        return Chart("convergence", title, (f"None of {_clients(found.of)} has taken it.",), measure)
    reached = [
        f"{share} after {_seconds(second)}" if second is not None else f"{share} not yet"
        for share, second in (("half", found.p50_s), ("99 %", found.p99_s))
    ]
    says = (
        f"{found.took} of {_clients(found.of)} took it: {', '.join(reached)}, the last after {_seconds(found.last_s)}.",
        *((f"{found.waiting} {'has' if found.waiting == 1 else 'have'} not.",) if found.waiting else ()),
    )
    # A single point is no picture.
    steps = found.steps if len(found.steps) > 1 else ()
    rows = tuple(Row(second, _seconds(second), (str(have),)) for second, have in reversed(steps))
    return Chart("convergence", title, says, measure, (Line("took it", "good"),), rows, clock=False)


def rollout_chart(verdicts: Sequence[VerdictView]) -> Chart | None:
    """What the cohort of a rollout said while it went on; None where nothing was looked at yet."""
    if not verdicts:
        return None
    began, last = verdicts[0].at, verdicts[-1]
    counts = last.counts
    says = (
        f"After {_seconds((last.at - began).total_seconds())}: {_clients(counts.exposed)} asked for it.",
        f"{counts.acked} took it, {counts.refused} refused, {counts.silent} silent.",
    )
    lines = (Line("asked", "busy"), Line("took it", "good"), Line("refused", "bad"), Line("silent", "warn"))
    rows = [
        Row(second, _seconds(second), tuple(map(str, (count.exposed, count.acked, count.refused, count.silent))))
        for each in verdicts
        for second, count in [((each.at - began).total_seconds(), each.counts)]
    ]
    # A single point is no picture.
    drawn = tuple(reversed(rows)) if len(rows) > 1 else ()
    return Chart("rollout", "What they said", says, "clients", lines, drawn, clock=False, since="it began")


def _clients(count: int) -> str:
    return f"{count} client{'' if count == 1 else 's'}"


def _rows(series: Sequence[Series], window: Window) -> tuple[Row, ...]:
    columns = [each.values for each in series]
    return tuple(
        Row(at.timestamp(), _clock(at, window), tuple(_number(column[place]) for column in columns))
        for place, at in reversed(list(enumerate(window.starts)))
    )


def _peak(values: Sequence[Value]) -> tuple[float, int]:
    """The greatest value and where it stands first."""
    known = [(value, -place) for place, value in enumerate(values) if value is not None]
    value, place = max(known)
    return value, -place


def _sum(values: Sequence[Value]) -> Value:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _gaps(values: Sequence[Value], window: Window) -> tuple[str, ...]:
    unknown = sum(value is None for value in values)
    if not unknown:
        return ()
    return (f"Nothing is known of {_length(unknown * window.step_s)} of this time: there the lines have a gap.",)


def _number(value: Value) -> str:
    """A number as people read it; of what nobody knows, a question mark."""
    if value is None:
        return "?"
    return f"{value:.1f}".removesuffix(".0")


def _span(window: Window) -> str:
    return f"from {_clock(window.since, window)} to {_clock(window.until, window)} UTC"


def _clock(at: datetime, window: Window) -> str:
    """The time of day in UTC; with the date where the window has more than one day."""
    whole = window.until - window.since > timedelta(hours=12)
    return f"{at:%d %b %H:%M}" if whole else f"{at:%H:%M}"


def _each(window: Window) -> str:
    return "a minute" if window.step_s == 60 else f"in {_length(window.step_s)}"


def _length(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds // 60} min"


def _seconds(second: float | None) -> str:
    return "never" if second is None else f"{second:.2f}".rstrip("0").removesuffix(".") + " s"
