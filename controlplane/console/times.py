"""Times as people say them and type them, in the time zone of whoever looks, and as URLs carry them."""

from datetime import UTC, datetime, tzinfo
from typing import Final

from django.http import QueryDict
from django.utils import timezone

from controlplane.common.errors import InputInvalid
from controlplane.common.zones import zone_named
from controlplane.http.moments import clock_problem, moment_typed
from controlplane.listing.frames import TIMES_IN
from xdscore.codes import shown

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))
_NOW_S: Final = 5


def relative(value: datetime, now: datetime) -> str:
    """How far a time is from `now`, in words such as "3 minutes ago". static/console/console.js uses the same words."""
    seconds = (now - value).total_seconds()
    past, distance = seconds >= 0, abs(seconds)
    if distance < _NOW_S:
        return "just now"
    count, unit = int(distance), "second"
    for name, length in _UNITS:
        if distance >= length:
            count, unit = int(distance // length), name
            break
    words = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{words} ago" if past else f"in {words}"


def iso_text(moment: datetime) -> str:
    """The time as RFC 3339 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"


def zone_shown() -> str:
    """The name of the time zone in which this page shows times, such as `Europe/Berlin` or `UTC`."""
    return timezone.get_current_timezone_name()


def clock_text(moment: datetime, *, seconds: bool = False, zone: tzinfo | None = None) -> str:
    """The time as clocks show it in the zone of this page, or in `zone`, with the word of that zone: to the minute, or
    to the second.
    """
    there = moment.astimezone(zone or timezone.get_current_timezone())
    word = there.tzname() or ""
    return f"{there:{'%Y-%m-%d %H:%M:%S' if seconds else '%Y-%m-%d %H:%M'}} {word if word.isalpha() else f'UTC{word}'}"


def field_text(moment: datetime | None, *, seconds: bool = False) -> str:
    """The time as a field for date and time has it, in the zone of this page; empty for none."""
    if moment is None:
        return ""
    there = moment.astimezone(timezone.get_current_timezone())
    return f"{there:{'%Y-%m-%dT%H:%M:%S' if seconds else '%Y-%m-%dT%H:%M'}}"


def zone_given(given: QueryDict) -> tzinfo:
    """The time zone in which a form's times are meant, as its field TIMES_IN says; UTC where it says none. Raises
    InputInvalid for one that there is not.
    """
    name = given.get(TIMES_IN, "").strip()
    zone = zone_named(name) if name else UTC
    if zone is None:
        raise InputInvalid(f"There is no time zone '{shown(name, 60)}'. Nothing was changed.")
    return zone


def moment_given(given: QueryDict, name: str, now: datetime) -> datetime | None:
    """The time that was typed into this field of a form, in the zone that the form says; None where it is empty. Raises
    InputInvalid for what is no time, and for one that clocks there never show, or twice.
    """
    text, zone = given.get(name, "").strip(), zone_given(given)
    if not text:
        return None
    found = moment_typed(text, now, zone)
    if found is None:
        unclear = clock_problem(text, zone) or f"'{shown(text, 40)}' is no time, such as 2026-12-31T23:59."
        raise InputInvalid(f"{unclear} Nothing was changed.")
    return found
