"""The table of sentences names code and tests that exist, and leaves no row of the tests out."""

import importlib
import re
from pathlib import Path

import pytest

from tests.unit.xdsclient.test_a88 import ROWS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/xdsclient-conformance.md").read_text(encoding="utf-8")
TEST_FOLDERS = ("tests/unit/xdsclient", "tests/protocol/xdsclient")
# Cells of every line of every table, without its first and last bar.
LINES = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
CODE = re.compile(r"^`([a-z_.]+\.[A-Za-z_.]+)`$")
ROW = re.compile(r"^row (?P<source>[^:]+)(?:: (?P<says>.+))?$")
TEST_NAME = re.compile(r"^`(\w+)`$")


def defined_tests() -> set[str]:
    """Every test function and every machine of the client's tests."""
    paths = [path for folder in TEST_FOLDERS for path in (ROOT / folder).glob("test_*.py")]
    return {
        name
        for path in paths
        for name in re.findall(r"^(?:async )?(?:def|class) (\w+)", path.read_text(), re.MULTILINE)
    }


def resolves(dotted: str) -> bool:
    """Whether `module.Name.attribute` below xdsclient exists."""
    parts = ["xdsclient", *dotted.split(".")]
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def row_exists(source: str, says: str) -> bool:
    return any(row.source == source and row.says.startswith(says) for row in ROWS)


def test_page__every_line__says_which_test_or_why_none() -> None:
    tests = [line[-1] for line in LINES if line[0] not in {"sentence", "row", "scenario"} and len(line) in {3, 4}]
    tests = [each for each in tests if not each.startswith(("TP3", "A88"))]  # the table of deviations

    assert len(tests) > 75
    assert [each for each in tests if not (ROW.match(each) or TEST_NAME.match(each) or each == "none")] == []


@pytest.mark.parametrize(
    "name", sorted({match[1] for line in LINES for cell in line[1:] if (match := CODE.match(cell))})
)
def test_page__code_it_names__exists(name: str) -> None:
    assert resolves(name)


def test_page__tests_it_names__exist() -> None:
    named = {match[1] for line in LINES if (match := TEST_NAME.match(line[-1]))}

    assert len(named) > 20
    assert named - defined_tests() == set()


def test_page__rows_it_names__exist() -> None:
    named = [(match["source"], match["says"] or "") for line in LINES if (match := ROW.match(line[-1]))]

    assert [each for each in named if not row_exists(*each)] == []


def test_rows__of_the_tests__are_all_on_the_page() -> None:
    named = {match["source"] for line in LINES if (match := ROW.match(line[-1]))}

    assert {row.source for row in ROWS} - named == set()


def test_page__summary_of_behaviour_changes__has_all_fifteen_rows() -> None:
    numbers = [int(line[0]) for line in LINES if line[0].isdigit()]

    assert numbers == list(range(1, 16))
