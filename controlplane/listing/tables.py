"""Writes what a list shows as a file: CSV for tables, JSON for programs. Pure.

Texts of a list are written by others, and a spreadsheet takes a cell that begins like a formula for one: such a cell
begins with an apostrophe, which spreadsheets show as text.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

Line = TypeVar("Line")
Cell = str | int | bool | datetime | None

MAX_ROWS: Final = 20_000
"""How many rows a file has at most. A longer list has to be narrowed, because a file that is cut reads as if it were
whole.
"""
# Where a formula begins for one spreadsheet or another (OWASP, "CSV Injection"); in the last four, what is skipped
# before one.
_BEGINS_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", " ")
# The same in full width, which some spreadsheets read alike.
_FULL_WIDTH: Final = ("\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True, slots=True)
class Column(Generic[Line]):
    """A column of a file: its name, and what it has of a line."""

    name: str
    cell: Callable[[Line], Cell]


def csv_text(columns: Sequence[Column[Line]], lines: Iterable[Line]) -> str:
    """The lines as CSV with a head (RFC 4180), in which no cell is a formula."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow([column.name for column in columns])
    for line in lines:
        writer.writerow([harmless(_text(column.cell(line))) for column in columns])
    return written.getvalue()


def json_text(columns: Sequence[Column[Line]], lines: Iterable[Line]) -> str:
    """The lines as a JSON array of objects; every text as it is."""
    objects = [
        json.dumps({column.name: _json(column.cell(line)) for column in columns}, ensure_ascii=False) for line in lines
    ]
    return "[" + ",\n ".join(objects) + "]\n"


def harmless(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith((*_BEGINS_FORMULA, *_FULL_WIDTH)) else text


def _text(cell: Cell) -> str:
    value = _json(cell)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _json(cell: Cell) -> str | int | bool | None:
    return f"{cell.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(cell, datetime) else cell
