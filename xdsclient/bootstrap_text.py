"""Reads a JSON tree field by field and writes down every mistake with its place, so that one look shows all of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True, slots=True)
class Reader:
    """A value that should be an object, at `place`. Whatever is not there reads as empty."""

    value: object
    place: str
    problems: list[str]

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict):
            self.problems.append(f"{self.place or '/'} must be an object")

    @property
    def tree(self) -> Mapping[str, object]:
        """The object; empty where the value is none."""
        return self.value if isinstance(self.value, dict) else {}

    def names(self) -> Iterator[str]:
        """The names of its members."""
        yield from self.tree

    def wrong(self, name: str, sentence_end: str) -> None:
        """Write a mistake down: what is wrong with the member."""
        self.problems.append(f"{self.place}/{name} {sentence_end}")

    def text(self, name: str) -> str:
        """A string."""
        value = self.tree.get(name, "")
        if isinstance(value, str):
            return value
        self.wrong(name, "must be a string")
        return ""

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings. gRPC takes no offence at other values in a list of features; neither does this."""
        return tuple(filter(_is_text, self._list(name)))

    def member(self, name: str) -> "Reader":
        """An object."""
        return Reader(self.tree.get(name, {}), f"{self.place}/{name}", self.problems)

    def members(self, name: str) -> "tuple[Reader, ...]":
        """A list of objects."""
        return tuple(
            Reader(each, f"{self.place}/{name}/{index}", self.problems) for index, each in enumerate(self._list(name))
        )

    def _list(self, name: str) -> list[object]:
        value = self.tree.get(name, [])
        if isinstance(value, list):
            return value
        self.wrong(name, "must be a list")
        return []


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)
