"""Which incident somebody should look at first. Pure."""

from datetime import timedelta
from typing import Final

# A refusal of yesterday counts half of one that comes in now: what goes on is looked at first.
HALF_LIFE: Final = timedelta(days=1)


def urgency(*, nacked: int, sent: int, age: timedelta) -> float:
    """The share of clients that refuse, weighed by how lately one did (ux.md W11). Between 0 and 1.

    Whoever refused was sent it, whether or not that was recorded yet; an incident nobody is counted for is least.
    """
    share = nacked / max(sent, nacked, 1)
    return float(share * 0.5 ** (max(age, timedelta()) / HALF_LIFE))
