"""The table of budgets is whole: what it names exists, the page says the same, and each row is attacked."""

from pathlib import Path

import pytest

from scripts.protocol_table import is_code
from tests.support.neighbours import ATTACKS
from xdscore.budgets import BUDGETS, BudgetRow
from xdscore.limits import LIMITS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/budgets.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", BUDGETS, ids=lambda row: row.causes)
def test_row__limits_and_code_it_names__exist_and_stand_on_the_page(row: BudgetRow) -> None:
    names = ", ".join(f"`{each}`" for each in row.limits)

    assert {each.name for each in LIMITS}.issuperset(row.limits)
    assert is_code(ROOT, row.enforced)
    assert f"| {row.causes} | {names} | {row.beyond} | `{row.enforced}` |" in PAGE.splitlines()


def test_page__has_the_rows_of_the_table__and_no_others() -> None:
    causes = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")]

    assert causes[1:] == [row.causes for row in BUDGETS]


def test_attacks__of_a_noisy_neighbour__leave_no_row_out() -> None:
    attacked = {cause for attack in ATTACKS.values() for cause in attack.against}

    assert attacked == {row.causes for row in BUDGETS}
