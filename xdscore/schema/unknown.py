"""What of a message a schema does not know: fields by their numbers, and the types of Anys. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from xdscore.schema.pool import Schema
from xdscore.schema.positions import Path
from xdscore.schema.shapes import ANY
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage, children


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part of a message that a schema does not know: the message type in an Any or, where there is a `field`, the
    field of that message type with this number. `path`: that of the message.
    """

    path: Path
    message: str
    field: int = 0

    def __str__(self) -> str:
        """The type, or the number of the field and its type."""
        return f"field {self.field} of {self.message}" if self.field else self.message


def unknown_in(packed: AnyMessage, schema: Schema, path: Path = ()) -> Iterator[UnknownPart]:
    """Each part of the message inside the Any `packed` that `schema` does not know. Bytes that are not of their type
    are such a part, too.
    """
    name = message_name(packed.type_url)
    if not name:
        return
    descriptor = schema.messages.get(name)
    if descriptor is None:
        yield UnknownPart(path, name)
        return
    try:
        inner = message_factory.GetMessageClass(descriptor).FromString(packed.value)
    except DecodeError:
        yield UnknownPart(path, name)
        return
    yield from _below(inner, schema, path)


def _below(message: AnyMessage, schema: Schema, path: Path) -> Iterator[UnknownPart]:
    if message.DESCRIPTOR.full_name == ANY:
        yield from unknown_in(message, schema, path)
        return
    unknown: Any = UnknownFieldSet(message)  # the stubs do not know that it can be gone through
    for field in unknown:
        yield UnknownPart(path, message.DESCRIPTOR.full_name, field.field_number)
    for below, child in children(message):
        yield from _below(child, schema, path + below)
