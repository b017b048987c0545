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
    """The key under which the requests of an address are counted: an address of IPv4 itself, of IPv6 the /64 around it.
    A text that is no address (a socket has none) is returned as it is.
    """
    return network_of(address) or address


def neighbours_of(address: str) -> str:
    """The network around a caller, of which somebody with many addresses has few: a /24 of IPv4, a /48 of IPv6."""
    return network_of(address, ipv4_bits=_NEIGHBOURS_IPV4_BITS, ipv6_bits=_NEIGHBOURS_IPV6_BITS) or address


class Callers(Generic[K]):
    """Limits how many requests each caller sends, by a token bucket for each that was heard lately. Threads may share
    it. `K` is what callers are told apart by.
    """

    def __init__(self, most: int = _MAX_CALLERS) -> None:
        self._most = most
        self._buckets: OrderedDict[K, TokenBucket] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, caller: K, *, per_s: int, burst: int, now: float) -> float:
        """Count a request of this caller; 0 if it may go on, else the seconds after which the next one may."""
        with self._lock:
            bucket = self._buckets.get(caller)
            if bucket is None:
                bucket = self._buckets[caller] = TokenBucket(per_s, burst, now)
                if len(self._buckets) > self._most:
                    self._buckets.popitem(last=False)
            self._buckets.move_to_end(caller)
            return bucket.try_take(now)

    def give_back(self, caller: K, *, now: float) -> None:
        """Take back the count of a request that went on and turned out not to be this caller's."""
        with self._lock:
            if bucket := self._buckets.get(caller):
                bucket.spend(-1, now)


class CountedRequests(Generic[K]):
    """Counts each request once, for its caller. `mark`: the entry of `request.META` by which a request is known that
    was let through; `refused`: the metric of those that were not, by limit.
    """

    def __init__(self, mark: str, refused: Counter) -> None:
        self._mark = mark
        self._refused = refused
        self.callers: Callers[K] = Callers()
        self.clock: Callable[[], float] = time.monotonic

    def is_counted(self, request: HttpRequest) -> bool:
        """Whether the request was counted, and let through."""
        return self._mark in request.META

    def wait_s(self, request: HttpRequest, caller: K, *, limit: str, per_s: int, burst: int) -> float:
        """0 if the request may go on, else the seconds after which the next one of this caller may. `limit` is the
        name of `per_s` in the table of limits.
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
        """The request turned out not to be its caller's to pay for."""
        if self.is_counted(request):
            self.callers.give_back(request.META[self._mark], now=self.clock())
