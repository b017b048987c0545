"""How a row of SQLite becomes one of PostgreSQL, by its model's fields, and a digest in which equal rows are equal.

Pure: no database is asked. SQLite keeps what it is given, whatever the column says; PostgreSQL does not. So each value
is judged, and who moves hears of all that cannot go before anything is lost.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from django.db import models

_NUL: Final = "\x00"
_DIGEST_BYTES: Final = 16
_INTEGER_BITS: Final = {"smallint": 16, "integer": 32, "bigint": 64}

Value = bool | int | str | bytes | datetime | date | UUID | None
Convert = Callable[[Any], Value]


class ValueRefused(Exception):
    """PostgreSQL cannot keep a value; the text ends a sentence that begins with where it is, and never has the value
    itself.
    """


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and how its values are moved: `convert` from what SQLite has to what psycopg takes (raises
    ValueRefused), `canonical` to a form that is the same from either database; None: the value stays as it is.
    """

    name: str
    convert: Convert
    canonical: Convert | None = None


@dataclass(frozen=True)
class Table:
    """A model's table, with the columns in the order in which they are copied."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    serial: str
    """The column whose values the database counts up; empty where none does."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order in which they are copied."""
        return tuple(column.name for column in self.columns)

    def converted(self, row: Sequence[Any], refusals: list[str]) -> tuple[Value, ...]:
        """A row of SQLite in the form that PostgreSQL takes. A value that it cannot keep becomes None, and a sentence
        in `refusals`.
        """
        try:
            return tuple(
                None if value is None else column.convert(value)
                for column, value in zip(self.columns, row, strict=True)
            )
        except ValueRefused:
            return tuple(self._judged(row, refusals))

    def _judged(self, row: Sequence[Any], refusals: list[str]) -> Iterator[Value]:
        values = dict(zip(self.names, row, strict=True))
        where = ", ".join(f"{name} {values[name]}" for name in self.key)
        for column in self.columns:
            value = values[column.name]
            try:
                yield None if value is None else column.convert(value)
            except ValueRefused as refused:
                refusals.append(f"{self.name}, {where}: {column.name} {refused}.")
                yield None

    @cached_property
    def _canonical(self) -> tuple[tuple[int, Convert], ...]:
        return tuple((at, each.canonical) for at, each in enumerate(self.columns) if each.canonical is not None)

    def canonical(self, row: Iterable[Value]) -> tuple[Value, ...]:
        """A row in a form that is the same from either database."""
        values = list(row)
        for at, canonical in self._canonical:
            if values[at] is not None:
                values[at] = canonical(values[at])
        return tuple(values)


@dataclass
class Digest:
    """How many rows of a table there were, and a hash of all of them that does not depend on their order: databases
    sort text differently. Of each row a hash is taken, and these are added up.
    """

    table: Table
    rows: int = 0
    _sum: int = field(default=0, repr=False)

    def add(self, row: Iterable[Value]) -> None:
        """Add one row to the count and the hash."""
        said = repr(self.table.canonical(row)).encode("utf-8", "surrogatepass")
        self._sum += int.from_bytes(blake2b(said, digest_size=_DIGEST_BYTES).digest(), "big")
        self.rows += 1

    @property
    def hex(self) -> str:
        """The hash of all rows, in hexadecimal digits."""
        return f"{self._sum % (1 << (8 * _DIGEST_BYTES)):0{2 * _DIGEST_BYTES}x}"


def table_of(model: type[models.Model]) -> Table:
    """The table of a model. Raises TypeError for a field of a kind that nobody said how to move."""
    options = model._meta  # noqa: SLF001  Django's documented name of it
    fields = options.local_concrete_fields
    serial = next((_name(each) for each in fields if isinstance(each, models.AutoField)), "")
    return Table(
        options.db_table,
        tuple(_column(each) for each in fields),
        tuple(map(_name, options.pk_fields)),
        serial,
    )


def _name(each: "models.Field[Any, Any]") -> str:
    """The name of the field's column. Concrete fields have one."""
    return str(each.column)


def _column(each: "models.Field[Any, Any]") -> Column:
    kind: Any = each
    while kind.remote_field is not None:
        kind = kind.target_field
    if isinstance(kind, models.IntegerField):
        return Column(_name(each), partial(_integer, *_bounds(kind)))
    if isinstance(kind, models.CharField | models.TextField):
        return Column(_name(each), partial(_text, kind.max_length))
    for known, convert, canonical in _KINDS:
        if isinstance(kind, known):
            return Column(_name(each), convert, canonical)
    raise TypeError(f"{each}: nobody said how a {type(kind).__name__} moves from SQLite to PostgreSQL")


def _bounds(kind: "models.Field[Any, Any]") -> tuple[int, int]:
    """The smallest and largest number of the column's type in PostgreSQL."""
    name = kind.get_internal_type()
    size = "smallint" if "Small" in name else "bigint" if "Big" in name else "integer"
    bound = 1 << (_INTEGER_BITS[size] - 1)
    return 0 if name.startswith("Positive") else -bound, bound - 1


def _boolean(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueRefused("is neither true nor false")
    return bool(value)


def _integer(smallest: int, largest: int, value: Any) -> int:
    if type(value) is not int:
        raise ValueRefused("is no whole number")
    if not smallest <= value <= largest:
        raise ValueRefused(f"is not between {smallest} and {largest}")
    return value


def _text(longest: int | None, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueRefused("is no text")
    if _NUL in value:
        raise ValueRefused("has a character U+0000, which PostgreSQL cannot keep")
    if longest is not None and len(value) > longest:
        raise ValueRefused(f"has {len(value)} characters, and may have {longest}")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueRefused("is no bytes")
    return value


def _datetime(value: Any) -> datetime:
    """The time in a column of SQLite, where Django writes UTC without saying so. Raises ValueRefused."""
    try:
        read = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueRefused("is no date and time") from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _datetime_canonical(value: datetime) -> str:
    return value.astimezone(UTC).isoformat()


def _date(value: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueRefused("is no date") from None


def _uuid(value: Any) -> UUID:
    try:
        return UUID(hex=value)
    except (AttributeError, TypeError, ValueError):
        raise ValueRefused("is no UUID") from None


def _json(value: Any) -> str:
    """The JSON in a column of SQLite as the text it is, so that null in it stays another thing than no value. Raises
    ValueRefused.
    """
    try:
        read = json.loads(value)
    except (TypeError, ValueError):
        raise ValueRefused("is no JSON") from None
    # Without an escape there is neither of what PostgreSQL refuses: JSON spells control characters by escapes only.
    if "\\u" in value:
        for text in _texts(read):
            if _NUL in text:
                raise ValueRefused("has a character U+0000, which PostgreSQL cannot keep")
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise ValueRefused("has half a surrogate pair, which PostgreSQL cannot keep")
    return str(value)


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


def _json_canonical(value: str) -> str:
    """The JSON text in a form that is the same from either database: PostgreSQL sorts members and writes numbers its
    own way: 1e22 comes back as a whole number.
    """
    return value if value in {"[]", "{}"} else json.dumps(_plain(json.loads(value)), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# The first that fits counts: a time is a date to Django, too.
_KINDS: Final[tuple[tuple[type["models.Field[Any, Any]"], Convert, Convert | None], ...]] = (
    (models.BooleanField, _boolean, None),
    (models.BinaryField, _bytes, bytes),
    (models.JSONField, _json, _json_canonical),
    (models.UUIDField, _uuid, str),
    (models.DateTimeField, _datetime, _datetime_canonical),
    (models.DateField, _date, date.isoformat),
)
