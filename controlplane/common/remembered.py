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
    """Keeps the values used last, up to a number. Threads may share it: they may make the same value twice, and it is
    equal.
    """

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._values: dict[Key, Value] = {}
        self._lock = threading.Lock()

    def those_of(
        self, keys: Collection[Key], make: Callable[[Collection[Key]], Mapping[Key, Value]]
    ) -> Mapping[Key, Value]:
        """The values of these keys; `make` is called once with all that are not kept, if there are any. A key that it
        leaves out is left out here, and not kept.
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
            self._values |= made
            for key in list(self._values)[: max(0, len(self._values) - self._at_most)]:
                del self._values[key]
