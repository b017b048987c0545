"""Steps of a walk over messages: what lies directly below, and what an Any holds."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from xdscore.schema.positions import Path
from xdscore.schema.types_registry import class_of, descriptor_of, message_name

# A generated message; its fields are known by descriptor only.
AnyMessage = Any


def children(message: AnyMessage) -> Iterator[tuple[Path, AnyMessage]]:
    """Every message that is set directly below `message`, with its path from there. Maps come in the order of their
    keys (P6).
    """
    for field, value in message.ListFields():
        held = field.message_type
        if held is None:
            continue
        if held.GetOptions().map_entry:
            if held.fields_by_name["value"].message_type is not None:
                yield from (((field.name, str(key)), value[key]) for key in sorted(value))
        elif field.is_repeated:
            yield from (((field.name, index), item) for index, item in enumerate(value))
        else:
            yield (field.name,), value


def unpack(packed: AnyMessage) -> AnyMessage | None:
    """The message inside an Any; None when its type is unknown or its bytes are not of that type."""
    descriptor = descriptor_of(message_name(packed.type_url))
    if descriptor is None:
        return None
    try:
        return class_of(descriptor).FromString(packed.value)
    except DecodeError:
        return None
