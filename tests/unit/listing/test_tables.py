"""Lists as files: whole, and harmless to whoever opens them in a spreadsheet."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.listing.tables import Cell, Column, csv_text, harmless, json_text

COLUMNS: tuple[Column[tuple[str, Cell]], ...] = (
    Column("name", lambda line: line[0]),
    Column("said", lambda line: line[1]),
)


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+49", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =HYPERLINK(1)", "\uff1dcmd|' /C calc'!A0", "-"],
)
def test_csv__what_a_spreadsheet_takes_for_a_formula__is_a_text(cell: str) -> None:
    [row] = list(csv.reader(io.StringIO(csv_text(COLUMNS, [(cell, "x")]), newline="")))[1:]

    assert row == [f"'{cell}", "x"]


@example(text='a,"b"\r\nc;=d')
@given(st.text())
def test_csv__any_text__is_one_cell_that_begins_no_formula(text: str) -> None:
    [row] = list(csv.reader(io.StringIO(csv_text(COLUMNS, [(text, 3)]), newline="")))[1:]

    assert row[1] == "3"
    assert row[0] in (text, f"'{text}")
    assert not row[0] or row[0][0] not in "=+-@\t\r\n \uff1d\uff0b\uff0d\uff20"


@given(st.lists(st.tuples(st.text(), st.one_of(st.text(), st.integers(), st.booleans(), st.none()))))
def test_json__any_lines__are_what_they_were(lines: list[tuple[str, Cell]]) -> None:
    assert json.loads(json_text(COLUMNS, lines)) == [{"name": name, "said": said} for name, said in lines]


def test_files__times_and_what_is_absent__read_alike() -> None:
    noon = datetime(2026, 7, 1, 14, tzinfo=timezone(timedelta(hours=2)))

    assert csv_text(COLUMNS, [("a", noon), ("b", None), ("c", True)]) == (
        "name,said\r\na,2026-07-01T12:00:00Z\r\nb,\r\nc,true\r\n"
    )
    assert json.loads(json_text(COLUMNS, [("a", noon.astimezone(UTC))])) == [
        {"name": "a", "said": "2026-07-01T12:00:00Z"}
    ]
    assert harmless("plain") == "plain"
