"""The page about identity providers says what the code does: variables, defaults and limits."""

from pathlib import Path

from controlplane.config.loading import in_force
from controlplane.config.variables import MEANINGS
from xdscore.limits import LIMITS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "identity-provider.md").read_text("utf-8")
ROWS = {
    cells[1].strip().strip("`"): cells[2].strip().strip("`")
    for line in PAGE.splitlines()
    if (cells := line.split("|"))[1:] and cells[1].strip().startswith("`PARLEY_")
}


def test_page__every_variable__has_a_row_with_its_default() -> None:
    variables = {each.name: each.default or "\u2013" for each in in_force({}, directory=Path.cwd())}
    limits = {limit.variable: f"{limit.default:,}" for limit in LIMITS if limit.name.startswith("oidc_")}

    wanted = {name: variables[name] for name in MEANINGS if name.startswith("PARLEY_OIDC_")} | limits

    assert wanted == ROWS
