"""Spellings that Envoy's reader of files takes and the JSON form of protobuf does not, each a rule with a code.

Envoy reads its files with the lenient parser of protobuf's C++ library, so configurations that it runs are full of such
spellings. Each rule says what a value means, as `scalars` and `well_known` read it; the value is stored and shown in
that form only. Asked only where the strict form failed, so what is written well costs nothing. Where a spelling could
mean two things (`010` is 8 without quotes and 10 within; two spellings of one field), no rule takes it.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from xdscore.codes import Code
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import (
    LISTENER_NAMED,
    SPELLED_BOOLEAN,
    SPELLED_ENUM,
    SPELLED_FORM,
    SPELLED_LIST,
    SPELLED_MORE,
    SPELLED_NESTED,
    SPELLED_NULL,
    SPELLED_NUMBER,
    SPELLED_TEXT,
)

SPELLINGS: Final = frozenset(
    code.code
    for code in (
        SPELLED_ENUM,
        SPELLED_LIST,
        SPELLED_NESTED,
        SPELLED_NULL,
        SPELLED_BOOLEAN,
        SPELLED_NUMBER,
        SPELLED_TEXT,
        SPELLED_FORM,
        SPELLED_MORE,
        LISTENER_NAMED,
    )
)
"""The codes of findings about how something was written."""
_TRUE = frozenset({"true", "t", "yes", "y", "1", "on"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "off"})
_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?")
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "infinity": "Infinity"}
_PADDED_DURATION = re.compile(r"(-?)0+([0-9]{1,12}(?:\.[0-9]{1,9})?s)")
_INTEGERS = (
    FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_SINT32,
    FieldDescriptor.TYPE_SFIXED32,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_SINT64,
    FieldDescriptor.TYPE_SFIXED64,
    FieldDescriptor.TYPE_UINT32,
    FieldDescriptor.TYPE_FIXED32,
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_FIXED64,
)
_EXACT = 2**53  # a larger whole number written with a point or an exponent may be another one
_INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True)
class Respelled:
    """What a value means: `value`, as the strict form has it; `canonical`: how a hint shows it, empty where it must not
    be shown.
    """

    code: Code
    value: object
    canonical: str = ""


Respell = Callable[[object], Respelled | None]
"""The meaning of a value that the strict form refuses; None where Envoy would refuse it as well, or it is unclear."""


def is_spelling(finding: Finding) -> bool:
    """Whether a finding is about how something was written; of what is stored, in its canonical form, it says
    nothing.
    """
    return finding.code in SPELLINGS


def strictly(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, with those about spelling as errors, for who asked for the strict form."""
    return tuple(replace(each, severity=Severity.ERROR) if is_spelling(each) else each for each in findings)


def respelling_for(field: FieldDescriptor) -> Respell:
    """The rules for the values of a field of a scalar or enum type."""
    by_kind = _enum(field.enum_type) if field.enum_type is not None else _BY_TYPE.get(field.type)

    def respell(value: object) -> Respelled | None:
        if value is None:
            return Respelled(SPELLED_NULL, _empty(field))
        return by_kind(value) if by_kind is not None else None

    return respell


def duration_respelled(value: object) -> Respelled | None:
    """The meaning of a duration that begins with needless zeros."""
    match = _PADDED_DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    text = match[1] + match[2]
    return Respelled(SPELLED_NUMBER, text, f'"{text}"')


def _empty(field: FieldDescriptor) -> object:
    """The value that a field has when it is not set; of a list, an item of it."""
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    return {FieldDescriptor.CPPTYPE_STRING: "", FieldDescriptor.CPPTYPE_BOOL: False}.get(field.cpp_type, 0)


def _enum(descriptor: EnumDescriptor) -> Respell:
    """Names in other letters; of names that differ by them alone, Envoy takes the first. Numbers as texts and with a
    point.
    """
    first: dict[str, str] = {}
    names: dict[int, str] = {}
    for each in descriptor.values:
        first.setdefault(each.name.lower(), each.name)
        names.setdefault(each.number, each.name)

    def respell(value: object) -> Respelled | None:
        name = first.get(value.lower()) if isinstance(value, str) else None
        if name is None:
            number = _whole(value.strip() if isinstance(value, str) else value)
            name = names.get(number) if number is not None else None
        return Respelled(SPELLED_ENUM, name, name) if name is not None else None

    return respell


def _boolean(value: object) -> Respelled | None:
    word = value.lower() if isinstance(value, str) else ""
    if word in _TRUE:
        return Respelled(SPELLED_BOOLEAN, True, "true")
    return Respelled(SPELLED_BOOLEAN, False, "false") if word in _FALSE else None


def _integer(value: object) -> Respelled | None:
    number = _whole(value) if isinstance(value, str) else None
    return Respelled(SPELLED_NUMBER, number, str(number)) if number is not None else None


def _whole(value: object) -> int | None:
    """The whole number that a text or number means; None where it means none, or one of two."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    if _WHOLE.fullmatch(value):
        digits = value.lstrip("+-")
        padded = len(digits) > 1 and digits[0] == "0"
        octal = padded and not set(digits) & {"8", "9"}
        return None if octal and int(digits, 8) != int(digits) else int(value)
    number = float(value) if _NUMBER.fullmatch(value) else 0.5
    return int(number) if number.is_integer() and abs(number) <= _EXACT else None


def _floating(value: object) -> Respelled | None:
    if not isinstance(value, str):
        return None
    text = value.strip(" \t\r\n\f\v")
    name = _NOT_FINITE.get(text.lstrip("+-").lower()) if len(text) - len(text.lstrip("+-")) <= 1 else None
    if name is not None:
        meant: object = ("-" if text.startswith("-") and name != "NaN" else "") + name
    elif _NUMBER.fullmatch(text):
        meant = float(text)
    else:
        return None
    return Respelled(SPELLED_NUMBER, meant, str(meant))


def _text(value: object) -> Respelled | None:
    """Whole numbers beyond 32 bits, which Envoy's reader of YAML hands on as texts. Never shown: it may be a secret."""
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT32:
        return Respelled(SPELLED_TEXT, str(value))
    return None


_BY_TYPE: dict[int, Respell] = {
    FieldDescriptor.TYPE_BOOL: _boolean,
    FieldDescriptor.TYPE_STRING: _text,
    FieldDescriptor.TYPE_FLOAT: _floating,
    FieldDescriptor.TYPE_DOUBLE: _floating,
    **dict.fromkeys(_INTEGERS, _integer),
}
