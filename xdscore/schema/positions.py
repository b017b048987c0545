"""Where in a text a value stands: JSON pointer -> line and column, for YAML and JSON alike.

A member of an object stands where its key stands, an item of a list where the item starts, the root where the first
value starts. YAML is indexed while it is read; JSON only when somebody asks, and only as far: a manifest without
findings pays nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

PathPart = str | int
Path = tuple[PathPart, ...]


Locate = Callable[[Path], tuple[int, int]]
"""Line and column, counted from 1, of the value at a path or of the nearest value around it; (0, 0) when unknown."""


@dataclass(slots=True)
class Place:
    """The place of one value in a text; lines and columns count from 1. `children`: the places of its members or items,
    by key or index.
    """

    line: int
    column: int
    children: "dict[PathPart, Place]" = field(default_factory=dict)

    def locate(self, path: Path) -> tuple[int, int]:
        """Line and column of the value at `path` below this place; of the nearest value around it when there is
        none.
        """
        place = self
        for part in path:
            child = place.children.get(part)
            if child is None:
                break
            place = child
        return place.line, place.column


@dataclass(frozen=True, slots=True)
class Positions:
    """The lines and columns of all values of one document."""

    locate: Locate

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column of the value at `path`, or of the nearest value around it; (0, 0) when unknown."""
        return self.locate(path)


NO_POSITIONS = Positions(lambda _: (0, 0))
"""The index of a tree that came without text."""


def pointer_of(path: Path) -> str:
    """The RFC 6901 JSON pointer of `path`. Unpaired surrogates in keys are replaced, so that it can be stored and
    sent.
    """
    text = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def label_of(path: Path) -> str:
    """How a sentence calls the value at `path`: its member's name and the indexes after it, such as `domains[0]`."""
    label = ""
    for part in reversed(path):
        if isinstance(part, str):
            return part + label
        label = f"[{part}]{label}"
    return label


def path_of(pointer: str, tree: object) -> Path:
    """The path that the JSON pointer `pointer` means in `tree`: a part is an index where the tree has a list there,
    else a key.
    """
    if pointer == "":
        return ()
    parts: list[PathPart] = []
    for raw in pointer[1:].split("/"):
        part = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(tree, list) and part.isdecimal() and part.isascii():
            index = int(part)
            parts.append(index)
            tree = tree[index] if index < len(tree) else None
        else:
            parts.append(part)
            tree = tree.get(part) if isinstance(tree, dict) else None
    return tuple(parts)
