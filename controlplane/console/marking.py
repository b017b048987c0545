"""One line of a manifest, shown where it stands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from xdscore.schema import Tree
from xdscore.schema.positions import path_of
from xdscore.schema.yaml_lines import Lines

_WRAPPED: Final = "/resource/"


@dataclass(frozen=True, slots=True)
class Marked:
    """A manifest's text around the line, counted from 1, of what a pointer points to, or of the nearest value around
    that.
    """

    pointer: str
    number: int
    before: str
    line: str
    after: str


def marked(text: str, manifest: Mapping[str, Tree], lines: Lines | None, pointer: str) -> Marked | None:
    """The YAML of one manifest with the line that a pointer points to, into the manifest or the resource in it; None
    where it cannot be told. `lines`: of the resource.
    """
    if lines is None or not pointer.startswith("/"):
        return None
    inside = pointer.removeprefix(_WRAPPED[:-1]) if lines.root and pointer.startswith(_WRAPPED) else pointer
    number = lines.at(path_of(inside, manifest["resource"] if lines.root else manifest))
    rows = text.split("\n")
    if not 1 <= number <= len(rows):
        return None
    before = "\n".join((*rows[: number - 1], ""))
    after = "\n".join(("", *rows[number:]))
    return Marked(pointer, number, before, rows[number - 1], after)
