"""Every message of a resource, with its path: through fields, lists, maps, Anys, and Structs that stand for messages.

What looks at content rather than at rules walks with this, so that nothing is overlooked because of where it is nested
(reliability threat 20). Parents come before what they hold.
"""

from collections.abc import Iterator

from google.protobuf import json_format

from xdscore.schema.convert import Conversion, Depth
from xdscore.schema.positions import Path
from xdscore.schema.shapes import ANY, SPECIAL
from xdscore.schema.types_registry import class_of, descriptor_of, message_name
from xdscore.schema.walk import AnyMessage, children, unpack

# Messages that carry another message as a Struct: {"type_url": …, "value": {…}}.
TYPED_STRUCTS = frozenset({"xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"})


def everything_in(message: AnyMessage, path: Path = ()) -> Iterator[tuple[Path, AnyMessage]]:
    """`message` and every message below it. What is inside an Any has the Any's own path, as in its JSON."""
    name = message.DESCRIPTOR.full_name
    if name == ANY:
        inner = unpack(message)
        if inner is not None:
            held = inner.DESCRIPTOR.full_name
            yield from everything_in(inner, (*path, "value") if held in SPECIAL else path)
        return
    if name in SPECIAL:
        return
    yield path, message
    if name in TYPED_STRUCTS:
        inner = _message_of(message)
        if inner is not None:
            yield from everything_in(inner, (*path, "value"))
        return
    for below, child in children(message):
        yield from everything_in(child, path + below)


def _message_of(typed_struct: AnyMessage) -> AnyMessage | None:
    """What the Struct stands for, as far as it can be read; None when the type is unknown."""
    descriptor = descriptor_of(message_name(typed_struct.type_url))
    if descriptor is None or descriptor.full_name in SPECIAL:
        return None
    message = class_of(descriptor)()
    Conversion().fill(message, json_format.MessageToDict(typed_struct.value), (), Depth(), in_any=True)
    return message
