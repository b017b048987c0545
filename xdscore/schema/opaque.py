"""Messages of unknown types, as far as `json_format` can be made to write them: bytes, in base64.

`json_format` writes an Any by looking up its type. A type that is not known is looked up here as a BytesValue, whose
JSON in an Any is `{"@type": …, "value": "base64"}`, and the bytes stand inside of such a message while it writes.
"""

from google.protobuf.descriptor import Descriptor
from google.protobuf.wrappers_pb2 import BytesValue

from xdscore.schema.shapes import ANY
from xdscore.schema.types_registry import descriptor_of, message_name, schema
from xdscore.schema.walk import AnyMessage, children, unpack


class CarryingPool:
    """What `json_format` asks for types: those of the schema, and a BytesValue for any other."""

    def FindMessageTypeByName(self, full_name: str) -> Descriptor:  # noqa: N802  as protobuf spells it
        """The descriptor of a message."""
        return descriptor_of(full_name) or schema().pool.FindMessageTypeByName(BytesValue.DESCRIPTOR.full_name)


def carry_unknown(message: AnyMessage) -> None:
    """Put the bytes of each Any of an unknown type, in `message` or below it, into a BytesValue."""
    if message.DESCRIPTOR.full_name != ANY:
        for _, child in children(message):
            carry_unknown(child)
    elif message.type_url and descriptor_of(message_name(message.type_url)) is None:
        message.value = BytesValue(value=message.value).SerializeToString()
    else:
        inner = unpack(message)
        if inner is not None:
            carry_unknown(inner)
            message.value = inner.SerializeToString(deterministic=True)
