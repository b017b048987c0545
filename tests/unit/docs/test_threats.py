"""The table of threats is true: every threat has a row, and the code and tests that a row names exist."""

import re
from pathlib import Path

import pytest

from scripts.protocol_table import is_code, is_test

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/threats.md").read_text(encoding="utf-8")
THREATS = 54
ROWS = {
    int(cells[0]): cells
    for line in PAGE.splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 5 and cells[0].isdigit()
}


def test_table__of_threats__has_a_row_for_each() -> None:
    assert list(ROWS) == list(range(1, THREATS + 1))


@pytest.mark.parametrize("number", ROWS)
def test_row__of_a_threat__names_code_and_tests_that_exist(number: int) -> None:
    code, tests = (re.findall(r"`([^`]+)`", ROWS[number][column]) for column in (3, 4))

    assert code
    assert tests
    assert [name for name in code if not (is_code(ROOT, name) or (ROOT / name).is_file())] == []
    assert [name for name in tests if not is_test(ROOT, name)] == []


def test_page__threats_that_are_open__are_in_the_table() -> None:
    spoken_of = re.findall(r"^\* \*\*([\d, ]+)\*\*:", PAGE, re.MULTILINE)

    assert spoken_of
    assert {int(number) for each in spoken_of for number in each.split(",")} <= ROWS.keys()
