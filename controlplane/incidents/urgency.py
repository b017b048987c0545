"""Which incident somebody should look at first. Pure."""

from datetime import timedelta
from typing import Final

# A refusal of yesterday counts half of one that comes in now: what goes on is looked at first.
HALF_LIFE: Final = timedelta(days=1)


def urgency(*, nacked: int, sent: int, age: timedelta, lost: bool = False) -> float:
    """How urgent an incident is, from 0 to 1: the share of clients that refuse, less the longer ago (`age`) the last
    refusal was (texts.md W11). For a loss, 1 more: it comes first, because a client that refuses goes on with what it
    had.

    Clients that refuse count as sent, even if that is not recorded yet. An incident without any client has 0.
    """
    share = nacked / max(sent, nacked, 1)
    return float(share * 0.5 ** (max(age, timedelta()) / HALF_LIFE)) + lost
