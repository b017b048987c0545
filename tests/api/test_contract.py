"""The page of what the REST API promises is true: every operation is in it, and each promise has its test."""

import re
from pathlib import Path

import pytest

from controlplane.api.views.schema import schema
from scripts.protocol_table import is_test
from tests.api.conftest import PREFIX

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/rest-contract.md"


def rows_of(part: str) -> list[list[str]]:
    """The rows of a table, without its head."""
    lines = [line for line in part.splitlines() if re.match(r"\| [^-]", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


OPERATIONS, CONVENTIONS = map(rows_of, PAGE.read_text(encoding="utf-8").partition("## Conventions")[::2])


def test_table__of_operations__is_the_schemas_with_their_stability() -> None:
    found = {
        f"`{verb.upper()} /{path.removeprefix(PREFIX)}`": operation["x-stability"]
        for path, operations in schema()["paths"].items()
        for verb, operation in operations.items()
    }

    assert {operation: stability for operation, stability, _tests in OPERATIONS} == found


@pytest.mark.parametrize("row", [*OPERATIONS, *CONVENTIONS], ids=lambda row: re.sub(r"\W+", "-", row[0])[:60])
def test_row__of_a_promise__names_tests_that_exist(row: list[str]) -> None:
    tests = re.findall(r"`([^`]+)`", row[-1])

    assert tests
    assert [name for name in tests if not is_test(ROOT, name)] == []


def test_schema__no_operation_is_deprecated__and_the_members_that_are_have_another_spelling() -> None:
    described = schema()

    operations = [each for path in described["paths"].values() for each in path.values()]
    assert not any(each.get("deprecated") for each in operations if isinstance(each, dict))
    members = {
        (shape, name): shown["properties"]
        for shape, shown in described["components"]["schemas"].items()
        for name, member in shown.get("properties", {}).items()
        if member.get("deprecated")
    }
    assert {name for _, name in members} == {"held", "held_count"}
    assert all(name.replace("held", "held_back") in properties for (_, name), properties in members.items())
