"""What kind of browser it is, in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.accounts.browser_words import MAX_CHARS, browser_words

_APPLE = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0", "Firefox on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_APPLE} Chrome/150.0.0.0 Safari/537.36", "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {_APPLE} Chrome/150.0 Safari/537.36 Edg/150.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Linux; Android 15; K) {_APPLE} Chrome/150.0 Mobile Safari/537.36", "Chrome on Android"),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) {_APPLE} CriOS/150 Safari/604",
            "Chrome on an iPhone",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/19 Safari/605", "Safari on macOS"),
        ("curl/8.5.0", "curl"),
        ("", "an unknown browser"),
    ],
)
def test_browser_words__of_a_header__are_those_its_owner_knows(agent: str, words: str) -> None:
    assert browser_words(agent) == words


@given(st.text(max_size=300))
def test_browser_words__of_anything__are_short_and_ours(agent: str) -> None:
    assert len(browser_words(agent)) <= MAX_CHARS
    assert browser_words(f"<b>{agent}").isascii()
    assert "<" not in browser_words(f"<b>{agent}")
