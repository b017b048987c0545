"""Reads a JSON tree field by field and writes down every mistake with its place, so that one look shows all of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one JSON value that should be an object. `place` is where it stands in the bootstrap. Members that are
    missing read as empty; mistakes are added to `problems`.
    """

    value: object
    place: str
    problems: list[str]

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict):
            self.problems.append(f"{self.place or '/'} must be an object")

    @property
    def tree(self) -> Mapping[str, object]:
        """The members of the object; empty when the value is not an object."""
        return self.value if isinstance(self.value, dict) else {}

    def names(self) -> Iterator[str]:
        """The names of the object's members."""
        yield from self.tree

    def wrong(self, name: str, sentence_end: str) -> None:
        """Note a problem with the member `name`: a sentence that begins with the place of the member and ends with
        `sentence_end`.
        """
        self.problems.append(f"{self.place}/{name} {sentence_end}")

    def text(self, name: str) -> str:
        """The string in the member `name`; empty when it is missing, or is no string, which is noted as a problem."""
        value = self.tree.get(name, "")
        if isinstance(value, str):
            return value
        self.wrong(name, "must be a string")
        return ""

    def texts(self, name: str) -> tuple[str, ...]:
        """The strings of the list in the member `name`. Other values in the list are skipped, as gRPC does in a list of
        features.
        """
        return tuple(filter(_is_text, self._list(name)))

    def member(self, name: str) -> "Reader":
        """A reader for the object in the member `name`; of an empty object when it is missing."""
        return Reader(self.tree.get(name, {}), f"{self.place}/{name}", self.problems)

    def members(self, name: str) -> "tuple[Reader, ...]":
        """A reader for each object of the list in the member `name`; none when it is missing."""
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
