"""The catalogue: stable, one line each, and every code reachable."""

import string

from xdscore.schema import CATALOGUE
from xdscore.schema.codes import Code, shown


def test_catalogue__codes__are_unique_in_range_and_in_order() -> None:
    codes = [row.code for row in CATALOGUE]

    assert codes == sorted(set(codes))
    assert all(code.startswith("XDS10") and len(code) == 7 for code in codes)


def test_catalogue__texts__are_one_short_sentence_each() -> None:
    for row in CATALOGUE:
        assert row.title
        assert row.detail.endswith((".", "}."))
        assert "\n" not in row.detail + row.hint
        assert len(row.detail) <= 160
        assert not row.hint or row.hint.endswith((".", "}"))


def test_catalogue__every_code__fills_its_templates() -> None:
    for row in CATALOGUE:
        names = [name for _, name, _, _ in string.Formatter().parse(row.detail + row.hint) if name]
        finding = row.filled(dict.fromkeys(names, "x"))
        assert "{" not in finding.detail
        assert finding.code == row.code


def test_shown__foreign_text__becomes_one_short_printable_line() -> None:
    assert shown("a\r\n\x1b[31m\u202e\ud800") == "a\\u000d\\u000a\\u001b[31m\\u202e\\ud800"
    assert len(shown("x" * 1000)) == 120
    assert shown("a" * 60 + "b" * 61).startswith("aaa")


def test_finding__template_characters_in_values__are_not_templates() -> None:
    row = Code("XDS1099", "t", "'{field}' is {given}.")

    assert row.finding("", field="{given}", given="{0}").detail == "'{given}' is {0}."
