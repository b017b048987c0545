"""Where a unified difference begins, for whoever is led to its line."""

import pytest

from controlplane.console.diffs import first_changed
from xdscore.schema.differences import unified_text
from xdscore.schema.text import Tree

BEFORE: Tree = {"name": "pay", "type": "STATIC", "connect_timeout": "1s"}


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ({"name": "pay", "type": "STATIC", "connect_timeout": "1s"}, 0),
        ({"name": "pay", "type": "EDS", "connect_timeout": "1s"}, 2),
        ({"name": "pay", "type": "STATIC", "connect_timeout": "1s", "zone": "eu"}, 4),
        ({"name": "pay", "type": "STATIC"}, 3),
    ],
)
def test_first_changed__any_place__is_its_line_on_the_newer_side(after: Tree, line: int) -> None:
    assert first_changed(unified_text("cluster/pay", BEFORE, after)) == line
