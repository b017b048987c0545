"""When what a client holds for a limited time is renewed (protocol.md G1 to G3).

A ttl runs from when its resource was sent or renewed last, on the client's clock. So it is renewed while the stream
lives, three times in a ttl at least, and with a stream that ends it runs out. Intervals are powers of two, in seconds,
and what has the same interval is due at the same time: a type costs one look and one response at a time, however many
resources it has. Nothing in here knows which names they are.
"""

from collections.abc import Iterable
from math import floor, inf

# Renewed so often in a ttl, one renewal may fail, or its answer come late, and it does not run out.
_TIMES = 3
_MS = 1000


def interval_s(ttl_ms: int) -> int:
    """How often a ttl, in milliseconds, is renewed, in seconds: a power of two, between a sixth and a third of it."""
    whole = max(ttl_ms // (_TIMES * _MS), 1)
    return 1 << (whole.bit_length() - 1)


class Renewals:
    """The times at which one type on one stream was renewed, and is to be, by interval.

    `due_s`: when to look again at what is due; at once (-inf) whenever something was said that may have a ttl.
    """

    __slots__ = ("_at_once", "_late", "_phase_s", "_renewed", "due_s")

    def __init__(self, phase_s: float) -> None:
        """`phase_s`: a number of seconds by which this stream's times lie apart from those of others, which would
        otherwise all be due together after a server's start.
        """
        self._phase_s = phase_s
        self._renewed: dict[int, float] = {}
        # Since when names were not renewed that could not be when it was their turn.
        self._late: dict[str, float] = {}
        self._at_once = False
        self.due_s = -inf

    def look_again(self) -> None:
        """Something was said to the client, or is current from now on, that may have a ttl."""
        self.due_s = -inf

    def begin_with_what_is_held(self) -> None:
        """The client says what it holds: of that nobody knows how long it lasts, so that it is renewed at once."""
        self._at_once = True
        self.due_s = -inf

    def take_due(self, intervals: Iterable[int], now: float) -> dict[int, float]:
        """Of these intervals, which are all that the client holds something of, those that are due, which count as
        renewed from now on; each with the time of its renewal before.
        """
        before = {each: self._renewed.get(each, now - each if self._at_once else now) for each in intervals}
        due = {each: at for each, at in before.items() if self._next(each, at) <= now}
        self._renewed = {each: now if each in due else at for each, at in before.items()}
        self._at_once = self._at_once and not before
        self.due_s = min((self._next(each, at) for each, at in self._renewed.items()), default=inf)
        return due

    def missed(self, name: str, since_s: float) -> None:
        """Note that a name could not be renewed in its turn; it was last at `since_s`, if it did not miss that, too."""
        self._late.setdefault(name, since_s)

    def ran_out(self, name: str, interval: int, since_s: float, now: float) -> bool:
        """Whether the client may have dropped this name, whose turn it is and was last at `since_s`."""
        if self._late:
            since_s = self._late.pop(name, since_s)
        return now - since_s >= _TIMES * interval

    def forget_but(self, names: Iterable[Iterable[str]]) -> None:
        """Only these names can be late: the client does not hold others, or holds them for ever."""
        if self._late:
            self._late = {name: self._late[name] for some in names for name in some if name in self._late}

    def _next(self, interval: int, after_s: float) -> float:
        return (floor((after_s + self._phase_s) / interval) + 1) * interval - self._phase_s
