"""What may be written where somebody types: the fields of the message, the values of an enum, the types of an `@type`,
the names of resources that a field may name.

From the descriptors that validate, so that what is suggested is what is taken.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from xdscore.resource_types import RESOURCE_TYPES, TYPE_URL_PREFIX, ResourceType
from xdscore.schema.cursor import TYPE_KEY, Level, Place, outermost, place_of
from xdscore.schema.pool import Schema
from xdscore.schema.references import kind_named_in
from xdscore.schema.shapes import ANY, SPECIAL, WRAPPERS
from xdscore.schema.types_registry import descriptor_of, kept, schema
from xdscore.schema.yaml_out import yaml_of

MAX_SUGGESTIONS: Final = 200


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word that may be written at the cursor. `kind` is "field", "value", "type" or "name"; `detail` says what a
    field holds, and of which type a name is; `plain` is how YAML has a name outside of quotes.
    """

    label: str
    kind: str
    detail: str = ""
    plain: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """The suggestions that may replace `word`, which was typed last."""

    word: str
    suggestions: tuple[Suggestion, ...]


NamesOf = Callable[[ResourceType, str], Mapping[str, str]]
"""Returns the names of resources of a type in which a word stands, each with what there is to say of it; the best
first, MAX_SUGGESTIONS at most.
"""


def _nobody(_kind: ResourceType, _word: str) -> Mapping[str, str]:
    return {}


def completion_of(before: str, *, type_url: str = "", names_of: NamesOf = _nobody) -> Completion | None:
    """The suggestions at the end of `before`, the text that stands before the cursor; None where there are none.

    `type_url`: the type of the resource, for a text that does not say it itself. `names_of`: asked once, where a
    resource is to be named.
    """
    place = place_of(before)
    if place is None:
        return None
    if kind := _kind_named(place, type_url):
        found: Iterator[Suggestion] = _names(kind, names_of(kind, place.word))
    else:
        found = _values(place, type_url) if place.value_of else _fields(place, type_url)
    typed = place.word.lower()
    fitting = [each for each in found if typed in each.label.lower()]
    fitting.sort(key=lambda each: not each.label.lower().startswith(typed))
    return Completion(place.word, tuple(fitting[:MAX_SUGGESTIONS])) if fitting else None


def names_written(text: str, kind: ResourceType) -> tuple[str, ...]:
    """The names that a half-written text gives to resources of this type, in their order."""
    given = (each.get(kind.name_field, "") for each in outermost(text) if each.get(TYPE_KEY) == kind.url)
    return tuple(dict.fromkeys(filter(None, given)))


@dataclass(frozen=True, slots=True)
class _Where:
    """What a mapping of the manifest holds: the fields of `message` (None: of an unknown type) or, if `of_map` is set,
    values of a map, each as that field describes.
    """

    message: Descriptor | None
    of_map: FieldDescriptor | None = None


def _fields(place: Place, type_url: str) -> Iterator[Suggestion]:
    where = _where(place.levels, type_url)
    here = place.levels[-1]
    if where is None or where.of_map is not None:
        return
    outermost = len(place.levels) == 1
    if TYPE_KEY not in here.keys and (outermost or where.message is None or where.message.full_name == ANY):
        yield Suggestion(TYPE_KEY, "field", "the type of what follows")
    if where.message is None or where.message.full_name in SPECIAL:
        return
    for field in where.message.fields:
        # Fields that Envoy keeps for configurations of its second version only.
        if field.name not in here.keys and not field.name.startswith("hidden_envoy_deprecated"):
            yield Suggestion(field.name, "field", _detail(field))


def _kind_named(place: Place, type_url: str) -> ResourceType | None:
    """The type of the resource that is being named at this place: by the value of a key, or by an item of a list."""
    key, levels = place.value_of, place.levels
    if not key and len(levels) > 1:
        key, levels = levels[-1].key, levels[:-1]
    where = _where(levels, type_url) if key and key != TYPE_KEY else None
    field = _field(where, key) if where is not None else None
    if field is None or (not place.value_of and not field.is_repeated):
        return None
    return kind_named_in(field)


def _names(kind: ResourceType, names: Mapping[str, str]) -> Iterator[Suggestion]:
    for name, detail in names.items():
        yield Suggestion(name, "name", detail or kind.title, yaml_of([name])[2:].rstrip("\n"))


def _values(place: Place, type_url: str) -> Iterator[Suggestion]:
    if place.value_of == TYPE_KEY:
        urls = _resource_urls() if len(place.levels) == 1 else _urls(schema())
        yield from (Suggestion(url, "type") for url in urls)
        return
    where = _where(place.levels, type_url)
    field = _field(where, place.value_of) if where is not None else None
    if field is None:
        return
    if field.enum_type is not None:
        yield from (Suggestion(value.name, "value") for value in field.enum_type.values)
    elif field.type == FieldDescriptor.TYPE_BOOL or _is(field, "google.protobuf.BoolValue"):
        yield from (Suggestion(word, "value") for word in ("true", "false"))


def _where(levels: tuple[Level, ...], type_url: str) -> _Where | None:
    """What the innermost of these nested mappings holds; None where one of their keys is unknown. `type_url` is for a
    text that does not say its type.
    """
    where = _Where(_named(levels[0].type_url or type_url))
    for level in levels[1:]:
        field = _field(where, level.key)
        holds = field.message_type if field is not None else None
        if field is None or holds is None:
            return None
        if where.of_map is None and _is_map(field):
            where = _Where(None, holds.fields_by_name["value"])
        elif _is(field, ANY):
            where = _Where(_named(level.type_url) or holds)
        else:
            where = _Where(holds)
    return where


def _field(where: _Where, key: str) -> FieldDescriptor | None:
    if where.of_map is not None:
        return where.of_map
    if where.message is None or where.message.full_name in SPECIAL:
        return None
    by_name = where.message.fields_by_name
    return by_name.get(key) or where.message.fields_by_camelcase_name.get(key)


def _named(type_url: str) -> Descriptor | None:
    return descriptor_of(type_url.rpartition("/")[2]) if type_url else None


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _is(field: FieldDescriptor, full_name: str) -> bool:
    return field.message_type is not None and field.message_type.full_name == full_name


def _detail(field: FieldDescriptor) -> str:
    holds = _holds(field)
    if field.message_type is not None and _is_map(field):
        holds = f"map to {_holds(field.message_type.fields_by_name['value'])}"
    elif field.is_repeated:
        holds = f"list of {holds}"
    return f"{holds}, deprecated" if field.GetOptions().deprecated else holds


def _holds(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        full_name = field.message_type.full_name
        if full_name in WRAPPERS:
            return _holds(field.message_type.fields_by_name["value"])
        return "duration, as 5s" if full_name == "google.protobuf.Duration" else str(field.message_type.name)
    return str(field.enum_type.name) if field.enum_type is not None else _SCALARS.get(field.cpp_type, "string")


_SCALARS: Final = {
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_FLOAT: "number",
    FieldDescriptor.CPPTYPE_INT32: "integer",
    FieldDescriptor.CPPTYPE_INT64: "integer",
    FieldDescriptor.CPPTYPE_UINT32: "integer",
    FieldDescriptor.CPPTYPE_UINT64: "integer",
}


@cache
def _resource_urls() -> tuple[str, ...]:
    return tuple(kind.url for kind in RESOURCE_TYPES)


@kept
def _urls(known: Schema) -> tuple[str, ...]:
    """The type URLs of all messages that may stand in an Any, without those of retired versions of the API."""
    names = [
        name
        for name, message in known.messages.items()
        if name.startswith("envoy.") and ".v3" in name and message.containing_type is None
    ]
    return tuple(TYPE_URL_PREFIX + name for name in names)
