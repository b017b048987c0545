"""A unified difference, line by line, as a page shows it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PLACE: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_KINDS: Final = {"+": "added", "-": "removed", "@": "place", " ": "same"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a unified difference. `kind`: added, removed, same or place; `sign`: the character at its beginning, by
    which it can be read without colours; `number`: of the line in the newer text, from 1; 0 where it is not in it.
    """

    kind: str
    sign: str
    text: str
    number: int


def lines_of(text: str) -> list[DiffLine]:
    """The lines of a unified difference, without the first two, which name the two sides. `text`: as made by
    `xdscore.schema.differences.unified_text`.
    """
    return list(_lines(text))


def first_changed(text: str) -> int:
    """The line of the newer text at which a unified difference (`text`) first differs: one that is added, or that
    stands where one was removed. Counted from 1; 0 where nothing differs.
    """
    last = 0
    for line in lines_of(text):
        if line.kind == "place" and (place := _PLACE.match(line.text)):
            last = int(place[1]) - 1
        elif line.kind == "same":
            last = line.number
        elif line.kind in ("added", "removed"):
            return max(last + 1, 1)
    return 0


def _lines(text: str) -> Iterator[DiffLine]:
    newer = 0  # the number of the line of the newer text that comes next
    for number, line in enumerate(text.split("\n")):
        if not line or (number < 2 and line.startswith(("--- ", "+++ "))):
            continue
        kind = _KINDS.get(line[0], "same")
        if kind == "place":
            place = _PLACE.match(line)
            newer = int(place[1]) if place else newer
            yield DiffLine(kind, "", line, 0)
        elif kind == "removed":
            yield DiffLine(kind, line[0].strip(), line[1:], 0)
        else:
            yield DiffLine(kind, line[0].strip(), line[1:], newer)
            newer += 1
