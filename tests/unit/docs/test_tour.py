"""docs/tour.md: each row has its picture or its transcript, and a test that walks it with every hand."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "tour.md"
_LISTS = "tests/web/test_lists_in_browser.py", "test_list__narrowed_sorted_kept_and_opened_again"
_BULK = (
    "tests/web/test_bulk_in_browser.py",
    "test_resources__chosen_in_the_list__are_labelled_found_again_and_deleted_as_one",
)
_PALETTE = "tests/web/test_palette_in_browser.py", "test_walk__from_a_command_to_a_quarantine"
_DAILY = (
    "tests/web/test_daily_work_in_browser.py",
    "test_service__exposed_imported_changed_and_looked_at_in_ones_own_time",
)
# The walk by pointer, by keys and without scripts of each row of the console; its module asks axe, too.
WALKS = {
    "Filter by state and time": _LISTS,
    "Sort": _LISTS,
    "One thing with many": _BULK,
    "Saved views": _LISTS,
    "Search everything": _PALETTE,
    "Command palette": _PALETTE,
    "A service as one change": _DAILY,
    "Import with a difference for each resource": _DAILY,
    "Times": _DAILY,
}
# Rows with a walk for each hand by itself; what is folded is a disclosure of the browser's own.
APART = {
    "A form beside the text": (
        "tests/web/test_editor_in_browser.py",
        "test_editor__by_the_pointer__writes_a_listed_name_and_shows_text_and_form_alike",
        "test_editor__by_keys__completes_a_name_fills_in_the_form_and_saves",
        "test_editor__without_scripts__lists_names_and_applies_the_form",
    ),
    "Folded repeats": (
        "tests/web/test_audit_and_setup.py",
        "test_audit__same_again_and_again__is_one_line_that_unfolds_to_each",
    ),
}
TRANSCRIPTS = {"Exit statuses of the command line", "Pipelines"}
HANDS = {"Pointer", "Keyboard", "Plain"}


def sections() -> dict[str, str]:
    """The text of each section of the page, by its title."""
    titles = re.split(r"^## (.*)\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(titles[::2], titles[1::2], strict=True))


def test_tour__each_row__is_walked_or_run() -> None:
    found = sections()

    assert found.keys() == WALKS.keys() | APART.keys() | TRANSCRIPTS
    for title, text in found.items():
        assert ("```console" in text) == (title in TRANSCRIPTS), title
        assert bool(re.search(r"!\[.{40,}\]\(images/tour/", text)) == (title not in TRANSCRIPTS), title


def test_tour__pictures__are_there_and_each_is_shown() -> None:
    shown = re.findall(r"\]\((images/tour/[^)]+)\)", PAGE.read_text())

    there = {str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs" / "images" / "tour").iterdir()}

    assert sorted(shown) == sorted(there)


@pytest.mark.parametrize("row", WALKS)
def test_walk__of_a_row__is_one_with_each_hand_and_axe(row: str) -> None:
    file, name = WALKS[row]
    text = (ROOT / file).read_text()
    [walk] = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef) and each.name == name]
    given = " ".join(ast.unparse(each) for each in walk.decorator_list)
    if "HANDS" in given:
        given = re.search(r"^HANDS = (.*)$", text, re.MULTILINE)[1]  # type: ignore[index]

    assert set(re.findall(r"\w+", given)) >= HANDS
    assert "axe_faults(" in text or "faults(hand)" in text


@pytest.mark.parametrize("row", APART)
def test_walks__of_a_row_one_by_one__are_there(row: str) -> None:
    file, *names = APART[row]

    assert {
        each.name for each in ast.parse((ROOT / file).read_text()).body if isinstance(each, ast.FunctionDef)
    } >= set(names)
