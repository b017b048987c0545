"""The google.protobuf types with a JSON form of their own, and how each is read. `Any` is `convert`'s part.

Every reader sets one message from one JSON value or raises `RefusedError`, whose `path` leads to the part at fault.
"""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from xdscore.schema.codes import TOO_DEEP, VALUE_REFUSED
from xdscore.schema.json_kinds import kind_of
from xdscore.schema.scalars import RefusedError, to_string, wrong_type
from xdscore.schema.shapes import LIST_VALUE, WRAPPERS
from xdscore.schema.walk import AnyMessage

Read = Callable[[AnyMessage, object, int], None]

_DURATION = re.compile(r"(-?)(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,9}))?s")
_MAX_DURATION_SECONDS = 315_576_000_000  # 10,000 years, google/protobuf/duration.proto
_WITH_UNIT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|m|min|h|d)?")
_UNITS = {"ms": 0.001, "m": 60, "min": 60, "h": 3600, "d": 86400, None: 1}


def duration_of(value: object) -> tuple[int, int]:
    """Seconds and nanoseconds of a JSON duration, both with the sign of the whole."""
    if not isinstance(value, str):
        hint = (
            f'Write "{value}s" for {value} seconds.'
            if kind_of(value).startswith("the number")
            else 'Write it as "5s" or "0.25s".'
        )
        raise wrong_type("a duration in seconds", value, hint)
    match = _DURATION.fullmatch(value)
    if match is None:
        raise RefusedError(VALUE_REFUSED, _duration_hint(value), problem="must be a duration in seconds")
    sign, seconds, fraction = match.groups()
    if int(seconds) > _MAX_DURATION_SECONDS:
        raise RefusedError(VALUE_REFUSED, problem=f"must be at most {_MAX_DURATION_SECONDS} seconds")
    factor = -1 if sign else 1
    return factor * int(seconds), factor * int((fraction or "").ljust(9, "0"))


def _duration_hint(value: str) -> str:
    match = _WITH_UNIT.fullmatch(value)
    if match is None:
        return 'Write it as "5s" or "0.25s".'
    seconds = f"{float(match[1]) * _UNITS[match[2]]:.6f}".rstrip("0").rstrip(".")
    return f'Write "{seconds}s".'


def _read_duration(message: AnyMessage, value: object, _: int) -> None:
    seconds, nanos = duration_of(value)
    message.seconds, message.nanos = seconds, nanos
    message.SetInParent()


def _read_text(message: AnyMessage, value: object, _: int, *, wanted: str, example: str) -> None:
    """Set a Timestamp or FieldMask from its JSON text. Raises RefusedError, which says what is `wanted` and gives an
    `example`.
    """
    text = to_string(value)
    try:
        message.FromJsonString(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        raise RefusedError(VALUE_REFUSED, f'Write it as "{example}".', problem=f"must be {wanted}") from None
    message.SetInParent()


def _read_struct(message: AnyMessage, value: object, room: int) -> None:
    """Set a Struct from its JSON. `room` is the number of levels of messages that may still be nested; a Struct inside
    a Struct takes three: map entry, Value, Struct.
    """
    if not isinstance(value, dict):
        raise wrong_type("an object", value)
    message.SetInParent()
    for key, item in value.items():
        with _below(key):
            _read_value(message.fields[to_string(key)], item, room - 2)


def _read_list_value(message: AnyMessage, value: object, room: int) -> None:
    if not isinstance(value, list):
        raise wrong_type("a list", value)
    message.SetInParent()
    for index, item in enumerate(value):
        with _below(index):
            _read_value(message.values.add(), item, room - 1)


def _read_value(message: AnyMessage, value: object, room: int) -> None:
    if room < 0:
        raise RefusedError(TOO_DEEP, what="Messages")
    match value:
        case None:
            message.null_value = 0
        case bool():
            message.bool_value = value
        case int() | float():
            message.number_value = _finite(value)
        case str():
            message.string_value = to_string(value)
        case dict():
            _read_struct(message.struct_value, value, room - 1)
        case list():
            _read_list_value(message.list_value, value, room - 1)
        case _:
            raise wrong_type("a JSON value", value)


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RefusedError(VALUE_REFUSED, problem="is a number that does not fit")
    return number


@contextmanager
def _below(part: str | int) -> Iterator[None]:
    """A context in which the path of a RefusedError gets `part`, the member that was being read, put in front."""
    try:
        yield
    except RefusedError as refused:
        refused.path = (part, *refused.path)
        raise


def short_form(message: AnyMessage) -> str:
    """How a hint shows the short form of a message whose fields were given; in words where it may hold a secret. Raises
    RefusedError where it has none.
    """
    full_name = message.DESCRIPTOR.full_name
    if full_name in WRAPPERS:
        return "the value itself"
    if full_name == LIST_VALUE:
        return "the list itself"
    try:
        return f'"{message.ToJsonString()}"'
    except (ValueError, TypeError, OverflowError):
        raise RefusedError(VALUE_REFUSED, problem="is out of range") from None


READERS: dict[str, Read] = {
    "google.protobuf.Duration": _read_duration,
    "google.protobuf.Timestamp": partial(_read_text, wanted="a time in RFC 3339", example="2026-01-31T12:00:00Z"),
    "google.protobuf.FieldMask": partial(_read_text, wanted="a list of field names", example="name,connectTimeout"),
    "google.protobuf.Struct": _read_struct,
    LIST_VALUE: _read_list_value,
    "google.protobuf.Value": _read_value,
}
"""Reader by full name, of all but wrappers: (message to set, JSON value, levels of messages that may still be opened
below it).
"""
