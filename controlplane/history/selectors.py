"""Answers what happened over time, as series. Values only, never rows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Sum as Added

from controlplane.history.models import FleetSample, ReportedSpan, Tally
from controlplane.history.series import (
    Kept,
    Looks,
    Series,
    Sum,
    Value,
    Window,
    averaged,
    most,
    summed,
)
from controlplane.history.values import STATES, What


def history_kept() -> Kept:
    """For how long history is kept by the minute, and for how long at all."""
    limits = settings.PARLEY.limits
    return Kept(timedelta(hours=limits.history_minutes_h), timedelta(days=limits.history_days))


def fleet_series(*, environment_keys: Collection[str], window: Window) -> tuple[Series, ...]:
    """How many clients of these environments stood in each state, added up, in each step: one series for each state. A
    step is None where the clients of none of them were counted.
    """
    looks: dict[int, list[Looks]] = defaultdict(list)
    rows = FleetSample.objects.filter(
        environment__key__in=list(environment_keys), at__gte=window.since, at__lt=window.until
    )
    for environment, at, samples, *sums in rows.values_list("environment_id", "at", "samples", *STATES):
        looks[environment].append(Looks(at, samples, tuple(sums)))
    by_environment = [averaged(window, each, STATES) for each in looks.values()]
    unknown: tuple[Value, ...] = (None,) * window.points
    return tuple(
        Series(
            {"state": state},
            tuple(map(_total, zip(*(each[state] for each in by_environment), strict=True)))
            if by_environment
            else unknown,
        )
        for state in STATES
    )


def tally_series(*, what: What, by: str, environment_keys: Collection[str], window: Window) -> tuple[Series, ...]:
    """How many NACKs or errors there were in these environments in each step, told apart by `by`: the column `type` or
    `detail`. Most first; behind the first few, the rest is one series.
    """
    rows = Tally.objects.filter(
        environment__key__in=list(environment_keys), what=what.value, at__gte=window.since, at__lt=window.until
    )
    counted = rows.order_by().values_list("at", by).annotate(added=Added("count"))
    label = "type" if by == "type" else DETAILS[what]
    return counted_series(label=label, rows=(Sum(*row) for row in counted), window=window)


# What the column `detail` is called by those who read it.
DETAILS = {What.NACKS: "kind", What.ERRORS: "code"}


def counted_series(*, label: str, rows: Iterable[Sum], window: Window) -> tuple[Series, ...]:
    """How many of these rows there were in each step, told apart by their keys, which `label` says what they are;
    where nothing was counted it is 0 while ADS processes reported, else None.
    """
    return most([Series({label: key}, values) for key, values in summed(window, rows, _reported(window)).items()])


def _reported(window: Window) -> Iterator[datetime]:
    return (
        ReportedSpan.objects.filter(at__gte=window.since, at__lt=window.until).values_list("at", flat=True).iterator()
    )


def _total(values: tuple[Value, ...]) -> Value:
    known = [value for value in values if value is not None]
    return round(sum(known), 1) if known else None
