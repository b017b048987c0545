"""NACKs that wait to be written: bounded in all, and each that is accountable for some has its share of the room."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic, Protocol, Self, TypeVar

from adsserver.engine.events import NamedContent
from adsserver.store.opened import Opened
from controlplane.clients.foreign_text import KeptText
from xdscore.evidence import Evidence
from xdscore.resource_types import ResourceType

Key = tuple[str, str, str, int, str]


@dataclass(frozen=True, slots=True)
class RawNack:
    """A NACK as the event loop noted it, with the client's own words, already cut to a bounded length. Its repr leaves
    the words out.

    resources, suspects, kept: what the response held, those that the NACK may be about, and what the client had of
      these before.
    at: when it came, on a clock that only goes forward.
    healing: whether the client was sent again what it had.
    repeats: how often the NACK came.
    """

    opened: Opened
    kind: ResourceType
    version: str
    code: int
    message: str = field(repr=False)
    resources: tuple[NamedContent, ...]
    suspects: tuple[NamedContent, ...]
    at: float
    evidence: Evidence
    kept: tuple[NamedContent, ...] = ()
    healing: bool = False
    repeats: int = 1

    @property
    def key(self) -> Key:
        """A key that two NACKs have in common exactly when one repeats the other."""
        return (self.opened.stream.id, self.kind.word, self.version, self.code, self.message)

    def again(self, repeats: int) -> Self:
        """A copy that counts `repeats` more repeats."""
        return replace(self, repeats=self.repeats + repeats)


@dataclass(frozen=True, slots=True)
class KeptNack:
    """A NACK with the text that is kept of it in place of the client's own words, which are dropped from `raw`."""

    raw: RawNack
    text: KeptText

    @property
    def opened(self) -> Opened:
        """The stream on which the NACK arrived."""
        return self.raw.opened

    @property
    def repeats(self) -> int:
        """The number of times that the NACK was received."""
        return self.raw.repeats

    @property
    def key(self) -> Key:
        """A key that two NACKs have in common exactly when one repeats the other."""
        return (*self.raw.key[:-1], self.text)

    def again(self, repeats: int) -> Self:
        """A copy that counts `repeats` more repeats."""
        return replace(self, raw=self.raw.again(repeats))


class Repeatable(Protocol):
    """A NACK that counts its repeats, with the client's own words or without."""

    @property
    def opened(self) -> Opened:
        """The stream on which the NACK arrived."""
        ...

    @property
    def repeats(self) -> int:
        """The number of times that the NACK was received."""
        ...

    @property
    def key(self) -> Key:
        """A key that two NACKs have in common exactly when one repeats the other."""
        ...

    def again(self, repeats: int) -> Self:
        """A copy that counts `repeats` more repeats."""
        ...


N = TypeVar("N", bound=Repeatable)


class WaitingNacks(Generic[N]):
    """The NACKs that wait to be written, `room` of them at most. When there are more, the caller that has most loses
    its oldest: a flood of one caller costs only that caller. Adding one takes the same time however many wait.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._count = 0
        self._of: dict[str, dict[Key, N]] = {}
        # Who holds how many, so that nobody is looked for: in the order in which they came to hold so many.
        self._holding: dict[int, dict[str, None]] = {}
        self._most = 0

    def __len__(self) -> int:
        """The number of NACKs that wait."""
        return self._count

    def __iter__(self) -> Iterator[N]:
        """The NACKs by turns: the oldest of each caller, then the second of each, and so on, so that nobody waits for a
        flood.
        """
        turns = [iter(held.values()) for held in self._of.values()]
        while turns:
            going = []
            for turn in turns:
                each = next(turn, None)
                if each is not None:
                    yield each
                    going.append(turn)
            turns = going

    def add(self, nack: N) -> int:
        """Keep a NACK, or count it as a repeat of one that waits; returns how many were dropped for it."""
        who = nack.opened.accountable
        held = self._of.setdefault(who, {})
        known = held.pop(nack.key, None)
        if known is not None:
            held[nack.key] = nack.again(known.repeats)
            return 0
        dropped = 0
        if self._count >= self._room:
            self._drop(who if len(held) == self._most else next(iter(self._holding[self._most])))
            dropped = 1
        self._of.setdefault(who, held)[nack.key] = nack
        self._count += 1
        self._moved(who, len(held) - 1, len(held))
        return dropped

    def forget(self, count: int) -> None:
        """Drop the first `count` NACKs in the order of iteration."""
        for nack in list(islice(self, count)):
            self._let_go(nack.opened.accountable, nack.key)

    def _drop(self, who: str) -> None:
        self._let_go(who, next(iter(self._of[who])))

    def _let_go(self, who: str, key: Key) -> None:
        held = self._of[who]
        del held[key]
        self._count -= 1
        self._moved(who, len(held) + 1, len(held))
        if not held:
            del self._of[who]

    def _moved(self, who: str, before: int, now: int) -> None:
        if before:
            of_before = self._holding[before]
            del of_before[who]
            if not of_before:
                del self._holding[before]
        if now:
            self._holding.setdefault(now, {})[who] = None
        self._most = max(self._most, now)
        while self._most and self._most not in self._holding:
            self._most -= 1
