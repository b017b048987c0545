"""Names of which a client is told something although nothing changed (C1, C6, B7, B12, I3)."""

from collections.abc import Callable, Iterable


class Waiting:
    """Of one type on one stream.

    `asked`: the client waits for an answer. `again`: nobody asked, but a changed cluster or a repeated ask needs them.
    `mend`: a NACK left open what the client holds of them.
    """

    __slots__ = ("again", "asked", "mend")

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.again: set[str] = set()
        self.mend: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.asked or self.again or self.mend)

    def __contains__(self, name: str) -> bool:
        return name in self.asked or name in self.again or name in self.mend

    @property
    def names(self) -> set[str]:
        """All of them."""
        return self.asked | self.again | self.mend

    def settle(self, names: Iterable[str]) -> None:
        """These were told, or there is nothing to tell of them."""
        self.asked.difference_update(names)
        self.again.difference_update(names)
        self.mend.difference_update(names)

    def forget_unless(self, covers: Callable[[str], bool]) -> None:
        """Of names no longer asked for nothing is told."""
        self.settle([name for name in self.names if not covers(name)])
