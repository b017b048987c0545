"""Names and globs."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.names import MAX_NAME_BYTES, glob_matches, name_problem


@pytest.mark.parametrize(
    "name",
    ["a", "pay/eu?x=1", "xdstp://auth/envoy.config.cluster.v3.Cluster/a*b", "é", "e\u0301", "x" * MAX_NAME_BYTES],
)
def test_name_problem__usable_name__is_empty(name: str) -> None:
    assert name_problem(name) == ""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is empty"),
        ("*", "every resource"),
        ("a\nb", "U+000A at position 2"),
        ("\0", "U+0000"),
        ("x" * 1025, "1025 bytes"),
        ("é" * 600, "1200 bytes"),
    ],
)
def test_name_problem__unusable_name__says_why(name: str, says: str) -> None:
    assert says in name_problem(name)


@given(pattern=st.text("ab*", max_size=6), text=st.text("ab", max_size=10))
def test_glob_matches__small_alphabet__agrees_with_fnmatch(pattern: str, text: str) -> None:
    assert glob_matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


@pytest.mark.parametrize("text", ["a?c", "[abc]", "a.c"])
def test_glob_matches__other_wildcards__stand_for_themselves(text: str) -> None:
    assert glob_matches(text, text)
    assert not glob_matches("a?c", "abc")
