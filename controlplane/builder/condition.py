"""Says whether changes are built."""

from typing import Final

from django.utils import timezone

from controlplane.catalog.selectors import oldest_waiting

# Quiet time (2 s at most), a build, and twice the sweeper's interval: later than this nobody is building.
LATE_S: Final = 10.0

BUILDS: Final = "ok"


def builder_state() -> str:
    """The builder's state for status pages: `ok`, or a sentence with the age of the oldest change that waits, whichever
    worker should build it.
    """
    waiting = oldest_waiting()
    age_s = (timezone.now() - waiting).total_seconds() if waiting is not None else 0.0
    if age_s <= LATE_S:
        return BUILDS
    return f"a change waits for a build since {age_s:.0f} s; is a worker running?"
