"""A unified difference, line by line, as a page shows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_KINDS: Final = {"+": "added", "-": "removed", "@": "place", " ": "same"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line. `kind` is added, removed, same or place; `sign` is what a reader without colours sees."""

    kind: str
    sign: str
    text: str


def lines_of(text: str) -> list[DiffLine]:
    """The lines of `xdscore.schema.differences.unified_text` without the two that name the sides."""
    return list(_lines(text))


def _lines(text: str) -> Iterator[DiffLine]:
    for number, line in enumerate(text.split("\n")):
        if not line or (number < 2 and line.startswith(("--- ", "+++ "))):
            continue
        kind = _KINDS.get(line[0], "same")
        yield DiffLine(kind, "" if kind == "place" else line[0].strip(), line if kind == "place" else line[1:])
