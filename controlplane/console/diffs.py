"""A unified difference, line by line, as a page shows it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PLACE: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_KINDS: Final = {"+": "added", "-": "removed", "@": "place", " ": "same"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a unified difference. `kind` is added, removed, same or place; `sign` is what a reader without colours
    sees.
    """

    kind: str
    sign: str
    text: str


def lines_of(text: str) -> list[DiffLine]:
    """The lines of a text of `xdscore.schema.differences.unified_text` without the two that name the sides."""
    return list(_lines(text))


def first_changed(text: str) -> int:
    """The number of the first line of the newer side that a unified difference adds, or behind which it takes something
    away; 0 where there is none.
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
