"""The token bucket: a rate on average, a burst at once. Pure; the time is the caller's."""


class TokenBucket:
    """A limit of `rate_per_s` tokens on average and `burst` at once. `now` is always in seconds on one clock that only
    goes forward. Not safe for several threads.
    """

    __slots__ = ("_burst", "_level", "_rate", "_seen")

    def __init__(self, rate_per_s: float, burst: float, now: float) -> None:
        self._rate = rate_per_s
        self._burst = burst
        self._level = burst
        self._seen = now

    def take(self, now: float) -> float:
        """Take one token, on credit if none is left, and return the seconds until the token may be used. For callers
        that can make others wait.
        """
        self._fill(now)
        self._level -= 1
        return max(0.0, -self._level / self._rate)

    def try_take(self, now: float) -> float:
        """Take one token and return 0.0; when none is left, take none and return the seconds until there is one. For
        callers that can only refuse.
        """
        self._fill(now)
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self._rate

    def spend(self, amount: float, now: float) -> None:
        """Take `amount` tokens, on credit if too few are left, for work whose cost is known only afterwards."""
        self._fill(now)
        self._level -= amount

    def debt_s(self, now: float) -> float:
        """The seconds until all credit is paid back; 0.0 when there is none."""
        self._fill(now)
        return max(0.0, -self._level / self._rate)

    def widen(self, burst: float) -> None:
        """Raise the burst to this number of tokens, unless it is that large already; the difference is available at
        once.
        """
        if burst > self._burst:
            self._level += burst - self._burst
            self._burst = burst

    def is_full(self, now: float) -> bool:
        """Whether all tokens of the burst are there, as if none had ever been taken."""
        self._fill(now)
        return self._level >= self._burst

    def _fill(self, now: float) -> None:
        level = self._level + (now - self._seen) * self._rate
        # Several times for each request: to compare costs a third of min().
        self._level = level if level < self._burst else self._burst  # noqa: FURB136
        self._seen = now
