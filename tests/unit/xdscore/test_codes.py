"""The catalogue of codes: complete, stable, one line each, and its page is up to date."""

import re
import string
from pathlib import Path

import pytest

from controlplane.api import errors as http
from controlplane.common import errors
from controlplane.common.errors import ControlPlaneError
from scripts.codes_page import page
from xdscore.codes import CATALOGUE, Code, shown
from xdscore.errors import StatusCode

ROOT = Path(__file__).parents[3]
ROOMS = ("adsserver", "controlplane", "xdscore", "xdsclient", "xdsctl", "templates")
CODE = re.compile(r"XDS[0-9]{4}\b")


def said_in_source() -> set[str]:
    """Every code that the product's own source names, except for the catalogue itself."""
    files = (
        file
        for room in ROOMS
        for file in (ROOT / room).rglob("*")
        if file.suffix in {".py", ".html", ".txt", ".js"} and file.is_file()
    )
    return {code for file in files for code in CODE.findall(file.read_text(encoding="utf-8"))}


def test_catalogue__every_code_of_the_source__has_a_row_and_every_row_is_said_or_retired() -> None:
    said = said_in_source()

    assert len(said) > 50
    assert said - CATALOGUE.keys() == set()
    assert {row.code for row in CATALOGUE.values() if not row.retired} - said == set()


def test_catalogue__codes__are_in_order_and_in_range() -> None:
    codes = list(CATALOGUE)

    assert codes == sorted(codes)
    assert all(re.fullmatch(r"XDS(10|11|20|21|30|40|50|90)[0-9]{2}", code) for code in codes)


@pytest.mark.parametrize("row", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_catalogue__texts__are_short_sentences_on_one_line(row: Code) -> None:
    assert row.title
    assert row.title[-1] not in ".!:"
    assert row.detail.endswith((".", "}."))
    assert "\n" not in row.detail + row.hint + row.meaning
    assert len(row.detail) <= 160
    assert not row.hint or row.hint.endswith((".", "}"))
    assert row.meaning.endswith((".", "…"))


@pytest.mark.parametrize("row", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_catalogue__templates__fill(row: Code) -> None:
    names = [name for _, name, _, _ in string.Formatter().parse(row.detail + row.hint) if name]

    finding = row.filled(dict.fromkeys(names, "x"))

    assert "{" not in finding.detail + finding.hint
    assert (finding.code, finding.severity) == (row.code, row.severity)


def test_catalogue__statuses__are_those_that_are_sent() -> None:
    raised = [
        kind
        for module in (errors, http)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, ControlPlaneError) and hasattr(kind, "code")
    ]

    assert len(raised) > 10
    assert {kind.code: str(kind.status) for kind in raised} == {
        kind.code: CATALOGUE[kind.code].status for kind in raised
    }
    assert {row.status for row in CATALOGUE.values() if row.code.startswith("XDS21")} <= {
        code.name for code in StatusCode
    }


def test_page__is_made_from_the_catalogue() -> None:
    written = (ROOT / "docs/reference/codes.md").read_text(encoding="utf-8")

    assert written == page(), "run `make codes` and look at the difference"


def test_shown__foreign_text__becomes_one_short_printable_line() -> None:
    assert shown("a\r\n\x1b[31m\u202e\ud800") == "a\\u000d\\u000a\\u001b[31m\\u202e\\ud800"
    assert len(shown("x" * 1000)) == 120
    assert shown("a" * 60 + "b" * 61).startswith("aaa")


def test_finding__template_characters_in_values__are_not_templates() -> None:
    row = Code("XDS1099", "t", "'{field}' is {given}.")

    assert row.finding("", field="{given}", given="{0}").detail == "'{given}' is {0}."
