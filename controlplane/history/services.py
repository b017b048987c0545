"""Writes history, and lets it grow coarse and go (truth.md H6).

Counts of several ADS processes add up, so that each writes what it saw and nobody has to know of all.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from django.db import connection, models, transaction
from django.db.backends.utils import CursorWrapper

from controlplane.history.models import FleetSample, ReportedSpan, Tally
from controlplane.history.selectors import history_kept
from controlplane.history.series import floor
from controlplane.history.values import LONG_S, MINUTE_S, STATES, FleetStates, Tallied

# How many stretches of ten minutes one call makes coarse: a day that nobody pruned takes four calls.
_STRETCHES: Final = 36
_BATCH: Final = 2_000
_Row = FleetSample | Tally | ReportedSpan
_ROWS: Final[tuple[type[_Row], ...]] = (FleetSample, Tally, ReportedSpan)

_TALLY: Final = """
    INSERT INTO history_tally (environment_id, what, span_s, at, type, detail, count)
    SELECT environment.id, %s, %s, %s, %s, %s, %s FROM catalog_environment AS environment WHERE environment.key = %s
    ON CONFLICT (environment_id, what, span_s, at, type, detail)
    DO UPDATE SET count = history_tally.count + excluded.count
"""
_LONG_TALLY: Final = """
    INSERT INTO history_tally (environment_id, what, span_s, at, type, detail, count)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (environment_id, what, span_s, at, type, detail)
    DO UPDATE SET count = history_tally.count + excluded.count
"""
_REPORTED: Final = "INSERT INTO history_reportedspan (span_s, at) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_COLUMNS: Final = ("samples", *STATES)
# Whoever deletes a row has its numbers; nobody else can.
_TAKE_TALLIES: Final = """
    DELETE FROM history_tally WHERE span_s = %s AND at >= %s AND at < %s
    RETURNING environment_id, what, type, detail, count
"""
_TAKE_SAMPLES: Final = f"""
    DELETE FROM history_fleetsample WHERE span_s = %s AND at >= %s AND at < %s
    RETURNING environment_id, {", ".join(_COLUMNS)}
"""  # noqa: S608 - the names of columns, from this code
_TAKE_REPORTED: Final = "DELETE FROM history_reportedspan WHERE span_s = %s AND at >= %s AND at < %s"
_LONG_SAMPLE: Final = f"""
    INSERT INTO history_fleetsample (environment_id, span_s, at, {", ".join(_COLUMNS)})
    VALUES (%s, %s, %s, {", ".join("%s" for _ in _COLUMNS)})
    ON CONFLICT (environment_id, span_s, at)
    DO UPDATE SET {", ".join(f"{each} = history_fleetsample.{each} + excluded.{each}" for each in _COLUMNS)}
"""  # noqa: S608 - the names of columns, from this code


def tallies_add(cursor: CursorWrapper, tallies: Iterable[Tallied], now: datetime) -> None:
    """Add what an ADS process counted, and that it reported, as part of the caller's transaction. `now` is the time by
    the database's clock. What was counted in an environment that is gone writes nothing.
    """
    minute = _adapted(floor(now, MINUTE_S))
    cursor.execute(_REPORTED, [MINUTE_S, minute])
    counts: dict[tuple[str, str, datetime, str, str], int] = defaultdict(int)
    for environment, what, word, detail, count, age_s in tallies:
        at = floor(now - timedelta(seconds=max(age_s, 0.0)), MINUTE_S)
        counts[environment, what.value, at, word, detail] += count
    if counts:
        # In the order of keys, so that two processes never wait for each other.
        cursor.executemany(
            _TALLY,
            [
                (what, MINUTE_S, _adapted(at), word, detail, count, environment)
                for (environment, what, at, word, detail), count in sorted(counts.items())
            ],
        )


def fleet_sampled(*, now: datetime) -> bool:
    """Whether some process has counted the clients in this minute. `now` is the time by the database's clock."""
    return FleetSample.objects.filter(span_s=MINUTE_S, at=floor(now, MINUTE_S)).exists()


def fleet_sample_add(*, states: Mapping[int, FleetStates], now: datetime) -> None:
    """Store how many clients stand in each state at `now`, by environment id. Where another process has stored this
    minute, its numbers stay.
    """
    at = floor(now, MINUTE_S)
    rows = [
        FleetSample(
            environment_id=environment,
            span_s=MINUTE_S,
            at=at,
            samples=1,
            **{name: getattr(each, name) for name in STATES},
        )
        for environment, each in sorted(states.items())
    ]
    FleetSample.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)


def history_prune(*, now: datetime) -> int:
    """Turn rows of a minute that are old into rows of ten, and delete what is too old altogether; returns how many rows
    were deleted. One call does a bounded part. `now` is the time by the database's clock.

    It may run in several processes at once: whoever deletes a row adds it to the longer one.
    """
    kept = history_kept()
    pruned = sum(_delete(rows, now - kept.longer) for rows in _ROWS)
    old = floor(now - kept.minutes, LONG_S)
    firsts = (rows.objects.filter(span_s=MINUTE_S, at__lt=old).aggregate(at=models.Min("at"))["at"] for rows in _ROWS)
    start = min((floor(at, LONG_S) for at in firsts if at is not None), default=old)
    for _ in range(_STRETCHES):
        if start >= old:
            break
        pruned += _thin(start)
        start += timedelta(seconds=LONG_S)
    return pruned


def _delete(rows: type[_Row], before: datetime) -> int:
    deleted: int = rows.objects.filter(span_s__in=(MINUTE_S, LONG_S), at__lt=before).delete()[0]
    return deleted


def _thin(start: datetime) -> int:
    """Turn the rows of a minute of the ten minutes from `start` on into longer ones; returns how many there were."""
    ends, at = start + timedelta(seconds=LONG_S), _adapted(start)
    of_these = [MINUTE_S, at, _adapted(ends)]
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(_TAKE_TALLIES, of_these)
        tallies = cursor.fetchall()
        cursor.execute(_TAKE_SAMPLES, of_these)
        samples = cursor.fetchall()
        cursor.execute(_TAKE_REPORTED, of_these)
        reported = cursor.rowcount
        cursor.executemany(
            _LONG_TALLY,
            [
                (environment, what, LONG_S, at, word, detail, count)
                for (environment, what, word, detail), (count,) in sorted(_added(tallies, 4).items())
            ],
        )
        cursor.executemany(
            _LONG_SAMPLE,
            [(environment, LONG_S, at, *sums) for (environment,), sums in sorted(_added(samples, 1).items())],
        )
        if reported:
            cursor.execute(_REPORTED, [LONG_S, at])
    return len(tallies) + len(samples) + int(reported)


def _added(rows: Iterable[tuple[Any, ...]], key: int) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """The rows with equal first `key` columns as one: the columns behind those added up."""
    sums: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for row in rows:
        before = sums.get(row[:key], (0,) * (len(row) - key))
        sums[row[:key]] = tuple(one + other for one, other in zip(before, row[key:], strict=True))
    return sums


def _adapted(at: datetime) -> datetime | str:
    """The time in the form that the database takes: a string for SQLite, the time itself for PostgreSQL."""
    return cast("datetime | str", connection.ops.adapt_datetimefield_value(at))
