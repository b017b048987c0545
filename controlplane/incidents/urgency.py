"""Which incident somebody should look at first. Pure."""

from datetime import timedelta
from typing import Final

# A refusal of yesterday counts half of one that comes in now: what goes on is looked at first.
HALF_LIFE: Final = timedelta(days=1)


def urgency(*, nacked: int, sent: int, age: timedelta, lost: bool = False) -> float:
    """How urgent an incident is: the share of clients that refuse, weighed by how lately one did (texts.md W11). From 0
    to 1; a loss is 1 more.

    Whoever refused was sent it, whether or not that was recorded yet; an incident nobody is counted for is least. What
    clients lost comes before what they refuse: who refuses goes on with what it had.
    """
    share = nacked / max(sent, nacked, 1)
    return float(share * 0.5 ** (max(age, timedelta()) / HALF_LIFE)) + lost
