"""The page of the states of a name is what the engine does, and cites rules that exist."""

import re
from pathlib import Path

from adsserver.engine.name_state import TABLE
from scripts.protocol_table import RULES
from scripts.states_page import page

ROOT = Path(__file__).resolve().parents[3]


def test_page__of_the_states__is_what_the_tables_say() -> None:
    assert (ROOT / "docs/reference/protocol-states.md").read_text(encoding="utf-8") == page(), "make states"


def test_page__every_event__cites_rules_of_the_protocol() -> None:
    cited = {rule for row in TABLE.values() for rule in row.rules.split(", ")}

    assert cited <= set(RULES)
    assert all(re.search(rf"\b{rule}\b", page()) for rule in cited)
