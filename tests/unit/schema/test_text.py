"""The readers: YAML and JSON to plain trees with places, and everything they refuse."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xdscore.findings import Finding
from xdscore.schema import Document, ManifestLimits, Media, read_text


def documents(text: str, media: Media = Media.YAML) -> tuple[Document, ...]:
    read = read_text(text.encode(), media)
    assert read.findings == ()
    return read.documents


def refusals(body: str | bytes, media: Media, limits: ManifestLimits | None = None) -> tuple[Finding, ...]:
    raw = body.encode() if isinstance(body, str) else body
    read = read_text(raw, media, limits or ManifestLimits())
    assert read.documents == ()
    return read.findings


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("30s", "30s"),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("2026-11-21", "2026-11-21"),
        ("1:30", "1:30"),
        ("0123", "0123"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1.2.3.4", "1.2.3.4"),
        ("'true'", "true"),
        ('"7"', "7"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("+5", 5),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("!!str 12", "12"),
        ("9" * 41, "9" * 41),
    ],
)
def test_yaml_scalar__core_schema__says_what_json_would_say(scalar: str, value: object) -> None:
    (document,) = documents(f"key: {scalar}\n")

    assert document.tree == {"key": value}
    assert isinstance(document.tree, dict)
    assert type(document.tree["key"]) is type(value)


def test_yaml__several_documents__are_numbered_and_empty_ones_left_out() -> None:
    found = documents("a: 1\n---\n---\n- b\n")

    assert [(document.number, document.tree) for document in found] == [(0, {"a": 1}), (2, ["b"])]


def test_yaml__keys_that_look_like_other_types__stay_the_text_they_are() -> None:
    (document,) = documents("80: a\ntrue: b\n~: c\n")

    assert document.tree == {"80": "a", "true": "b", "~": "c"}


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "words"),
    [
        ("a: &x 1\nb: 2", "XDS1003", 1, 4, "anchor '&x'"),
        ("a: 1\nb: *x", "XDS1003", 2, 4, "alias '*x'"),
        ("a: !!binary aGk=", "XDS1003", 1, 4, "binary"),
        ("a: !mine x", "XDS1003", 1, 4, "!mine"),
        ("a: !!timestamp 2026-01-01", "XDS1003", 1, 4, "timestamp"),
        ("a:\n  <<: {b: 1}", "XDS1003", 2, 3, "merge key"),
        ("? [a]\n: b", "XDS1003", 1, 3, "as a key"),
        ("a: [1, 2", "XDS1001", 2, 1, "not YAML"),
        ("a: b: c", "XDS1001", 1, 5, "not YAML"),
        ('a: "x\\0"', "XDS1005", 1, 4, "U+0000"),
        ("a: 1\nb: \x01", "XDS1005", 2, 4, "U+0001"),
    ],
)
def test_yaml__beyond_plain_data__is_refused_at_its_place(
    text: str, code: str, line: int, column: int, words: str
) -> None:
    (finding,) = refusals(text, Media.YAML)

    assert (finding.code, finding.line, finding.column) == (code, line, column)
    assert words in finding.detail


@pytest.mark.parametrize("media", list(Media))
def test_duplicate_keys__all_of_them__with_both_lines(media: Media) -> None:
    text = '{"a": 1,\n "b": {"c": 1,\n "c": 2},\n "a": 3}'

    found = refusals(text, media)

    assert [(item.code, item.pointer, item.line, item.column) for item in found] == [
        ("XDS1002", "/b/c", 3, 2),
        ("XDS1002", "/a", 4, 2),
    ]
    assert "line 1" in found[1].hint


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", "XDS1001", 1, 1),
        ('{"a": 1,}', "XDS1001", 1, 9),
        ("a: 1", "XDS1001", 1, 1),
        ('[\n"x', "XDS1001", 2, 1),
        ("[1] [2]", "XDS1001", 1, 5),
        ('["a\tb"]', "XDS1001", 1, 4),
        ("[1,\nNaN]", "XDS1005", 2, 1),
        ("[-Infinity]", "XDS1005", 1, 2),
        ("[1e999]", "XDS1005", 1, 2),
        (f"[{'9' * 5000}]", "XDS1005", 1, 2),
        ('["a\\u0000"]', "XDS1005", 1, 2),
        ('{"\\ud800": 1}', "XDS1005", 1, 2),
    ],
)
def test_json__what_is_no_plain_json__is_refused_at_its_place(text: str, code: str, line: int, column: int) -> None:
    (finding,) = refusals(text, Media.JSON)

    assert finding.code == code
    assert finding.line == line
    if code != "XDS1001":  # the standard parser's own columns for syntax differ between releases of Python
        assert finding.column == column


def test_json__surrogate_pair__is_one_character() -> None:
    (document,) = documents('{"a": "\\ud83d\\ude00"}', Media.JSON)

    assert document.tree == {"a": "\N{GRINNING FACE}"}


@pytest.mark.parametrize("media", list(Media))
def test_body__not_utf8__names_the_byte_and_line(media: Media) -> None:
    (finding,) = refusals(b'{"a":\n "\xff"}', media)

    assert (finding.code, finding.line, finding.column) == ("XDS1001", 2, 3)


@pytest.mark.parametrize("media", list(Media))
def test_body__byte_order_mark__is_no_part_of_the_text(media: Media) -> None:
    read = read_text(b'\xef\xbb\xbf{"a": 1}', media)

    assert [document.tree for document in read.documents] == [{"a": 1}]


@pytest.mark.parametrize("media", list(Media))
def test_depth__at_the_limit__passes_and_one_more_is_refused(media: Media) -> None:
    limits = ManifestLimits(max_depth=5)

    at_limit = read_text(b"[[[[[1]]]]]", media, limits)
    (finding,) = refusals("[[[[[[1]]]]]]", media, limits)

    assert at_limit.findings == ()
    assert (finding.code, finding.line, finding.column) == ("XDS1004", 1, 6)


@pytest.mark.parametrize("media", list(Media))
def test_bytes__at_the_limit__passes_and_one_more_is_refused(media: Media) -> None:
    limits = ManifestLimits(max_bytes=7)

    assert read_text(b"[12345]", media, limits).findings == ()
    assert refusals("[123456]", media, limits)[0].code == "XDS1004"


@pytest.mark.parametrize("media", list(Media))
def test_values__beyond_the_limit__are_refused_but_commas_in_text_are_none(media: Media) -> None:
    limits = ManifestLimits(max_nodes=10)

    assert read_text(json.dumps([",,,,,,[[[[{{{{,,,,"]).encode(), media, limits).findings == ()
    assert refusals(json.dumps(list(range(12))), media, limits)[0].code == "XDS1004"


@pytest.mark.parametrize(
    ("body", "media"),
    [
        ("[" * 100_000, Media.JSON),
        ('{"a":' * 100_000, Media.JSON),
        ("[" * 100_000, Media.YAML),
        ("a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", Media.YAML),
        ("[" + "[]," * 1_300_000 + "[]]", Media.JSON),
        ("- " * 100_000 + "x", Media.YAML),
        ("[" + "1" * 4_000_000 + "]", Media.JSON),
        ("{" + '"a":1,' * 600_000 + '"a":1}', Media.JSON),
    ],
)
def test_bomb__of_any_kind__is_refused_quickly(body: str, media: Media) -> None:
    started = time.process_time()

    found = refusals(body, media)

    assert found[0].code in {"XDS1001", "XDS1002", "XDS1003", "XDS1004", "XDS1005"}
    assert len(found) <= 100
    assert time.process_time() - started < 3  # several times what it takes; as a bomb that works it takes minutes


def test_positions__yaml_and_json__members_stand_at_their_keys_and_items_at_their_start() -> None:
    (yaml_document,) = documents("a:\n- x\n- {b: 1}\n")
    (json_document,) = documents('{"a": [\n  "x",\n  {"b": 1}]}', Media.JSON)

    assert yaml_document.positions.at(("a", 1, "b")) == (3, 4)
    assert json_document.positions.at(("a", 1, "b")) == (3, 4)
    assert json_document.positions.at(("a", 0)) == (2, 3)
    assert json_document.positions.at(("a", 1, "missing", "deep")) == (3, 3)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**39) + 1, 10**39)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(json_values)
def test_json__whatever_json_writes__reads_back_or_is_refused_for_its_characters(value: object) -> None:
    text = json.dumps(value, ensure_ascii=True)

    read = read_text(text.encode(), Media.JSON)

    if read.findings:
        assert {finding.code for finding in read.findings} == {"XDS1005"}
        assert "\\u0000" in text or "\\ud" in text
    else:
        assert read.documents[0].tree == value


@settings(deadline=None)
@given(st.binary() | st.text(alphabet="ab:-{}[]\"'&*!|>#\n\t ,\\u0%@`?").map(str.encode))
def test_readers__arbitrary_bytes__never_raise(body: bytes) -> None:
    for media in Media:
        read = read_text(body, media)

        assert not (read.documents and read.findings)


@settings(deadline=None)
@given(json_values)
def test_positions__every_value_of_a_json_text__has_a_place_inside_it(value: object) -> None:
    text = json.dumps(value, indent=1)
    read = read_text(text.encode(), Media.JSON)
    lines = text.split("\n")

    for document in read.documents:
        for path in paths(document.tree):
            line, column = document.positions.at(path)
            assert 1 <= line <= len(lines)
            assert 1 <= column <= len(lines[line - 1])
            if path and isinstance(path[-1], str):
                assert lines[line - 1][column - 1 :].startswith(json.dumps(path[-1]))


def paths(tree: object, base: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [base]
    if isinstance(tree, dict):
        for key, item in tree.items():
            found += paths(item, (*base, key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            found += paths(item, (*base, index))
    return found
