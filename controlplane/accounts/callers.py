"""Who calls, as far as a count needs to know: by which address a caller is counted, and how much each called lately.

Counted in each web process by itself: no request waits for Redis (architecture.md law 4).
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from django.http import HttpRequest
from prometheus_client import Counter

from xdscore.callers import network_of
from xdscore.token_bucket import TokenBucket

# A caller beyond these is forgotten, the one that was silent longest first, and begins with a full burst again.
_MAX_CALLERS: Final = 10_000
# What one organisation is usually given: the next address of it says little about who it is.
_NEIGHBOURS_IPV4_BITS: Final = 24
_NEIGHBOURS_IPV6_BITS: Final = 48

K = TypeVar("K", bound=Hashable)


def caller_of(address: str) -> str:
    """The key under which the requests of an address are counted: an IPv4 address itself, of an IPv6 address its /64
    network. A text that is no address (a Unix socket has none) is returned unchanged.
    """
    return network_of(address) or address


def neighbours_of(address: str) -> str:
    """The network around an address that one organisation usually has to itself: a /24 of IPv4, a /48 of IPv6. A text
    that is no address is returned unchanged.
    """
    return network_of(address, ipv4_bits=_NEIGHBOURS_IPV4_BITS, ipv6_bits=_NEIGHBOURS_IPV6_BITS) or address


class Callers(Generic[K]):
    """Limits how many requests each caller sends, by a token bucket for each caller that was heard of lately; safe to
    use from several threads. `K`: the type of the keys by which callers are told apart.
    """

    def __init__(self, most: int = _MAX_CALLERS) -> None:
        self._most = most
        self._buckets: OrderedDict[K, TokenBucket] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, caller: K, *, per_s: int, burst: int, now: float) -> float:
        """Count a request of this caller. Returns 0 if it may go on, else in how many seconds the next one may.
        `burst`: how many may come at once; `now`: seconds of one monotonic clock.
        """
        with self._lock:
            bucket = self._buckets.get(caller)
            if bucket is None:
                bucket = self._buckets[caller] = TokenBucket(per_s, burst, now)
                if len(self._buckets) > self._most:
                    self._buckets.popitem(last=False)
            self._buckets.move_to_end(caller)
            return bucket.try_take(now)

    def give_back(self, caller: K, *, now: float) -> None:
        """Uncount a request that was let through for this caller and turned out to be another's. `now`: seconds of the
        same clock as for `wait_s`.
        """
        with self._lock:
            if bucket := self._buckets.get(caller):
                bucket.spend(-1, now)


class CountedRequests(Generic[K]):
    """Limits how many requests each caller sends, counting each request once. `mark`: the key of `request.META` that
    notes that a request was counted. `refused`: the metric that counts refused requests, by limit.
    """

    def __init__(self, mark: str, refused: Counter) -> None:
        self._mark = mark
        self._refused = refused
        self.callers: Callers[K] = Callers()
        self.clock: Callable[[], float] = time.monotonic

    def is_counted(self, request: HttpRequest) -> bool:
        """Whether the request was counted before, and let through."""
        return self._mark in request.META

    def wait_s(self, request: HttpRequest, caller: K, *, limit: str, per_s: int, burst: int) -> float:
        """Count the request for this caller, unless it was counted before. Returns 0 if it may go on, else in how many
        seconds the caller's next one may. `limit`: the name of `per_s` in the table of limits.
        """
        if self.is_counted(request):
            return 0.0
        wait_s = self.callers.wait_s(caller, per_s=per_s, burst=burst, now=self.clock())
        if wait_s:
            self._refused.labels(limit).inc()
        else:
            request.META[self._mark] = caller
        return wait_s

    def give_back(self, request: HttpRequest) -> None:
        """Uncount a request that turned out not to be of the caller for whom it was counted."""
        if self.is_counted(request):
            self.callers.give_back(request.META[self._mark], now=self.clock())
