"""Reads points in time as people and pipelines write them. Pure."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from controlplane.common.zones import instant, instant_problem

_SPAN: Final = re.compile(r"(\d{1,6})(s|m|h|d|w)", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment_named(text: str) -> datetime | None:
    """The RFC 3339 time that a text names, in UTC.

    None where it is none, and for a time without an offset from UTC, which would mean different times in different
    places.
    """
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def moment_or_age(text: str, now: datetime) -> datetime | None:
    """The time that a text names: an RFC 3339 time, as `moment_named` reads it, or how long before `now`, such as
    `24h`, `30m`, `90s` or `7d`. None where it is neither.
    """
    return _moved(text, now, -1)


def moment_or_span(text: str, now: datetime) -> datetime | None:
    """The time that a text names: an RFC 3339 time, as `moment_named` reads it, or how long after `now`, such as `8h`
    or `1w`. None where it is neither.
    """
    return _moved(text, now, 1)


def moment_typed(text: str, now: datetime, zone: tzinfo = UTC) -> datetime | None:
    """The time that somebody typed into a field: as `moment_or_age` reads it, also with a blank in an age (`2 h`); and
    a date, or a time without an offset, which browsers send, as clocks in `zone` show it. None where it is no time, or
    where those clocks never show it, or twice (`clock_problem`).
    """
    compact = "".join(text.split())
    if _SPAN.fullmatch(compact):
        return moment_or_age(compact, now)
    try:
        found = datetime.fromisoformat(text.strip())
        return found.astimezone(UTC) if found.tzinfo is not None else instant(found, zone)
    except (ValueError, OverflowError):
        return None


def clock_problem(text: str, zone: tzinfo) -> str:
    """Why a time without an offset is not to be understood in `zone`, as a sentence: clocks there never show it, or
    twice. Empty for every other text.
    """
    try:
        found = datetime.fromisoformat(text.strip())
        return instant_problem(found, zone) if found.tzinfo is None else ""
    except (ValueError, OverflowError):
        return ""


def _moved(text: str, now: datetime, sign: int) -> datetime | None:
    span = _SPAN.fullmatch(text)
    if span is None:
        return moment_named(text)
    try:
        return now + sign * timedelta(**{_UNITS[span[2]]: int(span[1])})
    except OverflowError:
        return None
