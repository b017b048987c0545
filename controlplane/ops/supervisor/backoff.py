"""How long to wait before a process is started again. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """How long to wait between starts of a process: doubles from `first_s` to `last_s`; a process that ran for
    `healthy_s` starts over.
    """

    first_s: float = 1.0
    last_s: float = 30.0
    healthy_s: float = 60.0
    _next_s: float = 0.0

    def after(self, uptime_s: float) -> float:
        """The seconds to wait after a run that lasted `uptime_s`."""
        if uptime_s >= self.healthy_s or not self._next_s:
            self._next_s = self.first_s
        wait_s = self._next_s
        self._next_s = min(self._next_s * 2, self.last_s)
        return wait_s
