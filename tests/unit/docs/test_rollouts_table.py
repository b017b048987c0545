"""The table of the rules of rollouts is true: every rule has a row, and what a row names exists."""

import re
from pathlib import Path

import pytest

from scripts.protocol_table import is_code, is_test

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/rollouts.md").read_text(encoding="utf-8")
DESIGN = (ROOT / "docs/design/rollouts.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (R\d+) \|[^|]+\|([^|]*)\|([^|]*)\|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")


def problems_of(text: str) -> list[str]:
    """What is wrong with the rows of a text: rules that name no code or no test, and names that are not there."""
    found = []
    for rule, code, tests in ROW.findall(text):
        for kind, named, exists in (("code", code, is_code), ("test", tests, is_test)):
            names = QUOTED.findall(named)
            found += [f"{rule} names no {kind}"] if not names else []
            found += [f"{rule}: there is no {kind} {name}" for name in names if not exists(ROOT, name)]
    return found


def test_table__every_rule_of_rollouts__has_a_row_with_code_and_tests_that_exist() -> None:
    rules = dict.fromkeys(re.findall(r"^\* \*\*(R\d+)\*\*", DESIGN, re.MULTILINE))

    assert [rule for rule, _, _ in ROW.findall(PAGE)] == list(rules)
    assert len(rules) == 14
    assert problems_of(PAGE) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| R1 | x | `xdscore.sides.side_of` | |", "R1 names no test"),
        ("| R1 | x | | `tests/unit/docs/test_rollouts_table.py::test_row__untrue__is_found` |", "R1 names no code"),
        ("| R1 | x | `xdscore.sides.nope` | `nope.py::x` |", "R1: there is no code xdscore.sides.nope"),
        ("| R1 | x | `xdscore.sides.side_of` | `nope.py::x` |", "R1: there is no test nope.py::x"),
    ],
)
def test_row__untrue__is_found(row: str, problem: str) -> None:
    assert problem in problems_of(row)
