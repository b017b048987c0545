"""Times as people say them and type them, and as URLs carry them."""

from datetime import UTC, datetime
from typing import Final

from controlplane.http.moments import moment_typed

__all__ = ["iso_text", "moment_typed", "relative"]

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
