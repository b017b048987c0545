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
    which it can be read without colours.
    """

    kind: str
    sign: str
    text: str


def lines_of(text: str) -> list[DiffLine]:
    """The lines of a unified difference, without the first two, which name the two sides. `text`: as made by
    `xdscore.schema.differences.unified_text`.
    """
    return list(_lines(text))


def first_changed(text: str) -> int:
    """The line of the newer text at which a unified difference (`text`) first differs: one that is added, or that
    stands where one was removed. Counted from 1; 0 where nothing differs.
    """
    number = 0
    for line in lines_of(text):
        if line.kind == "place" and (place := _PLACE.match(line.text)):
            number = int(place[1])
        elif line.kind == "same":
            number += 1
        elif line.kind in ("added", "removed"):
            return max(number, 1)
    return 0


def _lines(text: str) -> Iterator[DiffLine]:
    for number, line in enumerate(text.split("\n")):
        if not line or (number < 2 and line.startswith(("--- ", "+++ "))):
            continue
        kind = _KINDS.get(line[0], "same")
        yield DiffLine(kind, "" if kind == "place" else line[0].strip(), line if kind == "place" else line[1:])
