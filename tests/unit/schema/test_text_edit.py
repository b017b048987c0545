"""One value of a text is changed, and the rest of the text stays byte for byte."""

import difflib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.schema.positions import Path
from xdscore.schema.text import Tree
from xdscore.schema.text_edit import NotEditableError, trees_of, value_at, value_put, value_removed
from xdscore.schema.yaml_out import yaml_inline, yaml_of

TEXT = """\
# what pays
"@type": some.Cluster
name: pay   # the name
kind: 'EDS'
empty:
words: >-
  some
  words

rows:
- locality: {region: local}   # here
  # two of them
  rows:
  - {port: 80, weight: 1}
  - weight: 2  # the second
    # its port
    port: 81
domains: ["*", 'a.b']
# the end
"""


def changes(edited: str, text: str = TEXT) -> list[str]:
    """The lines that an edit took out and brought in."""
    lines = difflib.ndiff(text.splitlines(), edited.splitlines())
    return [line[0] + line[2:] for line in lines if line[0] in "+-"]


@pytest.mark.parametrize(
    ("path", "value", "changed"),
    [
        (("name",), "refund", ["-name: pay   # the name", "+name: refund   # the name"]),
        (("name",), "on: off", ["-name: pay   # the name", "+name: 'on: off'   # the name"]),
        (("kind",), "it's", ["-kind: 'EDS'", "+kind: 'it''s'"]),
        (("empty",), 1, ["-empty:", "+empty: 1"]),
        (("empty", "a"), True, ["-empty:", "+empty: {a: true}"]),
        (("words",), "fewer", ["-words: >-", "-  some", "-  words", "+words: fewer"]),
        (("new", "list", 0, "a"), "x", ["+new:", "+  list:", "+  - a: x"]),
        (("rows", 0, "rows", 0, "port"), 8080,
         ["-  - {port: 80, weight: 1}", "+  - {port: 8080, weight: 1}"]),
        (("rows", 0, "rows", 0, "a"), "b, c",
         ["-  - {port: 80, weight: 1}", "+  - {port: 80, weight: 1, a: 'b, c'}"]),
        (("rows", 0, "rows", 2), {"port": 82, "more": {"a": [1]}},
         ["+  - port: 82", "+    more:", "+      a:", "+      - 1"]),
        (("rows", 1), {"a": 1}, ["+- a: 1"]),
        (("domains", 2), "c", ["-domains: [\"*\", 'a.b']", "+domains: [\"*\", 'a.b', c]"]),
    ],
)  # fmt: skip
def test_put__value__changes_its_own_lines_alone(path: Path, value: Tree, changed: list[str]) -> None:
    edited = value_put(TEXT, 0, path, value)

    assert sorted(changes(edited)) == sorted(changed)
    assert value_at(trees_of(edited)[0], path) == value


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        (("name",), ["-name: pay   # the name"]),
        (("words",), ["-words: >-", "-  some", "-  words"]),
        (("rows", 0, "rows", 1), ["-  - weight: 2  # the second", "-    # its port", "-    port: 81"]),
        (("rows", 0, "rows", 0, "port"), ["-  - {port: 80, weight: 1}", "+  - {weight: 1}"]),
        (("rows", 0, "rows", 0, "weight"), ["-  - {port: 80, weight: 1}", "+  - {port: 80}"]),
        (("rows", 0, "rows", 1, "weight"), ["-  - weight: 2  # the second", "+  - "]),
        (("domains", 0), ["-domains: [\"*\", 'a.b']", "+domains: ['a.b']"]),
    ],
)  # fmt: skip
def test_removed__value__takes_its_own_lines_along_alone(path: Path, changed: list[str]) -> None:
    assert changes(value_removed(TEXT, 0, path)) == changed


def test_json__is_edited_as_json() -> None:
    text = '{\n  "name": "pay",\n  "rows": [{"port": 80}],\n  "more": {}\n}\n'

    edited = value_put(value_put(value_put(text, 0, ("rows", 1), {"a": None}), 0, ("more", "x"), 'a"b'), 0, ("z",), [1])

    assert json.loads(edited) == {"name": "pay", "rows": [{"port": 80}, {"a": None}], "more": {"x": 'a"b'}, "z": [1]}
    assert changes(edited, text)[-1] == '+  "z": [1]'
    assert json.loads(value_removed(edited, 0, ("name",))).keys() == {"rows", "more", "z"}


def test_documents__the_one_that_is_meant__is_edited() -> None:
    text = "# a\na: 1\n---\n---\nb: 1  # b\n---\n- c: 1\n"

    assert value_put(text, 2, ("b",), 2) == text.replace("b: 1", "b: 2")
    assert value_put(text, 3, (0, "d"), 2) == text + "  d: 2\n"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: [1", ("a",)),
        ("a: &x 1\nb: *x\n", ("b",)),
        ("a: words\n", ("a", "b")),
        ("a: [1]\n", ("a", 3)),
        ("a: 1\na: 2\n", ("a",)),
        ("- - a\n", ("x",)),
        ("[" * 5000, (0,)),
    ],
)
def test_put__where_it_cannot_be_done__says_so(text: str, path: Path) -> None:
    with pytest.raises(NotEditableError):
        value_put(text, 0, path, 7)
    with pytest.raises(NotEditableError):
        value_removed(text, 0, ("nowhere",))


WORDS = st.text(alphabet="ab: #-'\"\\,{}[]é", max_size=6)
SCALARS: Any = st.none() | st.booleans() | st.integers(-5, 99) | WORDS
KEYS = st.sampled_from(["name", "a", "b c", "@type", "x-1"])
TREES: Any = st.dictionaries(
    KEYS,
    st.recursive(SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(KEYS, each, max_size=3)),
    min_size=1,
)  # fmt: skip


def paths(tree: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from paths(value, (*path, key))


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, str, Path]:
    """A text with a comment behind or between its lines, how it was written, and a path in it."""
    tree = draw(TREES)
    form = draw(st.sampled_from(["block", "flow", "json"]))
    text = {"block": yaml_of(tree), "flow": yaml_inline(tree) + "\n", "json": json.dumps(tree, indent=2)}[form]
    if form == "block" and not any(sign in text for sign in ("? ", "|", ">", '"')):
        lines = text.splitlines()
        marks = draw(st.sets(st.integers(0, len(lines))))
        text = "".join(f"# mark {at}\n" * (at in marks) + f"{line}\n" for at, line in enumerate([*lines, ""]))
    return text, form, draw(st.sampled_from(list(paths(tree))))


@given(found=texts(), value=SCALARS | st.just({"k": [1, {"m": "x"}]}))
def test_put__anywhere_in_any_text__changes_that_value_and_no_comment(
    found: tuple[str, str, Path], value: Tree
) -> None:
    text, _form, path = found
    try:
        edited = value_put(text, 0, path, value)
    except NotEditableError:
        return

    assert value_at(trees_of(edited)[0], path) == value
    before = value_at(trees_of(text)[0], path)
    if not isinstance(before, dict | list):  # what a list or mapping holds goes with it
        assert [line for line in edited.splitlines() if "# mark" in line] == [
            line for line in text.splitlines() if "# mark" in line
        ]
        gone = [line for line in changes(edited, text) if line[0] == "-"]
        assert len(gone) <= 1 + str(before).count(" ")


@given(found=texts())
def test_removed__anywhere_in_any_text__takes_nothing_else_along(found: tuple[str, str, Path]) -> None:
    text, _form, path = found
    try:
        edited = value_removed(text, 0, path)
    except NotEditableError:
        return

    left, whole = trees_of(edited)[0], trees_of(text)[0]
    held, around = value_at(whole, path), value_at(left, path[:-1])
    if isinstance(path[-1], str):
        assert isinstance(around, dict)
        assert path[-1] not in around
        assert {**around, path[-1]: held} == value_at(whole, path[:-1])
    else:
        assert isinstance(around, list)
        assert [*around[: path[-1]], held, *around[path[-1] :]] == value_at(whole, path[:-1])


@given(tree=TREES, value=WORDS)
def test_put__value_of_a_machine_made_text__can_always_be_done(tree: dict[str, Tree], value: str) -> None:
    for path in paths(tree):
        if not isinstance(value_at(tree, path), dict | list):
            edited = value_put(yaml_of(tree), 0, path, value)
            assert value_at(trees_of(edited)[0], path) == value
