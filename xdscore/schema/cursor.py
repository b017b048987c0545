"""Where in a half-written manifest somebody is typing: which keys lead there, and what stands beside. Pure.

A text that is being typed is no YAML and no JSON yet, so it is not parsed: in YAML indentation says what belongs to
what, in JSON the brackets that are open do. What is not understood, such as YAML's flow style, gives no place, and so
no suggestions; nothing here is ever an error.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

TYPE_KEY: Final = "@type"
# A cursor deeper than this is nowhere that a manifest may be.
_MAX_DEPTH: Final = 100

_DASHES: Final = re.compile(r"\s*(?:- +)*")
# No part can give back what another could take instead, so that no line, however long, is read more than twice.
_KEY: Final = re.compile(r"""(?:"([^"]*)" *|'([^']*)' *|([^\s"'#{\[][^:#]*)):(?: +|$)""")
# Names of resources may hold nearly anything, such as `outbound|80||pay`.
_WORD: Final = re.compile(r"""["']?([^\s"'#{}\[\],]*)$""")


@dataclass(frozen=True, slots=True)
class Level:
    """A mapping around the cursor: the key under which it stands (empty for the outermost; in a list, the key of the
    list), its `@type`, and the keys it has so far.
    """

    key: str
    type_url: str = ""
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """What is being typed at the cursor: `word` is the beginning of a key or, if `value_of` names a key, of the value
    of that key. `levels` are the mappings around it, from the outermost to the innermost.
    """

    levels: tuple[Level, ...]
    word: str
    value_of: str = ""


def place_of(before: str) -> Place | None:
    """What is being typed at the end of `before`, the text that stands before the cursor; None where nothing can be
    suggested.
    """
    return _json_place(before) if before.lstrip()[:1] in ("{", "[") else _yaml_place(before)


@dataclass(slots=True)
class _Open:
    """A mapping that has begun and not ended where reading stands. `values`: its keys, each with its value; empty where
    that does not stand on the same line.
    """

    key: str = ""
    values: dict[str, str] = field(default_factory=dict)

    def level(self) -> Level:
        """The mapping with the keys read so far, as a level."""
        return Level(self.key, self.values.get(TYPE_KEY, ""), frozenset(self.values))


def _yaml_place(before: str) -> Place | None:
    *above, line = before.split("\n")
    start = _DASHES.match(line)
    lead = start.end() if start is not None else 0
    key = _KEY.match(line, lead)
    rest = line[key.end() :] if key is not None else line[lead:]
    word = _WORD.fullmatch(rest)
    if word is None:
        return None
    levels = _yaml_levels(above, line[:lead], lead)
    if levels is None:
        return None
    return Place(levels, word[1], _name(key) if key is not None else "")


def _yaml_levels(above: list[str], dashes: str, column: int) -> tuple[Level, ...] | None:
    """The mappings around the cursor, read from the last of the lines above it upwards; None when they nest too deeply.
    `column` is where the cursor's key begins, `dashes` what stands before it on its line.
    """
    found = [_Open()]
    mapping, item = column, dashes.find("-")  # where its keys stand; where the dash of its list item does, or -1
    for line in reversed(above):
        if line.startswith("---"):
            break
        lead = _DASHES.match(line)
        start = lead.end() if lead is not None else 0
        key = _KEY.match(line, start)
        if key is None:
            continue
        dash, value = line[:start].find("-"), line[key.end() :].strip()
        if item < 0 and start == mapping:
            found[-1].values[_name(key)] = value.strip("\"'")
            item = dash
        elif not value and start < mapping and (item < 0 or (start <= item and dash < item)):
            # A list may stand as far left as the key it belongs to.
            found[-1].key = _name(key)
            found.append(_Open(values={_name(key): ""}))
            mapping, item = start, dash
        if len(found) > _MAX_DEPTH:
            return None
    return tuple(each.level() for each in reversed(found))


def _name(key: re.Match[str]) -> str:
    return next(part for part in key.groups() if part is not None).strip()


_JSON_TOKEN: Final = re.compile(r'"(?P<string>(?:[^"\\\n]|\\.)*)(?P<closed>"?)|(?P<sign>[{}\[\]:,])|[^"{}\[\]:,]+')


@dataclass(slots=True)
class _Json:
    """The lists and mappings of a JSON text that have begun and not ended where reading stands.

    stack: the mappings, from the outermost to the innermost, with None in the place of a list.
    under: for each of them, the key under which it stands.
    key: the key read last.
    valued: whether a value comes next, not a key.
    """

    stack: list[_Open | None] = field(default_factory=list)
    under: list[str] = field(default_factory=list)
    key: str = ""
    valued: bool = False

    @property
    def inside(self) -> _Open | None:
        return self.stack[-1] if self.stack else None

    @property
    def outermost(self) -> _Open | None:
        """The mapping that is open, where it is in no other one."""
        return self.inside if self.inside is not None and sum(each is not None for each in self.stack) == 1 else None

    def string(self, text: str) -> None:
        """Take in a whole string, which is a key or a value."""
        if self.inside is None:
            return
        if self.valued:
            self.inside.values[self.key] = text
        else:
            self.key = text
            self.inside.values.setdefault(text, "")

    def sign(self, sign: str) -> None:
        """Take in a sign: a bracket, a comma or a colon."""
        match sign:
            case "{" | "[":
                # What stands in a list stands under the key of the list.
                self.under.append(self.under[-1] if self.stack and self.inside is None else self.key)
                self.stack.append(_Open(self.under[-1]) if sign == "{" else None)
                self.valued = sign == "["
            case "}" | "]":
                del self.stack[-1:], self.under[-1:]
                self.valued = self.inside is None
            case ":":
                self.valued = True
            case _:
                self.valued = self.inside is None


def _json_place(before: str) -> Place | None:
    """What is being typed at the end of a JSON text; None outside of a string, because nothing else is suggested."""
    open_now = _Json()
    for token in _JSON_TOKEN.finditer(before):
        if token["sign"]:
            open_now.sign(token["sign"])
        elif token["string"] is not None and token["closed"]:
            open_now.string(token["string"])
        elif token["string"] is not None:
            levels = tuple(each.level() for each in open_now.stack if each is not None)
            inside = token.end() == len(before) and open_now.inside is not None and _WORD.fullmatch(token["string"])
            return Place(levels, token["string"], open_now.key if open_now.valued else "") if inside else None
        if len(open_now.stack) > _MAX_DEPTH:
            return None
    return None


def outermost(text: str) -> Iterator[Mapping[str, str]]:
    """The texts that stand in each outermost mapping of a half-written text, by their keys: in each document, and in
    each item of a list.
    """
    return _json_outermost(text) if text.lstrip()[:1] in ("{", "[") else _yaml_outermost(text)


def _yaml_outermost(text: str) -> Iterator[Mapping[str, str]]:
    column, found = -1, dict[str, str]()
    for line in text.split("\n"):
        if line.startswith("---"):
            yield found
            column, found = -1, {}
            continue
        lead = _DASHES.match(line)
        start = lead.end() if lead is not None else 0
        key = _KEY.match(line, start)
        if key is None:
            continue
        column = start if column < 0 else column
        if start != column:
            continue
        if "-" in line[:start]:
            yield found
            found = {}
        found[_name(key)] = line[key.end() :].partition(" #")[0].strip().strip("\"'")
    yield found


def _json_outermost(text: str) -> Iterator[Mapping[str, str]]:
    open_now = _Json()
    for token in _JSON_TOKEN.finditer(text):
        if token["sign"]:
            if token["sign"] == "}" and open_now.outermost is not None:
                yield open_now.outermost.values
            open_now.sign(token["sign"])
        elif token["string"] is not None:
            open_now.string(token["string"])
        if len(open_now.stack) > _MAX_DEPTH:
            return
    yield from (each.values for each in open_now.stack[:2] if each is not None)
