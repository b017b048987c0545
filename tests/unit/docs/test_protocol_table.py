"""The table of protocol rules is true, and its check would notice if it were not."""

from pathlib import Path

import pytest

from scripts.protocol_table import RULES, TABLE, problems_of

ROOT = Path(__file__).resolve().parents[3]


def test_table__of_the_protocol__every_rule_has_a_function_and_a_test_that_exist() -> None:
    assert list(problems_of((ROOT / TABLE).read_text(encoding="utf-8"), ROOT)) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| A1 | x | `xdscore.decision.decide` | |", "Rule A1 names no test."),
        ("| A1 | x | | `tests/unit/docs/test_protocol_table.py::test_row__untrue__is_found` |", "names no function"),
        ("| A1 | x | `xdscore.decision.nope` | `scripts/install.sh::x` |", "there is no xdscore.decision.nope"),
        ("| A1 | x | `nope.nope` | `tests/unit/docs/test_protocol_table.py::test_nope` |", "test_nope"),
        ("| A1 | x | `adsserver.engine.session.Session.nope` | `nope.py::x` |", "Session.nope"),
    ],
)
def test_row__untrue__is_found(row: str, problem: str) -> None:
    problems = list(problems_of(row, ROOT))

    assert any(problem in found for found in problems)
    assert sum("has no row" in found for found in problems) == len(RULES) - 1
