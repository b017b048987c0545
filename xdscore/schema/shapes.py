"""What a JSON object may hold to be a message: the fields of a descriptor by both spellings. Made once per type."""

from dataclasses import dataclass
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from xdscore.schema.scalars import NULL_VALUE, Convert, conversion_for

# google.protobuf types whose JSON is not an object of their fields (proto JSON, "JSON Mapping").
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
ANY = "google.protobuf.Any"
VALUE = "google.protobuf.Value"
SPECIAL = WRAPPERS | {
    ANY,
    VALUE,
    "google.protobuf.Struct",
    "google.protobuf.ListValue",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "google.protobuf.FieldMask",
}


@dataclass(frozen=True, slots=True, eq=False)
class FieldShape:
    """What converting JSON to one field needs. Exactly one of `message` and `convert` is set: its message type, or the
    conversion of its scalar.

    `choice` is the oneof it belongs to, if any; `map_key` and `map_value` are set for maps.
    """

    name: str
    repeated: bool
    is_map: bool
    message: Descriptor | None
    convert: Convert | None
    choice: str
    takes_null: bool
    map_key: FieldDescriptor | None = None
    map_value: "FieldShape | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class MessageShape:
    """What converting JSON to one message type needs. `fields` has each field under its original and its lowerCamelCase
    name.
    """

    fields: dict[str, FieldShape]


@cache
def shape_of(descriptor: Descriptor) -> MessageShape:
    """The shape of a message type."""
    fields: dict[str, FieldShape] = {}
    for field in descriptor.fields:
        shape = field_shape(field)
        fields[field.json_name] = shape
        fields[field.name] = shape
    return MessageShape(fields)


def choice_of(field: FieldDescriptor) -> OneofDescriptor | None:
    """The oneof a field belongs to. A proto3 `optional` field has a made-up oneof of its own, which is no choice."""
    oneof = field.containing_oneof
    return None if oneof is None or oneof.name == f"_{field.name}" else oneof


def field_shape(field: FieldDescriptor) -> FieldShape:
    """The shape of one field; also used for the values of a map."""
    message = field.message_type
    is_map = field.is_repeated and message is not None and message.GetOptions().map_entry
    oneof = choice_of(field)
    takes_null = (message is not None and message.full_name == VALUE) or (
        field.enum_type is not None and field.enum_type.full_name == NULL_VALUE
    )
    return FieldShape(
        name=field.name,
        repeated=field.is_repeated,
        is_map=is_map,
        message=message,
        convert=None if message is not None else conversion_for(field),
        choice=oneof.name if oneof is not None else "",
        takes_null=takes_null and not field.is_repeated,
        map_key=message.fields_by_name["key"] if is_map and message is not None else None,
        map_value=field_shape(message.fields_by_name["value"]) if is_map and message is not None else None,
    )
