"""Folds what stands in a list several times in a row into one line. Pure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Run(Generic[Item]):
    """Items that stand in a row and say the same, in the order of the list: one at least."""

    items: Sequence[Item]

    @property
    def first(self) -> Item:
        """The item that is shown for all of them."""
        return self.items[0]

    @property
    def last(self) -> Item:
        """The item at the other end of the run."""
        return self.items[-1]

    @property
    def more(self) -> Sequence[Item]:
        """The items that are folded behind the first; empty for one that stands alone."""
        return self.items[1:]


def runs(items: Iterable[Item], same: Callable[[Item], Hashable]) -> list[Run[Item]]:
    """The items in their order, with those in one run that follow each other and have the same `same`."""
    return [Run(tuple(found)) for _, found in groupby(items, same)]
