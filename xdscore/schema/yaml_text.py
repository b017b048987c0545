"""YAML to plain trees: the part of YAML 1.2 that says what JSON says, and nothing that says more.

Read event by event from libyaml with a stack of our own: aliases are refused before they cost anything, depth and size
while reading (reliability threat 12; dependencies.md fact 7). Plain scalars follow the YAML 1.2 core schema, not YAML
1.1: `on`, `off`, `yes`, dates and `1:30` are strings. A scalar that JSON could not say without loss (leading zeros,
over 40 digits, `.inf`) stays the string it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from xdscore.codes import Code
from xdscore.findings import Finding
from xdscore.schema.codes import BAD_CHARACTER, DUPLICATE_KEY, SYNTAX, TEXT_LIMIT, YAML_FEATURE
from xdscore.schema.positions import Path, PathPart, Place, Positions, pointer_of
from xdscore.schema.text import MAX_TEXT_FINDINGS, Document, ManifestLimits, Media, TextRead, Tree, at

_CORE = "tag:yaml.org,2002:"
_LITERALS: dict[str, Tree] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,39})")
_PREFIXED = re.compile(r"0o[0-7]{1,22}|0x[0-9a-fA-F]{1,16}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:[eE][-+]?[0-9]{1,2})?")
_TAG_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}


@dataclass(slots=True)
class _Open:
    """A list or object that has begun and not ended; `key` is the member or index that the next value belongs to."""

    value: "list[Tree] | dict[str, Tree]"
    place: Place
    key: PathPart = ""
    key_place: Place | None = None


class _StopError(Exception):
    """The text cannot be read further; the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.detail)
        self.finding = finding


@dataclass(slots=True)
class _Reader:
    """One pass over the events of a YAML text, which builds its documents. A finding does not end it, unless nothing
    can be read after that.
    """

    limits: ManifestLimits
    documents: list[Document] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    stack: list[_Open] = field(default_factory=list)
    root: Tree = None
    root_place: Place = field(default_factory=lambda: Place(1, 1))
    number: int = 0
    nodes: int = 0

    def read(self, events: Iterator[yaml.Event]) -> None:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._open(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
            elif isinstance(event, yaml.AliasEvent):
                raise self._stop(YAML_FEATURE, event, feature=f"the alias '*{event.anchor}'")
            elif isinstance(event, yaml.DocumentStartEvent):
                self.root, self.root_place = None, _place_of(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                self._close_document()

    def _close_document(self) -> None:
        if self.root is not None:
            self.documents.append(Document(self.root, self.number, Positions(self.root_place.locate)))
        self.number += 1

    def _open(self, event: "yaml.MappingStartEvent | yaml.SequenceStartEvent") -> None:
        self._admit(event)
        if self._wants_key():
            raise self._stop(YAML_FEATURE, event, feature="a list or object as a key")
        if len(self.stack) >= self.limits.max_depth:
            raise self._stop(
                TEXT_LIMIT, event, problem="nests too deeply here", limit=f"{self.limits.max_depth} levels are"
            )
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _CORE + ("map" if mapping else "seq")):
            raise self._stop(YAML_FEATURE, event, feature=f"the tag '{event.tag}'")
        value: list[Tree] | dict[str, Tree] = {} if mapping else []
        place = self._place(value, event)
        self.stack.append(_Open(value, place))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._admit(event)
        if "\0" in event.value:
            self._found(BAD_CHARACTER, event, problem="the character U+0000")
        if self._wants_key():
            self._key(event)
        else:
            self._place(self._resolved(event), event)

    def _key(self, event: yaml.ScalarEvent) -> None:
        """Take in a key of a mapping. Its text is used as written, so that `80:` is the key "80"."""
        top = self.stack[-1]
        top.key = event.value
        plain = event.implicit[0]
        if event.tag not in (None, "!", _CORE + "str"):
            raise self._stop(YAML_FEATURE, event, feature=f"the tag '{event.tag}' on a key")
        if plain and event.value == "<<":
            raise self._stop(YAML_FEATURE, event, feature="the merge key '<<'")
        top.key_place = _place_of(event)
        first = top.place.children.get(event.value)
        if first is not None:
            self._found(DUPLICATE_KEY, event, key=event.value, first=first.line)

    def _place(self, value: Tree, event: "yaml.NodeEvent") -> Place:
        """Put a value into the list or mapping that is open, or make it the document; returns its place in the text."""
        place = _place_of(event)
        if not self.stack:
            self.root, self.root_place = value, place
            return place
        top = self.stack[-1]
        if isinstance(top.value, dict):
            place = top.key_place or place
            top.key_place = None
            top.value[str(top.key)] = value
        else:
            top.key = len(top.value)
            top.value.append(value)
        top.place.children[top.key] = place
        return place

    def _wants_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key_place is None

    def _admit(self, event: "yaml.NodeEvent") -> None:
        if event.anchor is not None:
            raise self._stop(YAML_FEATURE, event, feature=f"the anchor '&{event.anchor}'")
        self.nodes += 1
        if self.nodes > self.limits.max_nodes:
            raise self._stop(
                TEXT_LIMIT, event, problem="holds too many values", limit=f"{self.limits.max_nodes} values are"
            )

    def _resolved(self, event: yaml.ScalarEvent) -> Tree:
        tag, value = event.tag, event.value
        if tag is None:
            return _plain(value) if event.implicit[0] else value
        if tag in ("!", _CORE + "str"):
            return value
        wanted = _TAG_TYPES.get(tag.removeprefix(_CORE), ())
        result = _plain(value)
        if not isinstance(result, wanted) or (isinstance(result, bool) and bool not in wanted):
            raise self._stop(YAML_FEATURE, event, feature=f"the tag '{tag}'")
        return result

    def _found(self, code: Code, event: "yaml.NodeEvent", **values: object) -> None:
        if len(self.findings) < MAX_TEXT_FINDINGS:
            self.findings.append(self._finding(code, event, **values))

    def _stop(self, code: Code, event: "yaml.NodeEvent", **values: object) -> _StopError:
        return _StopError(self._finding(code, event, **values))

    def _finding(self, code: Code, event: "yaml.NodeEvent", **values: object) -> Finding:
        found = code.filled(values, pointer=pointer_of(self._path()))
        place = _place_of(event)
        return at(found, place.line, place.column)

    def _path(self) -> Path:
        parts: list[PathPart] = []
        for entry in self.stack:
            if isinstance(entry.value, list):
                inside = entry is not self.stack[-1]
                parts.append(len(entry.value) - 1 if inside else len(entry.value))
            elif entry.key_place is not None or entry is not self.stack[-1] or entry.key != "":
                parts.append(entry.key)
        return tuple(parts)


def read_yaml(text: str, limits: ManifestLimits) -> TextRead:
    """Every document of a YAML text. Empty documents are left out, but count in the numbers of the others."""
    reader = _Reader(limits)
    try:
        reader.read(_events(text))
    except _StopError as stop:
        reader.findings.append(stop.finding)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        found = SYNTAX.finding(
            "", media=Media.YAML.title, problem=error.problem or error.context or "it ends too early"
        )
        reader.findings.append(at(found, mark.line + 1, mark.column + 1) if mark else found)
    except yaml.reader.ReaderError as error:
        reader.findings.append(_character_finding(error, text))
    if reader.findings:
        return TextRead((), tuple(reader.findings))
    return TextRead(tuple(reader.documents), ())


def _events(text: str) -> Iterator[yaml.Event]:
    loader = yaml.CSafeLoader(text)
    try:
        while True:
            event = loader.get_event()
            if event is None or isinstance(event, yaml.StreamEndEvent):
                return
            yield event
    finally:
        loader.dispose()


def _place_of(event: yaml.Event) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1) if mark is not None else Place(0, 0)


def _character_finding(error: yaml.reader.ReaderError, text: str) -> Finding:
    """The finding about a character that YAML forbids. Libyaml says which character it stopped at but not the line; it
    is the first such character in the text.
    """
    number = error.character if isinstance(error.character, int) else ord(str(error.character)[:1] or "\0")
    offset = max(text.find(chr(number)), 0)
    found = BAD_CHARACTER.finding("", problem=f"the control character U+{number:04X}")
    return at(found, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _plain(text: str) -> Tree:
    """The value of an unquoted scalar by the YAML 1.2 core schema: null, a boolean, a number or the string itself."""
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _PREFIXED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) and not _has_leading_zero(text):
        return float(text)
    return text


def _has_leading_zero(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
