"""The pattern index finds exactly the patterns that match."""

from hypothesis import example, given
from hypothesis import strategies as st

from xdscore.names import glob_matches
from xdscore.patterns import PatternIndex

# Few letters, so that patterns and names meet.
TEXTS = st.text(alphabet="ab.", max_size=9)
PATTERNS = st.lists(TEXTS, min_size=1, max_size=4).map("*".join)


@example(patterns=["ab*", "ababab*", "*ba", "*babab*", "*bababa"], name="ab")  # shorter than some heads and tails
@example(patterns=["*abab*", "*baba*b*"], name="abababababab")  # has a piece more than once
@given(patterns=st.lists(PATTERNS, max_size=20), name=TEXTS)
def test_matching__any_patterns_and_name__finds_what_trying_each_finds(patterns: list[str], name: str) -> None:
    found = PatternIndex(patterns).matching(name)

    assert found == [number for number, pattern in enumerate(patterns) if glob_matches(pattern, name)]


def test_matching__inner_text_longer_than_a_piece__is_compared_as_a_whole() -> None:
    index = PatternIndex(["*payments*", "*payment-v2*"])

    assert index.matching("eu.payments.internal") == [0]


def test_matching__patterns_that_share_their_head__are_told_apart_by_their_tails() -> None:
    index = PatternIndex([f"svc-*-{number}" for number in range(1_000)])

    assert index.matching("svc-pay-77") == [77]
    assert all(len(drawer.others) == 1 for drawer in index._tails.values())
