"""Parts of pages that refresh while a page is open: made once an interval, for all who look at them.

Whoever asks must have been let in before; what is shared depends on `key` alone, and not on who asks.
"""

import hashlib
import threading
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from django.core.cache import cache

# Pages ask every 2 s or less often. What they are shown may be this old.
INTERVAL_S: Final = 2

Made = TypeVar("Made")
_ABSENT: Final = object()
_locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
_naming = threading.Lock()


def shared(key: str, make: Callable[[], Made]) -> Made:
    """The result of `make`, which is called at most once in two seconds in this process for each `key`; other callers
    wait for the result, or get the last one. A key may hold anything that was sent.
    """
    key = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    found = cache.get(key, _ABSENT)
    if found is _ABSENT:
        with _naming:
            lock = _locks.setdefault(key, threading.Lock())
        with lock:
            found = cache.get(key, _ABSENT)
            if found is _ABSENT:
                found = make()
                cache.set(key, found, INTERVAL_S)
    made: Made = found
    return made
