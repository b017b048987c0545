"""The token bucket: a rate on average, a burst at once. Pure; the time is the caller's."""


class TokenBucket:
    """`rate_per_s` on average, `burst` at once. One thread at a time."""

    __slots__ = ("_burst", "_level", "_rate", "_seen")

    def __init__(self, rate_per_s: float, burst: float, now: float) -> None:
        self._rate = rate_per_s
        self._burst = burst
        self._level = burst
        self._seen = now

    def take(self, now: float) -> float:
        """Take one, on credit if need be; the seconds to wait before it may be used. For whoever can make others
        wait.
        """
        self._fill(now)
        self._level -= 1
        return max(0.0, -self._level / self._rate)

    def try_take(self, now: float) -> float:
        """Take one if there is one (0.0), else the seconds until there is. For whoever can only refuse."""
        self._fill(now)
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self._rate

    def spend(self, amount: float, now: float) -> None:
        """Take as much as something turned out to cost, on credit if need be."""
        self._fill(now)
        self._level -= amount

    def use_up(self, amount: float, now: float) -> None:
        """Take as much of what there is, and owe nothing for the rest."""
        self._fill(now)
        self._level = max(self._level - amount, min(self._level, 0.0))

    def debt_s(self, now: float) -> float:
        """The seconds until nothing is owed any more; 0.0 when nothing is."""
        self._fill(now)
        return max(0.0, -self._level / self._rate)

    def widen(self, burst: float) -> None:
        """Have so much at once from now on, if that is more; the difference is there already."""
        if burst > self._burst:
            self._level += burst - self._burst
            self._burst = burst

    def is_full(self, now: float) -> bool:
        """Whether it is as if nothing had ever been taken."""
        self._fill(now)
        return self._level >= self._burst

    def _fill(self, now: float) -> None:
        self._level = min(self._burst, self._level + (now - self._seen) * self._rate)
        self._seen = now
