"""What of a message a schema does not know: fields by their numbers, and the types of Anys. Pure."""

from collections.abc import Iterator
from typing import Any

from google.protobuf import message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from xdscore.schema.pool import Schema
from xdscore.schema.positions import Path
from xdscore.schema.shapes import ANY
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage, children


def unknown_in(packed: AnyMessage, schema: Schema, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Each part of the message inside the Any `packed` that `schema` does not know: its path and what it is, the name
    of a type or `field 17 of MESSAGE`.
    """
    name = message_name(packed.type_url)
    if not name:
        return
    descriptor = schema.messages.get(name)
    if descriptor is None:
        yield path, name
        return
    try:
        inner = message_factory.GetMessageClass(descriptor).FromString(packed.value)
    except DecodeError:
        yield path, name
        return
    yield from _below(inner, schema, path)


def _below(message: AnyMessage, schema: Schema, path: Path) -> Iterator[tuple[Path, str]]:
    if message.DESCRIPTOR.full_name == ANY:
        yield from unknown_in(message, schema, path)
        return
    unknown: Any = UnknownFieldSet(message)  # the stubs do not know that it can be gone through
    for field in unknown:
        yield path, f"field {field.field_number} of {message.DESCRIPTOR.full_name}"
    for below, child in children(message):
        yield from _below(child, schema, path + below)
