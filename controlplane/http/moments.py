"""Reads points in time as people and pipelines write them. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_AGE: Final = re.compile(r"(\d{1,6})(s|m|h|d)", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment_or_age(text: str, now: datetime) -> datetime | None:
    """The time that an RFC 3339 text names, or that lies so far back: `24h`, `30m`, `90s`, `7d`.

    None where it is neither, and for a time without its offset from UTC: that would be another moment in another place.
    """
    age = _AGE.fullmatch(text)
    try:
        if age is not None:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
