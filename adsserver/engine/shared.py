"""A bounded cache of shared values."""

from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Shared(Generic[Key, Value]):
    """Remembers the newest `limit` values; an older one is computed again when it is needed, with another identity.

    Safe to use from several threads.
    """

    __slots__ = ("_limit", "_values")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """The value that was put under this key; None if it was forgotten, or never put."""
        return self._values.get(key)

    def put(self, key: Key, value: Value) -> Value:
        """Remember `value`, forgetting the oldest when there is no room; gives it back."""
        if len(self._values) >= self._limit:
            # Where another thread puts something at this very moment, that one makes room.
            with suppress(RuntimeError):
                self._values.pop(next(iter(self._values)), None)
        self._values[key] = value
        return value
