"""Keeps what was made of things that never change, for later requests of the same process.

A key says completely what the value was made of: of content, an access table or a list the address, which is a hash of
it. So what is kept stays true whatever is written, and is the same for whoever asks; whether they may see it was
decided before. Nothing is kept here that depends on who asks, or on when.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_ABSENT: Final = object()


class Remembered(Generic[Key, Value]):
    """Keeps the values that were used last, up to a number of them, or of what `weigh` says of each. What alone weighs
    more is not kept. Threads may share it; two may make the same value at the same time, which does no harm as equal
    keys have equal values.
    """

    def __init__(self, at_most: int, weigh: Callable[[Value], int] = lambda _: 1) -> None:
        self._at_most = at_most
        self._weigh = weigh
        self._weight = 0
        self._values: dict[Key, Value] = {}
        self._lock = threading.Lock()

    def those_of(
        self, keys: Collection[Key], make: Callable[[Collection[Key]], Mapping[Key, Value]]
    ) -> Mapping[Key, Value]:
        """The values of `keys`. `make` is called once, with the keys whose values are not kept, unless all are. A key
        that `make` leaves out is left out of the result.
        """
        found = self._kept(keys)
        if missing := [key for key in dict.fromkeys(keys) if key not in found]:
            made = make(missing)
            self._keep(made)
            found |= made
        return found

    def _kept(self, keys: Collection[Key]) -> dict[Key, Value]:
        found: dict[Key, Value] = {}
        with self._lock:
            values = self._values
            for key in keys:
                value = values.pop(key, _ABSENT)
                if value is not _ABSENT:
                    values[key] = found[key] = value  # type: ignore[assignment]  # not the mark
        return found

    def _keep(self, made: Mapping[Key, Value]) -> None:
        with self._lock:
            for key, value in made.items():
                if key not in self._values and self._weigh(value) <= self._at_most:
                    self._values[key] = value
                    self._weight += self._weigh(value)
            while self._weight > self._at_most:
                self._weight -= self._weigh(self._values.pop(next(iter(self._values))))
