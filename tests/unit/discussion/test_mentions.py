"""Whom a text mentions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.discussion.mentions import MAX_MENTIONS, mentioned


@pytest.mark.parametrize(
    ("text", "logins"),
    [
        ("@mia", [("mia",)]),
        ("ask @mia, or @ben.", [("mia",), ("ben.", "ben")]),
        ("(@mia)", [("mia",)]),
        ("@mia@example.com", [("mia@example.com",)]),
        ("@j.doe+ops-2", [("j.doe+ops-2",)]),
        ("@mia @mia", [("mia",)]),
        ("@Łukasz", [("Łukasz",)]),
        ("mail me@example.com", []),
        ("a @ b", []),
        ("@", []),
        ("@@@", []),
        ("@...", []),
    ],
)
def test_mentioned__a_text__whom(text: str, logins: list[tuple[str, ...]]) -> None:
    assert list(mentioned(text)) == logins


@given(st.text(alphabet="@.+-_a Ł\n", max_size=300))
def test_mentioned__any_text__ends_and_is_bounded(text: str) -> None:
    found = mentioned(text)

    assert len(found) <= MAX_MENTIONS
    assert all(f"@{login}" in text for logins in found for login in logins)
