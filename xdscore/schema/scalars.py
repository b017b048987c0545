"""One JSON value to one scalar, as strictly as proto JSON allows; what else is taken is `leniency`'s.

Each conversion returns the value or raises `RefusedError` with what is wrong. Stricter than the protobuf library where
that is lenient by accident of Python: no underscores or foreign digits in numbers, no characters skipped in base64.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from xdscore.codes import Code, shown
from xdscore.schema.codes import ENUM_UNKNOWN, KEPT_UNKNOWN, VALUE_REFUSED, WRONG_TYPE
from xdscore.schema.json_kinds import kind_of
from xdscore.schema.positions import Path
from xdscore.schema.types_registry import nearest

Scalar = bool | int | float | str | bytes
Convert = Callable[[object], Scalar]

# The one enum whose value is written as null.
NULL_VALUE = "google.protobuf.NullValue"
# How a secret reads back (decisions U12). What `sensitive.restore_kept` did not replace is refused, wherever it
# stands.
KEPT_PREFIX = "<kept:"

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,19})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,3})?")
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
_BASE64_URL = str.maketrans("-_", "+/")
_MAX_FLOAT = 3.4028234663852886e38
_MAX_CHOICES = 12


class RefusedError(Exception):
    """A JSON value cannot be converted to the type of its field. `path` leads from the field to the part that is
    wrong.
    """

    def __init__(self, code: Code, hint: str = "", **values: object) -> None:
        super().__init__(code.code)
        self.code = code
        self.hint = hint
        self.values = values
        self.path: Path = ()


def wrong_type(wanted: str, value: object, hint: str = "") -> RefusedError:
    """The error that a value has another JSON type than `wanted`."""
    return RefusedError(WRONG_TYPE, hint, wanted=wanted, given=kind_of(value))


def to_bool(value: object) -> bool:
    if value is True or value is False:
        return value is True
    raise wrong_type("true or false", value)


def to_string(value: object) -> str:
    if not isinstance(value, str):
        hint = "Put it in quotes." if isinstance(value, bool | int | float) else ""
        raise wrong_type("a string", value, hint)
    if value.startswith(KEPT_PREFIX):
        raise RefusedError(KEPT_UNKNOWN)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RefusedError(VALUE_REFUSED, problem="holds half of a surrogate pair") from None
    return value


def to_bytes(value: object) -> bytes:
    if not isinstance(value, str):
        raise wrong_type("a base64 string", value)
    if value.startswith(KEPT_PREFIX):
        raise RefusedError(KEPT_UNKNOWN)
    text = value.translate(_BASE64_URL)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise RefusedError(
            VALUE_REFUSED,
            "Encode the bytes in base64, or use a text field beside it such as inline_string.",
            problem="is not base64",
        ) from None


def integer_between(low: int, high: int) -> Convert:
    """A conversion of JSON values to integers from `low` to `high`. In JSON, 64-bit integers are usually written as
    strings.
    """

    def to_integer(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            number = value
        elif (isinstance(value, float) and value.is_integer()) or (
            isinstance(value, str) and _INTEGER.fullmatch(value)
        ):
            number = int(value)
        else:
            raise wrong_type("a whole number", value)
        if not low <= number <= high:
            raise RefusedError(VALUE_REFUSED, problem=f"must be between {low} and {high}")
        return number

    return to_integer


def float_up_to(limit: float) -> Convert:
    """A conversion of JSON values to floating-point numbers whose absolute value is `limit` at most, or infinite."""

    def to_float(value: object) -> float:
        if isinstance(value, str) and value in _NOT_FINITE:
            return float(value)
        if isinstance(value, bool) or not (
            isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value))
        ):
            raise wrong_type("a number", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not abs(number) <= limit:
            raise RefusedError(VALUE_REFUSED, problem="is a number that does not fit")
        return number

    return to_float


def enum_of(descriptor: EnumDescriptor) -> Convert:
    """A conversion from the name or number of an enum value. Numbers that the enum does not have are refused, being
    nearly always mistakes.
    """
    by_name = {value.name: value.number for value in descriptor.values}
    numbers = frozenset(by_name.values())

    def to_enum(value: object) -> int:
        if isinstance(value, str):
            number = by_name.get(value)
            if number is not None:
                return number
            if _INTEGER.fullmatch(value) and int(value) in numbers:
                return int(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            if value in numbers:
                return value
        else:
            raise wrong_type("the name of a choice", value, f"Choices: {choices_text(descriptor)}.")
        given = shown(value, 40)
        close = nearest(value.upper(), by_name) if isinstance(value, str) else []
        hint = f"Did you mean '{close[0]}'? Choices: {choices_text(descriptor)}." if close else ""
        raise RefusedError(ENUM_UNKNOWN, hint, given=given, choices=choices_text(descriptor))

    return to_enum


def choices_text(descriptor: EnumDescriptor) -> str:
    """The names of an enum's values as a text, at most a dozen of them."""
    names = [value.name for value in descriptor.values]
    more = len(names) - _MAX_CHOICES
    return ", ".join(names[:_MAX_CHOICES]) + (f" and {more} more" if more > 0 else "")


_INT32 = integer_between(-(2**31), 2**31 - 1)
_INT64 = integer_between(-(2**63), 2**63 - 1)
_UINT32 = integer_between(0, 2**32 - 1)
_UINT64 = integer_between(0, 2**64 - 1)
_FLOAT = float_up_to(_MAX_FLOAT)
to_double = float_up_to(1.7976931348623157e308)

_BY_TYPE: dict[int, Convert] = {
    FieldDescriptor.TYPE_BOOL: to_bool,
    FieldDescriptor.TYPE_STRING: to_string,
    FieldDescriptor.TYPE_BYTES: to_bytes,
    FieldDescriptor.TYPE_INT32: _INT32,
    FieldDescriptor.TYPE_SINT32: _INT32,
    FieldDescriptor.TYPE_SFIXED32: _INT32,
    FieldDescriptor.TYPE_INT64: _INT64,
    FieldDescriptor.TYPE_SINT64: _INT64,
    FieldDescriptor.TYPE_SFIXED64: _INT64,
    FieldDescriptor.TYPE_UINT32: _UINT32,
    FieldDescriptor.TYPE_FIXED32: _UINT32,
    FieldDescriptor.TYPE_UINT64: _UINT64,
    FieldDescriptor.TYPE_FIXED64: _UINT64,
    FieldDescriptor.TYPE_FLOAT: _FLOAT,
    FieldDescriptor.TYPE_DOUBLE: to_double,
}


def conversion_for(field: FieldDescriptor) -> Convert:
    """The conversion from JSON to the scalar or enum type of a field."""
    if field.enum_type is not None:
        to_enum = enum_of(field.enum_type)
        if field.enum_type.full_name == NULL_VALUE:
            return lambda value: 0 if value is None else to_enum(value)
        return to_enum
    return _BY_TYPE[field.type]


def to_map_key(field: FieldDescriptor, text: str) -> Scalar:
    """The map key that a JSON object's key means for this field; there, numbers and booleans are written as strings."""
    if field.type == FieldDescriptor.TYPE_STRING:
        return to_string(text)
    if field.type == FieldDescriptor.TYPE_BOOL:
        if text in ("true", "false"):
            return text == "true"
        raise RefusedError(VALUE_REFUSED, problem="must have the keys 'true' or 'false'")
    return _BY_TYPE[field.type](text)
