"""Sets of names out of a fixed number of them, for fleets in which thousands of clients ask for thousands. Pure.

A set is one number with a bit for each name, so that two are united, compared or subtracted in a microsecond.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import Final

from controlplane.rollouts.values import Key

_BITS: Final = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))
"""The places of the bits that are set in each byte."""


class Universe:
    """The names of which sets are made. `keys`: in the order of their bits."""

    __slots__ = ("_places", "keys")

    def __init__(self, keys: Iterable[Key]) -> None:
        self.keys = tuple(sorted(set(keys)))
        self._places = {key: place for place, key in enumerate(self.keys)}

    def of(self, keys: Iterable[Key]) -> "KeySet":
        """The set of those of these names that are in the universe."""
        found = bytearray(len(self.keys) // 8 + 1)
        for key in keys:
            place = self._places.get(key)
            if place is not None:
                found[place >> 3] |= 1 << (place & 7)
        return KeySet(self, int.from_bytes(found, "little"))

    def place(self, key: object) -> int | None:
        """Which bit stands for this name; None where it is not in the universe."""
        return self._places.get(key)  # type: ignore[call-overload, no-any-return]  # any value may be looked for


class KeySet(AbstractSet[Key]):
    """An immutable set of names of one universe; `bits` has one for each. It works together with every other set of
    names, and equals only sets of its universe.
    """

    __slots__ = ("bits", "universe")

    def __init__(self, universe: Universe, bits: int) -> None:
        self.universe = universe
        self.bits = bits

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __contains__(self, key: object) -> bool:
        place = self.universe.place(key)
        return place is not None and self.bits >> place & 1 == 1

    def __iter__(self) -> Iterator[Key]:
        packed = self.bits.to_bytes(len(self.universe.keys) // 8 + 1, "little")
        for start, byte in compress(enumerate(packed), packed):
            for bit in _BITS[byte]:
                yield self.universe.keys[start * 8 + bit]

    def __or__(self, other: AbstractSet[Key]) -> AbstractSet[Key]:  # type: ignore[override]  # of names only
        bits = self._bits_of(other)
        return KeySet(self.universe, self.bits | bits) if bits is not None else super().__or__(other)

    def __and__(self, other: AbstractSet[object]) -> AbstractSet[Key]:
        bits = self._bits_of(other)
        return KeySet(self.universe, self.bits & bits) if bits is not None else super().__and__(other)

    def __sub__(self, other: AbstractSet[object]) -> AbstractSet[Key]:
        bits = self._bits_of(other)
        return KeySet(self.universe, self.bits & ~bits) if bits is not None else super().__sub__(other)

    def __le__(self, other: AbstractSet[object]) -> bool:
        bits = self._bits_of(other)
        return self.bits & ~bits == 0 if bits is not None else super().__le__(other)

    def __eq__(self, other: object) -> bool:
        return self.bits == self._bits_of(other)

    def __hash__(self) -> int:
        return hash(self.bits)

    def _bits_of(self, other: object) -> int | None:
        return other.bits if isinstance(other, KeySet) and other.universe is self.universe else None

    @classmethod
    def _from_iterable(cls, it: Iterable[Key]) -> AbstractSet[Key]:  # type: ignore[override]  # of what has no universe
        return frozenset(it)
