"""A mapping of bounded size."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A mapping that keeps the entries used last, up to a fixed number."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of this key; None if it has none, or was not used for long."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._entries[key] = value
        return value

    def put(self, key: K, value: V) -> V:
        """Keep the value under this key, in place of the entry that was unused longest; gives the value back."""
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > self._size:
            del self._entries[next(iter(self._entries))]
        return value
