"""The pages about performance name scenarios, files and limits that exist."""

import re
from pathlib import Path

import pytest

from bench.registry import load_scenarios
from xdscore.limits import LIMITS

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [DOCS / "performance.md", DOCS / "scale.md"]


def test_targets__scenario_column__names_scenarios_that_exist() -> None:
    rows = [line.split("|") for line in (DOCS / "performance.md").read_text().splitlines() if line.startswith("|")]
    named = [set(re.findall(r"`([^`]+)`", row[3])) for row in rows[2:]]

    assert all(named)
    assert set().union(*named) <= load_scenarios().keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links__of_a_page__lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())

    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_limits__that_a_page_names__exist(page: Path) -> None:
    named = set(re.findall(r"PARLEY_LIMIT_[A-Z_]+", page.read_text()))

    assert named
    assert named <= {limit.variable for limit in LIMITS}
