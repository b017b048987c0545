"""Input shapes, strictly: a JSON value is what it is (no "1" for 1, no 1 for true), and a field that is not known is
refused (texts.md section 4, "Conventions").

DRF's serializers do the walking and the schema; this module closes their generous corners and turns their errors into
findings with pointers.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.core.validators import ProhibitNullCharactersValidator
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.schema.codes import ENUM_UNKNOWN, FIELD_UNKNOWN, REQUIRED, VALUE_REFUSED, WRONG_TYPE
from xdscore.schema.positions import Path

_UNKNOWN: Final = "unknown_field"
_CODES: Final[Mapping[str, str]] = {
    "required": REQUIRED.code,
    "blank": REQUIRED.code,
    "empty": REQUIRED.code,
    _UNKNOWN: FIELD_UNKNOWN.code,
    "invalid_choice": ENUM_UNKNOWN.code,
    "null": WRONG_TYPE.code,
    "not_a_list": WRONG_TYPE.code,
    "wrong_type": WRONG_TYPE.code,
}


class StrictSerializer(serializers.Serializer[Any]):
    """The base class of all shapes of request bodies. A body with a field that its shape does not have is refused."""

    def to_internal_value(self, data: object) -> Any:
        """The body's fields, checked and converted. Raises ValidationError with every problem, unknown fields
        included.
        """
        if not isinstance(data, Mapping):
            raise ValidationError({"": [ErrorDetail("This must be an object.", code="wrong_type")]})
        unknown: dict[str, Any] = {
            str(key): [ErrorDetail(_unknown_sentence(str(key), self.fields), code=_UNKNOWN)]
            for key in data
            if key not in self.fields
        }
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            known = error.detail if isinstance(error.detail, dict) else {"": error.detail}
            raise ValidationError(unknown | known) from None
        if unknown:
            raise ValidationError(unknown)
        return values


class Text(serializers.CharField):
    """A field for strings alone, which are not trimmed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: object) -> str:
        """The string, unchanged. Raises ValidationError for anything else, and for control characters, which would
        reach logs and terminals (threat 16).
        """
        if not isinstance(data, str):
            raise ValidationError("This must be a string.", code="wrong_type")
        if not data.isprintable():
            raise ValidationError("This holds a character that cannot be printed on one line.")
        return data

    def run_validators(self, value: object) -> None:
        """Check the string, but not for null characters, which `to_internal_value` has refused."""
        self.validators = [each for each in self.validators if not isinstance(each, ProhibitNullCharactersValidator)]
        super().run_validators(value)


class Paragraphs(Text):
    """A field for strings of one or more lines."""

    def to_internal_value(self, data: object) -> str:
        """The string, unchanged. Raises ValidationError for anything else, and for characters that cannot be printed,
        other than line feeds and tabs.
        """
        if not isinstance(data, str):
            raise ValidationError("This must be a string.", code="wrong_type")
        if not all(each.isprintable() or each in "\n\r\t" for each in data):
            raise ValidationError("This holds a character that cannot be printed.")
        return data


class Flag(serializers.BooleanField):
    """A field for the booleans true and false alone, and not for strings or numbers that look like them."""

    def to_internal_value(self, data: object) -> bool:
        """The boolean, unchanged. Raises ValidationError for anything else."""
        if not isinstance(data, bool):
            raise ValidationError("This must be true or false.", code="wrong_type")
        return data


class Whole(serializers.IntegerField):
    """A field for whole numbers alone, and not for booleans or numbers in strings."""

    def to_internal_value(self, data: object) -> int:
        """The number, unchanged. Raises ValidationError for anything else."""
        if not isinstance(data, int) or isinstance(data, bool):
            raise ValidationError("This must be a whole number.", code="wrong_type")
        return data


class Time(serializers.DateTimeField):
    """A field for a time in RFC 3339 with its offset from UTC, without which it would depend on the place."""

    def to_internal_value(self, value: object) -> datetime:
        """The time in the text. Raises ValidationError for anything else."""
        if not isinstance(value, str):
            raise ValidationError("This must be a time such as 2026-12-31T23:59:59Z.", code="wrong_type")
        try:
            moment = datetime.fromisoformat(value)
            if timezone.is_aware(moment):
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):  # no time, or in UTC before the year 1 or after 9999
            pass
        raise ValidationError("This must be a time such as 2026-12-31T23:59:59Z.")


def findings_of(error: ValidationError) -> list[tuple[Path, Finding]]:
    """A finding for every problem in `error`, each with the path of its field in the body. Unknown fields come first,
    then the others in the order of the shape.
    """
    return [(path, _finding(path, detail)) for path, detail in _walk(error.detail, ())]


def _walk(detail: object, path: Path) -> Iterator[tuple[Path, ErrorDetail]]:
    if isinstance(detail, ErrorDetail):
        yield path, detail
    elif isinstance(detail, Mapping):
        for key, inside in detail.items():
            # DRF files what is wrong with an object as a whole under a name of its own; ours is the empty one.
            yield from _walk(inside, path if key in ("", "non_field_errors") else (*path, key))
    elif isinstance(detail, Sequence) and not isinstance(detail, str):
        items = all(isinstance(each, Mapping) for each in detail)
        for index, inside in enumerate(detail):
            yield from _walk(inside, (*path, index) if items else path)


def _finding(path: Path, detail: ErrorDetail) -> Finding:
    code = _CODES.get(str(detail.code), VALUE_REFUSED.code)
    named = bool(path) and isinstance(path[-1], str) and detail.code != _UNKNOWN
    field = f"'{shown(path[-1])}': " if named else ""
    return Finding(code=code, severity=Severity.ERROR, detail=f"{field}{shown(detail, 500)}")


def _unknown_sentence(key: str, fields: Mapping[str, object]) -> str:
    return f"There is no field '{shown(key)}' here. Known fields: {', '.join(fields)}."
