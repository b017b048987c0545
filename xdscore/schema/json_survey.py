"""What is wrong in a JSON text that the standard parser would let pass: duplicate keys, odd numbers, odd characters.

A scan of all tokens with their places; it runs only on a text that `json_text` has already found to be suspicious.
"""

import json
import math
import re
from dataclasses import dataclass, field

from xdscore.codes import Code
from xdscore.findings import Finding
from xdscore.schema.codes import BAD_CHARACTER, DUPLICATE_KEY
from xdscore.schema.json_index import line_starts, place_in
from xdscore.schema.positions import PathPart, pointer_of
from xdscore.schema.text import MAX_TEXT_FINDINGS, at

# 64-bit integers have 20 digits; a longer one fits no field, and Python's int() is quadratic in its length.
MAX_NUMBER_CHARS = 40
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|[^\s\[\]{}:,"]+', re.DOTALL)


def survey(text: str) -> tuple[Finding, ...]:
    """The findings about a text that the standard parser accepts as JSON and Parley refuses; MAX_TEXT_FINDINGS at
    most.
    """
    scan = _Scan(line_starts(text))
    for match in _TOKEN.finditer(text):
        scan.token(match[0], match.start())
        if len(scan.findings) >= MAX_TEXT_FINDINGS:
            break
    return tuple(scan.findings)


@dataclass(slots=True)
class _Level:
    """A list or object that encloses the place where the scan is. `key` is the member or index whose value comes next;
    `seen` says where each key stood first.
    """

    is_object: bool
    key: PathPart = 0
    awaits_key: bool = False
    seen: dict[PathPart, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Scan:
    starts: list[int]
    findings: list[Finding] = field(default_factory=list)
    levels: list[_Level] = field(default_factory=list)

    def token(self, token: str, offset: int) -> None:
        first = token[0]
        if first in "]}":
            self.levels.pop()
            self._leave()
        elif first in "[{":
            self.levels.append(_Level(first == "{", awaits_key=first == "{"))
        elif self.levels and self.levels[-1].awaits_key:
            self._key(self.levels[-1], json.loads(token), offset)
        else:
            self._check(token, offset)
            self._leave()

    def _key(self, level: _Level, key: str, offset: int) -> None:
        level.key, level.awaits_key = key, False
        self._check_text(key, offset)
        first = level.seen.setdefault(key, offset)
        if first != offset:
            self._found(DUPLICATE_KEY, offset, key=key, first=place_in(self.starts, first)[0])

    def _leave(self) -> None:
        """Note that a value has ended: what comes next belongs to the next key or index."""
        if not self.levels:
            return
        level = self.levels[-1]
        if isinstance(level.key, int) and not level.is_object:
            level.key += 1
        level.awaits_key = level.is_object

    def _check(self, token: str, offset: int) -> None:
        if token[0] == '"':
            self._check_text(json.loads(token), offset)
        elif token in ("NaN", "Infinity", "-Infinity"):
            self._found(BAD_CHARACTER, offset, problem=f"{token}, which is not a JSON number")
        elif token not in ("true", "false", "null"):
            is_integer = token.lstrip("-").isdecimal()
            if len(token) > MAX_NUMBER_CHARS if is_integer else math.isinf(float(token)):
                self._found(BAD_CHARACTER, offset, problem="a number that fits no field")

    def _check_text(self, value: str, offset: int) -> None:
        if "\0" in value:
            self._found(BAD_CHARACTER, offset, problem="the character U+0000")
        elif not _encodable(value):
            self._found(BAD_CHARACTER, offset, problem="half of a surrogate pair")

    def _found(self, code: Code, offset: int, **values: object) -> None:
        path = tuple(level.key for level in self.levels if not level.awaits_key)
        line, column = place_in(self.starts, offset)
        self.findings.append(at(code.filled(values, pointer=pointer_of(path)), line, column))


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
