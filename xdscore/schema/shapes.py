"""What a JSON object may hold to be a message: the fields of a descriptor by both spellings. Made once per type."""

from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from xdscore.schema.leniency import Respell, respelling_for
from xdscore.schema.scalars import NULL_VALUE, Convert, conversion_for
from xdscore.schema.types_registry import kept

# google.protobuf types whose JSON is not an object of their fields (proto JSON, "JSON Mapping").
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
ANY = "google.protobuf.Any"
VALUE = "google.protobuf.Value"
DURATION = "google.protobuf.Duration"
LIST_VALUE = "google.protobuf.ListValue"
# Those whose fields may be given instead (`leniency`); a Struct with a member `fields` is just that.
WITH_SHORT_FORM = WRAPPERS | {LIST_VALUE, DURATION, "google.protobuf.Timestamp", "google.protobuf.FieldMask"}
SPECIAL = WITH_SHORT_FORM | {ANY, VALUE, "google.protobuf.Struct"}
# In whose lists a list is an item.
UNFLATTENED = frozenset({VALUE, LIST_VALUE})


@dataclass(frozen=True, slots=True, eq=False)
class FieldShape:
    """What is needed to convert JSON to one field. Either `message`, its message type, is set, or `convert`, the
    conversion of its scalar, with `respell`, what other spellings of it mean.

    `choice` is the oneof that the field belongs to, if any; `map_key` and `map_value` are set for maps; `takes_null`
    says whether a JSON null is a value of it.
    """

    name: str
    repeated: bool
    is_map: bool
    message: Descriptor | None
    convert: Convert | None
    respell: Respell | None
    choice: str
    takes_null: bool
    map_key: FieldDescriptor | None = None
    map_value: "FieldShape | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class MessageShape:
    """What is needed to convert JSON to one message type. `fields` has each field under its original and its
    lowerCamelCase name.
    """

    fields: dict[str, FieldShape]


@kept
def shape_of(descriptor: Descriptor) -> MessageShape:
    """The fields of a message type, as needed to convert JSON to it."""
    fields: dict[str, FieldShape] = {}
    for field in descriptor.fields:
        shape = field_shape(field)
        fields[field.json_name] = shape
        fields[field.name] = shape
    return MessageShape(fields)


def choice_of(field: FieldDescriptor) -> OneofDescriptor | None:
    """The oneof that a field belongs to; None when it belongs to none. That of a proto3 `optional` field, made up by
    protobuf, does not count.
    """
    oneof = field.containing_oneof
    return None if oneof is None or oneof.name == f"_{field.name}" else oneof


def field_shape(field: FieldDescriptor) -> FieldShape:
    """What is needed to convert JSON to one field; also used for the values of a map."""
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
        respell=None if message is not None else respelling_for(field),
        choice=oneof.name if oneof is not None else "",
        takes_null=takes_null and not field.is_repeated,
        map_key=message.fields_by_name["key"] if is_map and message is not None else None,
        map_value=field_shape(message.fields_by_name["value"]) if is_map and message is not None else None,
    )
