"""Where the values of a JSON text stand, found on demand.

The way to a value leads through the objects and lists around it. Each of those is indexed once, its members skipped by
the standard library's scanner, so that a few findings in a large text cost a few passes of C code over it.
"""

import json
import re
from bisect import bisect_right
from functools import cached_property

from xdscore.schema.positions import Path, PathPart

_SPACE = re.compile(r"[ \t\n\r]*")
# Numbers are skipped as text: turning them into numbers is work, and long ones are refused by int().
_SKIP = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
_Members = dict[PathPart, tuple[int, int]]


class JsonIndex:
    """Finds where values stand in one text that is known to be JSON without duplicate keys."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._members: dict[int, _Members] = {}

    def locate(self, path: Path) -> tuple[int, int]:
        """Line and column, counted from 1, of the value at `path`; of the nearest value around it when there is
        none.
        """
        value = self._after_space(0)
        stands = value
        for part in path:
            found = self._members_of(value).get(part)
            if found is None:
                break
            stands, value = found
        return place_in(self.line_starts, stands)

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset of the first character of each line."""
        return line_starts(self._text)

    def _members_of(self, start: int) -> _Members:
        """The members of the object or items of the list that begins at `start`: by key or index, where each stands and
        where its value begins. Empty for any other value.
        """
        if start not in self._members:
            opening = self._text[start]
            self._members[start] = self._indexed(start, opening == "{") if opening in "{[" else {}
        return self._members[start]

    def _indexed(self, start: int, is_object: bool) -> _Members:
        members: _Members = {}
        offset = self._after_space(start + 1)
        while self._text[offset] not in "]}":
            stands = offset
            part: PathPart = len(members)
            if is_object:
                key, offset = _SKIP(self._text, offset)
                part = str(key)
                offset = self._after_space(self._after_space(offset) + 1)
            members[part] = (stands, offset)
            _, offset = _SKIP(self._text, offset)
            offset = self._after_space(offset)
            if self._text[offset] == ",":
                offset = self._after_space(offset + 1)
        return members

    def _after_space(self, offset: int) -> int:
        match = _SPACE.match(self._text, offset)
        return match.end() if match else offset


def line_starts(text: str) -> list[int]:
    """The offset of the first character of each line."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def place_in(starts: list[int], offset: int) -> tuple[int, int]:
    """Line and column, counted from 1, of the character at `offset`."""
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
