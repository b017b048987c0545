"""What the readers of all dialects share: the NACK they are given, what they answer, and how a name is found in a text.

Names are exact strings that may contain every separator of every grammar. So no reader cuts a name out of a text by
its separators: it asks which of the given names stands at a place. Where two fit, the longer one is meant: a text that
goes on after the shorter name with exactly the rest of the longer one does not occur, and nobody can move the blame
for a long name of their own to somebody's shorter one.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from xdscore.names import canonical

# Envoy cuts its texts at 4,096 bytes, and gRPC's default limit for all metadata is 8 KiB; what is longer is not read to
# its end, and counts as cut.
MAX_TEXT_CHARS = 65_536

# What Envoy 1.40 appends to a text it has cut (clients.md section 3), and what Parley appends when it keeps a text that
# is too long.
TRUNCATED_SUFFIX = "...(truncated)"
# How much of the suffix tells that a text was cut inside it.
_MIN_SUFFIX_CHARS = len("...(")

# A text of MAX_TEXT_CHARS from a real client holds at most some 2,000 entries (of 30 characters), and each asks for a
# name once. Twice as many stop only texts that were made to be slow.
MAX_NAME_PROBES = 4_000

# How many characters of a name a pattern compares before the name is looked up, and how many different ones it lists:
# a name of one character and the shortest terminator have three, and larger sets cost more than they save.
_BEGINNING_CHARS = 3
_MAX_ALTERNATIVES = 256


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in the text of a NACK.

    slots: the indexes of the resources that the text blames, in order of appearance, without repeats.
    complete: the text was whole, and each of its parts blames a resource of the response or is not about one.
    elsewhere: the text blames something outside the response, so that no resource is the culprit by elimination.
    """

    slots: tuple[int, ...]
    complete: bool
    elsewhere: bool = False


NOBODY = Reading(slots=(), complete=False)


class Names:
    """The resource names of one response, found by their spelling or at a place in a text."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._slots: dict[str, list[int]] = {}
        for slot, name in enumerate(names):
            if name != "":
                self._slots.setdefault(name, []).append(slot)
        # gRPC-Go and gRPC-Java say an xdstp name with its context parameters sorted.
        for name in tuple(self._slots):
            self._slots.setdefault(canonical(name), self._slots[name])
        self.longest = max(map(len, self._slots), default=0)
        """How many characters the longest name has."""
        self._ordered: list[str] = []
        self._starts: list[int] = []
        self._probes = 0

    def slots(self, name: str) -> tuple[int, ...]:
        """The indexes of the resources with this name, ascending; empty when it was not in the response."""
        return tuple(self._slots.get(name, ()))

    def slot_after(self, name: str, last: int) -> int:
        """The first index after `last` of a resource with this name; -1 when there is none."""
        slots = self._slots.get(name, [])
        following = bisect_right(slots, last)
        return slots[following] if following < len(slots) else -1

    def beginning(self, terminator: str) -> str:
        """A regular expression for the first characters of the names, each with `terminator` behind it. It matches
        wherever a name stands, and at few other places.
        """
        columns = zip(*((name + terminator)[:_BEGINNING_CHARS] for name in self._slots), strict=False)
        distinct = [sorted(set(column)) for column in columns]
        return "".join(
            f"[{''.join(map(re.escape, characters))}]" if len(characters) <= _MAX_ALTERNATIVES else r"[\s\S]"
            for characters in distinct
        )

    @property
    def exhausted(self) -> bool:
        """Whether `longest_at` has given up on these names, after too many tries; from then on it finds nothing."""
        return self._probes > MAX_NAME_PROBES

    def longest_at(self, text: str, position: int, terminator: str) -> str:
        """The longest name of the response that stands in `text` at `position`, followed by `terminator`; empty when
        none does.

        Empty also where the text may have been cut inside a longer name, because a text does not say that it is whole.
        """
        if self.exhausted or text.find(terminator, position, position + self.longest + len(terminator)) < 0:
            return ""
        if self.stops_inside(text, position, terminator):
            return ""
        tail = text[position : position + self.longest]
        at = bisect_right(self._in_order(), tail) - 1
        self._probes += 1
        # A name that starts `tail` is the last name not above `tail` in order, or one that starts that name.
        while at >= 0 and not self.exhausted:
            name = self._ordered[at]
            if text.startswith(name, position) and text.startswith(terminator, position + len(name)):
                return name
            at = self._starts[at]
            self._probes += 1
        return ""

    def stops_inside(self, text: str, position: int, terminator: str) -> bool:
        """Whether a name may start at `position` whose end, with its `terminator`, is behind the end of `text`.

        The rest of the text then blames nothing: all of it may be part of that name.
        """
        rest = len(text) - position
        if rest < 0 or rest >= self.longest + len(terminator):
            return False
        tail = text[position:]
        if tail in self._slots:
            return True
        ordered = self._in_order()
        following = bisect_right(ordered, tail)
        if following < len(ordered) and ordered[following].startswith(tail):
            return True
        return any(
            tail.endswith(terminator[:said]) and tail[:-said] in self._slots for said in range(1, len(terminator))
        )

    def _in_order(self) -> list[str]:
        """The names of the response, sorted when first asked for, because most texts can be read without sorting
        them.
        """
        if not self._ordered:
            self._order()
        return self._ordered

    def _order(self) -> None:
        """Sort the names, and note for each the index, in that order, of the longest other name that it starts with
        (-1: none).
        """
        self._ordered = sorted(self._slots)
        open_starts: list[int] = []
        for place, name in enumerate(self._ordered):
            while open_starts and not name.startswith(self._ordered[open_starts[-1]]):
                open_starts.pop()
            self._starts.append(open_starts[-1] if open_starts else -1)
            open_starts.append(place)


@dataclass(frozen=True, slots=True)
class Nack:
    """What every reader of texts is given: the text without the mark of a cut, whether it had such a mark, and the type
    and names of its response.

    A text may be cut without a mark: where it ends inside what may be a name, no reader may take it to be whole.
    """

    text: str
    cut: bool
    type_url: str
    names: tuple[str, ...]
    by_name: Names = field(compare=False)

    @classmethod
    def of(cls, message: str, *, type_url: str, names: Sequence[str]) -> Self:
        """A NACK with this message, of which no more than MAX_TEXT_CHARS are read."""
        text, marked = _without_mark(message[:MAX_TEXT_CHARS])
        given = tuple(names)
        return cls(text, marked or len(message) > MAX_TEXT_CHARS, type_url, given, Names(given))

    def blame(self, name: str) -> Reading:
        """The reading of a text that names this resource and no other."""
        slots = self.by_name.slots(name)
        return Reading(slots, complete=bool(slots) and not self.cut, elsewhere=not slots)

    def blame_unnamed(self) -> Reading:
        """The reading of a text about a resource without a name: it blames the only such resource; with several, or
        none, nothing.
        """
        unnamed = self.unnamed()
        return Reading(unnamed, complete=not self.cut) if len(unnamed) == 1 else NOBODY

    def unnamed(self) -> tuple[int, ...]:
        """The indexes of the resources that have no name."""
        return tuple(slot for slot, name in enumerate(self.names) if name == "")

    def only_resource(self) -> tuple[int, ...]:
        """The indexes of the response when all its resources are one and the same; else empty."""
        alone = len(self.names) == 1 or (len(set(self.names)) == 1 and self.names[0] != "")
        return tuple(range(len(self.names))) if alone else ()


def _without_mark(text: str) -> tuple[str, bool]:
    """`text` without the mark that it was cut, and whether it had one.

    A marked text may be cut again, inside the mark, and marked once more.
    """
    kept = text
    for _ in range(2):
        said = next(
            (
                length
                for length in range(len(TRUNCATED_SUFFIX), _MIN_SUFFIX_CHARS - 1, -1)
                if kept.endswith(TRUNCATED_SUFFIX[:length])
            ),
            0,
        )
        kept = kept[: len(kept) - said]
    return kept, len(kept) < len(text)


class Reader(Protocol):
    """The module that reads the NACK texts of one client family."""

    def recognises(self, nack: Nack, /) -> bool:
        """Whether the text is written as this family writes."""

    def read(self, nack: Nack, /) -> Reading:
        """The resources that the text blames; called only after `recognises` returned True."""


class Blamed:
    """Collects the indexes of blamed resources, in order of appearance, without repeats."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._said: set[str] = set()
        self._slots: dict[int, None] = {}

    def by_name(self, name: str) -> bool:
        """Blame every resource with this name; return whether there is one."""
        slots = () if name in self._said else self._names.slots(name)
        self._slots.update(dict.fromkeys(slots))
        if slots:
            self._said.add(name)
        return name in self._said

    def by_slots(self, slots: Sequence[int]) -> None:
        """Blame the resources with these indexes in the response."""
        self._slots.update(dict.fromkeys(slots))

    @property
    def slots(self) -> tuple[int, ...]:
        """The indexes of the resources blamed so far, in order of appearance."""
        return tuple(self._slots)
