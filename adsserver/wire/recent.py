"""What was used lately is kept, up to a total cost."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """A cache that keeps the values used last, up to a total cost; a single value that costs more is not kept."""

    def __init__(self, capacity: int, cost: Callable[[_Value], int]) -> None:
        self._capacity = capacity
        self._cost = cost
        self._used = 0
        self._entries: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        """The value under this key, which is from now on the one used last; None when it is not kept."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: _Key, value: _Value) -> _Value:
        """Keep `value` under a key that has none, and drop values unused for longest to make room; returns `value`."""
        cost = self._cost(value)
        if cost > self._capacity:
            return value
        self._entries[key] = value
        self._used += cost
        while self._used > self._capacity:
            _, dropped = self._entries.popitem(last=False)
            self._used -= self._cost(dropped)
        return value
