"""Labels: what one may be, what is stored of them, and what a selector takes."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.labels import (
    MAX_LABELS,
    MAX_REQUIREMENTS,
    Requirement,
    count_problem,
    edit_problems,
    edited,
    edits_between,
    edits_read,
    key_problem,
    packed,
    selector_read,
    unpacked,
    value_problem,
)

KEYS = st.from_regex(r"([a-z]{1,3}\.[a-z]{1,3}/)?[A-Za-z0-9]([a-z0-9_.-]{0,5}[A-Z0-9])?", fullmatch=True)
VALUES = st.one_of(st.just(""), st.from_regex(r"[A-Za-z0-9]([a-z0-9_.-]{0,5}[A-Z0-9])?", fullmatch=True))
LABELS = st.dictionaries(KEYS, VALUES, max_size=6)
REQUIREMENTS = st.builds(Requirement, KEYS, st.one_of(st.none(), VALUES), st.booleans())


@pytest.mark.parametrize(
    "key",
    ["team", "T", "a" * 63, "example.com/team", "a-b.c/x_y.z", f"{'a' * 253}/b", "0", "kubernetes.io/App-2"],
)
def test_key__as_kubernetes_takes_it__is_taken(key: str) -> None:
    assert key_problem(key) == ""


@pytest.mark.parametrize(
    "key",
    [
        *("", "-a", "a-", ".a", "a b", "a" * 64, "/a", "a/", "A.com/a", "a..b/c", f"{'a' * 254}/b", "a/b/c", "a=b"),
        *("a\n", "ä", "a!", "@labels"),
    ],
)
def test_key__that_kubernetes_refuses__is_refused_with_a_sentence(key: str) -> None:
    assert key_problem(key).endswith(".")
    assert key_problem(key).isprintable()


def test_value__of_63_characters_or_none__is_taken_and_a_longer_one_is_not() -> None:
    assert [value_problem("k", value) for value in ("", "v" * 63, "1.2-b_C")] == ["", "", ""]
    assert all(value_problem("k", value) for value in ("v" * 64, "-v", "v ", "a/b", "a\nb", "ü"))


@given(LABELS)
def test_packed__any_labels__are_read_back(labels: dict[str, str]) -> None:
    assert unpacked(packed(labels)) == labels


@given(LABELS, REQUIREMENTS)
def test_part__is_in_the_stored_text__if_and_only_if_there_is_such_a_label(
    labels: dict[str, str], requirement: Requirement
) -> None:
    assert ((requirement.part in packed(labels)) is requirement.wanted) is requirement.takes(labels)


@given(st.lists(REQUIREMENTS, max_size=MAX_REQUIREMENTS))
def test_selector__as_it_is_written__is_read_back(requirements: list[Requirement]) -> None:
    assert list(selector_read(", ".join(map(str, requirements)))) == requirements


@given(LABELS, LABELS)
def test_edits_between__make_the_one_of_the_other(before: dict[str, str], after: dict[str, str]) -> None:
    assert edited(before, edits_between(before, after)) == after


def test_selector__double_sign_and_blanks__mean_the_same() -> None:
    assert selector_read(" a == b ,!c") == (Requirement("a", "b"), Requirement("c", None, wanted=False))
    assert selector_read("") == ()


@pytest.mark.parametrize("text", ["a=b,,c", "=b", "a=b c", "a in (b,c)", "!", ",", "a" * 1_025, ",".join(["a"] * 17)])
def test_selector__that_cannot_be_read__says_why(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        selector_read(text)


def test_edits__as_people_write_them__set_and_remove() -> None:
    assert edits_read(["team=pay", "old-", "empty="]) == {"team": "pay", "old": None, "empty": ""}


@pytest.mark.parametrize(
    ("words", "said"), [(["team"], "no label"), (["-"], "no label"), (["a=1", "a-"], "given twice")]
)
def test_edits__that_cannot_be_read__say_why(words: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        edits_read(words)


def test_edit_problems__of_several__all_are_told() -> None:
    assert len(edit_problems({"-a": "x", "ok": "-", "fine": "1", "gone": None})) == 2


def test_count__beyond_the_limit__is_told() -> None:
    labels = {f"{first}{second}": "" for first in string.ascii_lowercase for second in "abc"}

    assert count_problem(dict(list(labels.items())[:MAX_LABELS])) == ""
    assert "at most 64" in count_problem(labels)
