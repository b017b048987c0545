"""Times as people say them."""

from datetime import datetime
from typing import Final

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
