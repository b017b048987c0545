"""Time zones by their names, and what a clock there says. Pure but for the table of zones, which the machine has."""

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

MAX_ZONE_CHARS: Final = 64


@lru_cache(maxsize=1024)
def zone_named(name: str) -> ZoneInfo | None:
    """The time zone with this name of the IANA's table, such as `Europe/Berlin`; None where there is none."""
    if not name or len(name) > MAX_ZONE_CHARS:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None


def instant(clock: datetime, zone: tzinfo) -> datetime | None:
    """The time, in UTC, at which clocks in this zone show `clock`, which has no offset; None where they never do, or do
    twice, because they are put forward or back.
    """
    first, second = (clock.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first if first == second else None


def instant_problem(clock: datetime, zone: tzinfo) -> str:
    """Why `instant` names no time, as a sentence; empty where it does."""
    if instant(clock, zone) is not None:
        return ""
    said = f"On {clock:%Y-%m-%d} clocks in {zone}"
    first, second = (clock.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    # A time that clocks skip comes back as another one.
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != clock:
        return f"{said} are put forward and never show {clock:%H:%M}: give another time."
    return (
        f"{said} are put back and show {clock:%H:%M} twice: give a time outside that hour, or one with its offset from "
        f"UTC, {_with_offset(first)} or {_with_offset(second)}."
    )


def _with_offset(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")
