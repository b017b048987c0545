"""How long to wait before a process is started again. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """How long to wait before a process is started again. The time doubles, from `first_s` up to `last_s` seconds;
    after a run of at least `healthy_s` seconds it is `first_s` again.
    """

    first_s: float = 1.0
    last_s: float = 30.0
    healthy_s: float = 60.0
    _next_s: float = 0.0

    def after(self, uptime_s: float) -> float:
        """The seconds to wait before the next start, after a run that lasted `uptime_s` seconds."""
        if uptime_s >= self.healthy_s or not self._next_s:
            self._next_s = self.first_s
        wait_s = self._next_s
        self._next_s = min(self._next_s * 2, self.last_s)
        return wait_s
