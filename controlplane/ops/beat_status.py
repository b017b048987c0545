"""Whether beat does what it is for: it sends."""

import time
from collections.abc import Callable
from typing import Final

from xdscore.status_http import Readiness

# It sends each second.
SILENT_S: Final = 30.0


class Sending:
    """Remembers when beat last sent a message. Beat tells it, any thread may ask."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at = clock()
        self._sent_at: float | None = None

    def sent(self, **_arguments: object) -> None:
        """Note that the broker took a message (Celery's signal `after_task_publish`)."""
        self._sent_at = self._clock()

    def readiness(self) -> Readiness:
        """Beat is ready while messages are sent; else the reason says since when none was."""
        now, sent_at = self._clock(), self._sent_at
        if sent_at is None:
            since = now - self._began_at
            return Readiness((f"nothing was sent yet, for {since:.0f} s: does the broker answer (REDIS_URL)?",))
        if now - sent_at > SILENT_S:
            return Readiness((f"nothing was sent for {now - sent_at:.0f} s: does the broker answer (REDIS_URL)?",))
        return Readiness()
