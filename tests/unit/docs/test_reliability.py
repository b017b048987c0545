"""The table of faults is true: the tests that a row names exist, and every fault has a row or is named as open."""

import re
from pathlib import Path

from scripts.protocol_table import is_test

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
TABLE, _, OPEN = PAGE.partition("## Without a test yet")
FAULTS = 32


def test_faults__each__has_a_row_or_is_named_as_open() -> None:
    shown = {
        int(number)
        for line in TABLE.splitlines()
        if line.startswith("| F")
        for number in re.findall(r"F(\d+)", line.split("|")[1])
    }
    left = {int(number) for number in re.findall(r"F(\d+)", OPEN)}

    assert shown | left == set(range(1, FAULTS + 1))
    assert not shown & left


def test_rows__tests_they_name__exist() -> None:
    for line in TABLE.splitlines():
        if line.startswith(("| F", "| restore")):
            tests = re.findall(r"`([^`]+)`", line.split("|")[3])
            assert tests
            assert [name for name in tests if not is_test(ROOT, name)] == []
