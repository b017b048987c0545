"""At which line of its YAML a part of a stored resource stands, without writing that YAML.

Counts what `sensitive.to_json` and `yaml_out.yaml_of` write together: a line for each member and each item, and one for
most texts. Only a text that would be folded or has several lines, and free JSON, is written to count its lines.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import accumulate
from typing import Any, Final, NamedTuple

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from xdscore.schema.alike import alike
from xdscore.schema.positions import Path
from xdscore.schema.sensitive import marked_shape
from xdscore.schema.shapes import ANY, LIST_VALUE, SPECIAL, VALUE
from xdscore.schema.text import Tree
from xdscore.schema.types_registry import kept, schema
from xdscore.schema.walk import AnyMessage, unpack
from xdscore.schema.yaml_out import WIDTH, yaml_of

_FREE: Final = frozenset({VALUE, LIST_VALUE, "google.protobuf.Struct"})
_STRING: Final = "google.protobuf.StringValue"
_MAX_SIMPLE_KEY: Final = 128  # what PyYAML writes behind a `?`, on lines of its own, is not shorter
_HIDDEN: Final = "<kept>"


class _Kind(Enum):
    """How the value of a field is written."""

    LINE = auto()  # on one line, whatever it is
    TEXT = auto()
    MESSAGE = auto()
    ANY = auto()
    FREE = auto()  # JSON without a schema
    MAP = auto()


@dataclass(frozen=True, slots=True)
class _Shape:
    """A field as it is written. `secret`: what it holds is hidden. `item`: of a map, what its values are."""

    name: str
    kind: _Kind
    repeated: bool = False
    secret: bool = False
    item: "_Shape | None" = None


class _Held(NamedTuple):
    """A value of a field, how many mappings are around it, and whether it is hidden."""

    shape: _Shape
    value: Any
    depth: int
    secret: bool


@dataclass(slots=True)
class Lines:
    """The lines of one stored resource in the YAML of its manifest. `message`: the resource. `wrapped`: how many lines
    stand above it where it is written in a Resource wrapper; 0: it is not.
    """

    message: AnyMessage
    wrapped: int = 0
    _ends: dict[Path, "array[int]"] = field(default_factory=dict)
    _unpacked: dict[Path, AnyMessage] = field(default_factory=dict)
    _lists: dict[Path, tuple[_Held, int]] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """The path of the resource in its manifest."""
        return ("resource",) if self.wrapped else ()

    def at(self, path: Path) -> int:
        """The line, counted from 1, of the value at `path` in the resource; of the nearest value around it where there
        is none such.
        """
        if not path:
            return max(self.wrapped, 1)
        for done in range(len(path) - 1, 0, -1):  # many questions are about items of one list
            if (known := self._lists.get(path[:done])) is not None:
                return self._in_member(*known, path, done)
        kind = self.wrapped + 1  # the line of its type, behind which its members stand
        return self._in_message(self.message, (kind, kind + 1, int(bool(self.wrapped)), False), path, 0)

    def _in_message(self, message: AnyMessage, where: tuple[int, int, int, bool], path: Path, done: int) -> int:
        """The line of `path[done:]` in a message. `where`: its own line, the line of its first member, how many
        mappings are around that, and whether it is hidden.
        """
        own, line, depth, secret = where
        for each in _members(message, depth, secret):
            if each.shape.name == path[done]:
                return line if done + 1 == len(path) else self._in_member(each, line, path, done + 1)
            line += self._size(each, path[:done])
        return own

    def _size(self, member: _Held, path: Path) -> int:
        """How many lines a member of the message at `path` has; of lists that is remembered."""
        if not member.shape.repeated:
            return _lines(member.shape, member.value, member.depth, member.secret)
        return 1 + self._ends_of(member, (*path, member.shape.name))[-1]

    def _in_member(self, member: _Held, line: int, path: Path, done: int) -> int:
        """The line of `path[done:]` in the value of a member whose name stands on `line`."""
        part, shape, value = path[done], member.shape, member.value
        if shape.repeated:
            if not isinstance(part, int) or not 0 <= part < len(value):
                return line
            self._lists[path[:done]] = (member, line)
            own = line + 1 + (self._ends_of(member, path[:done])[part - 1] if part else 0)
            return self._in_value(_Held(shape, value[part], member.depth, member.secret), own, own, path, done + 1)
        if shape.kind is not _Kind.MAP:
            return self._in_value(member, line, line + 1, path, done)
        below = line + 1
        for each in _entries(shape, value, member.depth, member.secret):
            if each.shape.name == part:
                return self._in_value(each, below, below + _key_lines(each), path, done + 1)
            below += _entry_lines(each)
        return line

    def _in_value(self, each: _Held, own: int, first: int, path: Path, done: int) -> int:
        message, kind = each.value, each.shape.kind
        if done == len(path) or kind not in {_Kind.MESSAGE, _Kind.ANY}:
            return own
        if kind is _Kind.ANY:
            message, first = self._inside(message, path[:done]), first + 1  # behind its type
            if message is None:
                return own
            if message.DESCRIPTOR.full_name in SPECIAL:
                return first if path[done] == "value" else own
        return self._in_message(message, (own, first, each.depth + 1, each.secret), path, done)

    def _inside(self, packed: AnyMessage, path: Path) -> AnyMessage | None:
        """The message in an Any, remembered."""
        if path not in self._unpacked:
            self._unpacked[path] = unpack(packed)
        return self._unpacked[path]

    def _ends_of(self, member: _Held, path: Path) -> "array[int]":
        """After how many lines each item of a list ends, kept for the next question."""
        if path not in self._ends:
            self._ends[path] = array("L", accumulate(_sizes(member)))
        return self._ends[path]


def lines_above(*, named: bool, ttl: bool) -> int:
    """How many lines a Resource wrapper has above what it holds: its type, a name, a ttl, and `resource`."""
    return 2 + named + ttl


def _members(message: AnyMessage, depth: int, secret: bool) -> Iterator[_Held]:
    shapes = _shapes(message.DESCRIPTOR)
    for each, value in message.ListFields():
        shape = shapes[each.number]
        yield _Held(shape, value, depth, secret or shape.secret)


def _entries(shape: _Shape, value: Any, depth: int, secret: bool) -> Iterator[_Held]:
    """The entries of a map, each as if it were a member."""
    if shape.item is None:
        return
    for key in sorted(value, key=str):
        name = str(key).lower() if isinstance(key, bool) else str(key)
        yield _Held(_Shape(name, shape.item.kind), value[key], depth + 1, secret)


def _block(message: AnyMessage, depth: int, secret: bool) -> int:
    """How many lines the members of a message have."""
    shapes = _shapes(message.DESCRIPTOR)
    lines = 0
    for each, value in message.ListFields():
        shape = shapes[each.number]
        lines += _lines(shape, value, depth, secret or shape.secret)
    return lines


def _any_block(packed: AnyMessage, depth: int, secret: bool) -> int:
    if not packed.type_url:
        return 0
    inner = unpack(packed)
    if inner is None:
        return 2
    name = inner.DESCRIPTOR.full_name
    if name in SPECIAL:
        return 1 + _lines(_Shape("value", _kind(name)), inner, depth, secret)
    return 1 + _block(inner, depth, secret)


def _lines(shape: _Shape, value: Any, depth: int, secret: bool) -> int:
    """How many lines a member has, with its name; a message without members is written behind that."""
    kind = shape.kind
    if shape.repeated:
        return 1 + sum(_item_lines(shape, each, depth, secret) for each in value)
    if kind is _Kind.LINE or (kind is _Kind.TEXT and secret):
        return 1
    if kind is _Kind.TEXT:
        return _text_lines(value, depth, shape.name)
    if kind is _Kind.FREE:
        return _written(_free(value, secret), depth, shape.name)
    if kind is _Kind.MAP:
        return 1 + sum(map(_entry_lines, _entries(shape, value, depth, secret)))
    return 1 + (_block if kind is _Kind.MESSAGE else _any_block)(value, depth + 1, secret)


def _sizes(member: _Held) -> Iterator[int]:
    """How many lines each item of a list has; of messages that are alike, one is counted for all."""
    shape, depth, secret = member.shape, member.depth, member.secret
    if shape.kind is not _Kind.MESSAGE:
        return (_item_lines(shape, each, depth, secret) for each in member.value)
    keys = alike(member.value)
    one_of = dict(zip(keys, member.value, strict=True))
    lines = {key: _item_lines(shape, each, depth, secret) for key, each in one_of.items()}
    return map(lines.__getitem__, keys)


def _item_lines(shape: _Shape, value: Any, depth: int, secret: bool) -> int:
    """How many lines an item of a list has; its first member stands behind the dash."""
    kind = shape.kind
    if kind is _Kind.MESSAGE:
        return _block(value, depth + 1, secret) or 1
    if kind is _Kind.TEXT:
        return 1 if secret else _text_lines(value, depth, "")
    if kind is _Kind.ANY:
        return _any_block(value, depth + 1, secret) or 1
    return 1 if kind is _Kind.LINE else _written([_free(value, secret)], depth, "list") - 1


def _entry_lines(entry: _Held) -> int:
    lines = _lines(entry.shape, entry.value, entry.depth, entry.secret)
    return lines if _is_simple(entry.shape.name) else _key_lines(entry) + max(lines - 1, 1)


def _key_lines(entry: _Held) -> int:
    """How many lines stand before the first of what the key of a map stands for."""
    key = entry.shape.name
    return 1 if _is_simple(key) else _written(["item"], entry.depth, key) - 1


def _is_simple(key: str) -> bool:
    return bool(key) and len(key) < _MAX_SIMPLE_KEY and key.isprintable()


def _text_lines(value: Any, depth: int, name: str) -> int:
    text: str = value if isinstance(value, str) else value.value
    if text.isprintable() and (" " not in text or 2 * depth + len(name) + len(text) + 4 <= WIDTH):
        return 1
    return _written(text, depth, name) if name else _written([text], depth, "list") - 1


def _free(value: AnyMessage, secret: bool) -> Tree:
    tree: Tree = json_format.MessageToDict(value, descriptor_pool=schema().pool)
    return _hidden(tree) if secret else tree


def _hidden(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {key: _hidden(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_hidden(value) for value in tree]
    return _HIDDEN if tree and isinstance(tree, str) else tree


def _written(tree: Tree, depth: int, name: str) -> int:
    """How many lines a member with this name and value has inside of so many mappings."""
    whole: Tree = {name: tree}
    for _ in range(depth):
        whole = {"m": whole}
    return yaml_of(whole).count("\n") - depth


@kept
def _shapes(descriptor: Descriptor) -> dict[int, _Shape]:
    """How each field of a message is written, by its number."""
    secret = marked_shape(descriptor).tags.keys()
    return {each.number: _shape(each, each.name in secret) for each in descriptor.fields}


def _shape(each: FieldDescriptor, secret: bool) -> _Shape:
    held = each.message_type
    if held is None:
        text = each.type == FieldDescriptor.TYPE_STRING
        return _Shape(each.name, _Kind.TEXT if text else _Kind.LINE, each.is_repeated, secret)
    if held.GetOptions().map_entry:
        return _Shape(each.name, _Kind.MAP, secret=secret, item=_shape(held.fields_by_name["value"], secret))
    return _Shape(each.name, _kind(held.full_name), each.is_repeated, secret)


def _kind(message: str) -> _Kind:
    if message == ANY:
        return _Kind.ANY
    if message == _STRING:
        return _Kind.TEXT
    if message in _FREE:
        return _Kind.FREE
    return _Kind.LINE if message in SPECIAL else _Kind.MESSAGE
