"""Times to come, as people write them on the command line."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_FROM_NOW: Final = re.compile(r"(\d{1,5})(m|h|d)", re.ASCII)
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


def time_to_come(text: str) -> str | None:
    """The time in RFC 3339 that a text stands for: one counted from now, such as 90m, 12h or 30d, or the time itself,
    which the server judges. None for an empty text.
    """
    match = _FROM_NOW.fullmatch(text)
    if match is None:
        return text or None
    return (datetime.now(UTC) + timedelta(**{_UNITS[match[2]]: int(match[1])})).isoformat(timespec="seconds")
