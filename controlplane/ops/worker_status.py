"""Whether a worker works: its sweeper looks for changes to build, which needs the database alone."""

import time
from collections.abc import Callable
from functools import update_wrapper
from typing import Final

from controlplane.broker.probe import ANSWERS, probe
from xdscore.status_http import Readiness

# A round of the sweeper lasts as long as a build may: 60 s, the tasks' limit.
SILENT_S: Final = 120.0


class Watched:
    """Runs the sweeper's job of looking for changes, and remembers how it went. The sweeper calls it, any thread may
    ask.
    """

    def __init__(self, look: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> None:
        update_wrapper(self, look)
        self._look = look
        self._clock = clock
        self._well_at: float | None = None
        self._failing_since: float | None = None

    def __call__(self) -> None:
        """Look for changes once. An error is raised again, for the sweeper to log."""
        try:
            self._look()
        except Exception:
            if self._failing_since is None:
                self._failing_since = self._clock()
            raise
        self._well_at, self._failing_since = self._clock(), None

    def readiness(self) -> Readiness:
        """The worker is ready while changes are looked for; else the reason says since when they are not. The broker
        only makes them found sooner (law 4).
        """
        broker = probe.state()
        return Readiness(self._reasons(), () if broker == ANSWERS else (f"broker: {broker}",))

    def _reasons(self) -> tuple[str, ...]:
        now, well_at, failing_since = self._clock(), self._well_at, self._failing_since
        if failing_since is not None:
            since_s = now - failing_since
            return (f"looking for changes to build fails since {since_s:.0f} s; the log says why (sweep.failed)",)
        if well_at is None:
            return ("starting: changes to build were not looked for yet",)
        if now - well_at > SILENT_S:
            return (f"changes to build were last looked for {now - well_at:.0f} s ago",)
        return ()
