"""Small changes of sound resources that keep each field's own form and may spoil the meaning, in a fixed order.

What a place may hold is read from the API's descriptors: other choices of an enum or a oneof, fields that are not
given. What texts mean is guessed from how they look: a name of a host, a header, a format. Nothing here knows the rules
of Parley.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from xdscore.schema.types_registry import descriptor_of, message_name

Steps = tuple[str | int, ...]
_WRAPPED = "google.protobuf."
_SCALARS = {
    **dict.fromkeys(("BoolValue",), FieldDescriptor.TYPE_BOOL),
    **dict.fromkeys(("UInt32Value", "UInt64Value", "Int32Value", "Int64Value"), FieldDescriptor.TYPE_UINT32),
    **dict.fromkeys(("DoubleValue", "FloatValue"), FieldDescriptor.TYPE_DOUBLE),
    "StringValue": FieldDescriptor.TYPE_STRING,
}
_FLOATS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
_NUMBERS = (0, 1, 2, 4, 7, 100, 599, 1000, 65535, 65536, 65537, 5_000_011, 2_147_483_647, 4_294_967_295)
_DURATIONS = ("0s", "0.000000001s", "0.001s", "0.9s", "86400s", "315576000000s", "-0.001s")
_FORMATS = (
    "%NOPE%",
    "%",
    "100%",
    "a%%b",
    "%REQ%",
    "%REQ(x-a)%",
    "%REQ(x?y?z)%",
    "%PROTOCOL(x)%",
    "%DOWNSTREAM_LOCAL_PORT%",
)
_NAMES = (":path", ":authority", "Host", "host", "X-A", "a b")
_HOSTS = ("*", "*.example.com", "a*.com", "example.*", "EXAMPLE.com", "example.com:80", "a..b", "localhost")
_ADDRESSES = ("localhost", "example.com", "0.0.0.0", "::", "::1", "::ffff:10.0.0.1", "10.0.0.256", "10.0.0.1/8")  # noqa: S104
_OTHER_TEXTS = ("%NOPE%", "*", "a b", "/a//b/../c", "?a=b#c", "{a}", "Ünïcode", "UPPER")


@dataclass(frozen=True, slots=True)
class _Place:
    """One value of a tree with the field that holds it; `item` where it is an item of a list or map."""

    path: Steps
    value: Any
    field: FieldDescriptor
    item: bool = False


def spoiled(tree: dict[str, Any], message: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every semantic mutation of `tree`, which is a message of the type `message`: what was done, and the tree after
    it.
    """
    descriptor = descriptor_of(message)
    if descriptor is None:
        raise KeyError(message)
    for path, given, kind in _messages(tree, descriptor, ()):
        for title, other in _message_spoiled(given, kind):
            yield f"{_label(path)} {title}", _with(tree, path, other)
    for place in _places(tree, descriptor, ()):
        for title, other in _value_spoiled(place):
            yield f"{_label(place.path)} {title}", _with(tree, place.path, other)


def _label(path: Steps) -> str:
    return "/".join(map(str, path))


def _with(tree: dict[str, Any], path: Steps, value: Any) -> dict[str, Any]:
    changed = {"": copy.deepcopy(tree)}
    target: Any = changed
    steps: Steps = ("", *path)
    for part in steps[:-1]:
        target = target[part]
    target[steps[-1]] = copy.deepcopy(value)
    found: dict[str, Any] = changed[""]
    return found


def _messages(tree: Any, kind: Descriptor, path: Steps) -> Iterator[tuple[Steps, dict[str, Any], Descriptor]]:
    """Every message of the tree that is written as an object of its fields."""
    yield path, tree, kind
    for place in _fields(tree, kind, path):
        inside = _held(place)
        if inside is not None:
            yield from _messages(place.value, inside, place.path)


def _places(tree: Any, kind: Descriptor, path: Steps) -> Iterator[_Place]:
    for place in _fields(tree, kind, path):
        yield place
        inside = _held(place)
        if inside is not None:
            yield from _places(place.value, inside, place.path)


def _fields(tree: dict[str, Any], kind: Descriptor, path: Steps) -> Iterator[_Place]:
    for key, value in tree.items():
        field = kind.fields_by_name.get(key)
        if field is None:
            continue
        yield _Place((*path, key), value, field)
        if _is_map(field):
            entry = field.message_type
            inside = entry.fields_by_name["value"] if entry is not None else field
            yield from (_Place((*path, key, name), item, inside, item=True) for name, item in value.items())
        elif isinstance(value, list):
            yield from (_Place((*path, key, index), item, field, item=True) for index, item in enumerate(value))


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _held(place: _Place) -> Descriptor | None:
    """The type of the message that is written out at a place; None where none is."""
    kind = place.field.message_type
    if kind is None or not isinstance(place.value, dict) or (_is_map(place.field) and not place.item):
        return None
    if kind.full_name == "google.protobuf.Any":
        return descriptor_of(message_name(place.value.get("@type", "")))
    return None if kind.full_name.startswith(_WRAPPED) else kind


def _message_spoiled(given: dict[str, Any], kind: Descriptor) -> Iterator[tuple[str, dict[str, Any]]]:
    """The message with one field more: in place of its oneof's chosen one, or beside the others."""
    for field in kind.fields:
        if field.name in given:
            continue
        choice = field.containing_oneof
        members = {each.name for each in choice.fields} if choice is not None else set()
        kept = {key: value for key, value in given.items() if key not in members}
        how = "instead" if len(kept) < len(given) else "added"
        for value in _plausible(field):
            yield f"{how} {field.name}={value!r}", {**kept, field.name: value}


def _plausible(field: FieldDescriptor) -> Iterator[Any]:
    if _is_map(field):
        return
    for value in _one(field):
        yield [value] if field.is_repeated else value


def _one(field: FieldDescriptor) -> Iterator[Any]:
    kind = field.message_type
    name = kind.full_name.removeprefix(_WRAPPED) if kind is not None else ""
    scalar = _SCALARS.get(name, field.type)
    if name == "Duration":
        yield from ("1s", "0s")
    elif name in ("Any", "Struct", "Value", "ListValue", "Timestamp", "Empty"):
        return
    elif scalar == FieldDescriptor.TYPE_MESSAGE:
        yield {}
    elif scalar == FieldDescriptor.TYPE_BOOL:
        yield True
    elif scalar == FieldDescriptor.TYPE_ENUM and field.enum_type is not None:
        yield field.enum_type.values[-1].name
    elif scalar == FieldDescriptor.TYPE_STRING:
        yield "x"
    elif scalar == FieldDescriptor.TYPE_BYTES:
        yield "eA=="
    else:
        yield 3


def _value_spoiled(place: _Place) -> Iterator[tuple[str, Any]]:
    value, field = place.value, place.field
    if isinstance(value, list):
        yield from _list_spoiled(value)
    elif isinstance(value, bool):
        yield "flipped", not value
    elif field.type == FieldDescriptor.TYPE_ENUM and field.enum_type is not None:
        yield from ((f"={each.name}", each.name) for each in field.enum_type.values if each.name != value)
    elif isinstance(value, str):
        others = _DURATIONS if _is_duration(field) else _texts(value)
        yield from ((f"={other!r}", other) for other in others if other != value)
    elif isinstance(value, int | float):
        yield from ((f"={other}", other) for other in _NUMBERS if other != value)


def _is_duration(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Duration"


def _list_spoiled(items: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    for index, item in enumerate(items):
        yield f"again {index}", [*items, item]
        other = _other_case(item)
        if other != item:
            yield f"again {index} in another case", [*items, other]
        renamed = _renamed(item)
        if renamed != item:
            yield f"again {index} under another name", [*items, renamed]
        if len(items) > 1:
            yield f"without {index}", items[:index] + items[index + 1 :]
    if len(items) > 1:
        yield "reversed", items[::-1]


def _other_case(item: Any) -> Any:
    """An item with its own texts, not those of what it holds, in the other case."""
    if isinstance(item, str):
        return item.swapcase()
    if not isinstance(item, dict):
        return item
    return {
        key: value.swapcase() if isinstance(value, str) and key != "@type" else value for key, value in item.items()
    }


def _renamed(item: Any) -> Any:
    return {**item, "name": f"{item['name']}-2"} if isinstance(item, dict) and "name" in item else item


def _texts(value: str) -> Iterator[str]:
    yield value.swapcase()
    yield from _FORMATS
    if "." in value or ":" in value:
        yield from _ADDRESSES
        yield from _HOSTS
    elif value.startswith(("x-", ":")) or value.islower():
        yield from _NAMES
        yield from _HOSTS[:3]
    yield from _OTHER_TEXTS
