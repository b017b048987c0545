"""Rules as sentences, and client groups as lines that people type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.access.values import RuleDraft
from controlplane.common.errors import InputInvalid
from controlplane.console.access_words import matcher_line, matchers_of, rule_sentence
from xdscore.access import Effect
from xdscore.environment_choice import Selector

WORD = st.text(alphabet="abcXYZ019*-_./:", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("draft", "sentence"),
    [
        (RuleDraft(Effect.ALLOW, "*"), "All clients may read everything."),
        (
            RuleDraft(Effect.DENY, "pay*", client_groups=("edge", "web"), types=("cluster", "listener")),
            "Clients in edge or web may not read clusters and listeners named pay*, and are told so.",
        ),
        (RuleDraft(Effect.HIDE, "internal"), "All clients are told that whatever is named internal does not exist."),
        (
            RuleDraft(Effect.HIDE, "x*", types=("secret",), client_groups=("web",)),
            "Clients in web are told that secrets named x* do not exist.",
        ),
    ],
)
def test_rule_sentence__any_rule__says_who_what_and_how(draft: RuleDraft, sentence: str) -> None:
    assert rule_sentence(draft) == sentence


@given(
    st.builds(
        Selector,
        identity=st.none() | WORD,
        node_id=st.none() | WORD,
        node_cluster=WORD,
        metadata=st.dictionaries(st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True), WORD, max_size=3),
    )
)
def test_matchers__written_and_read_back__are_the_same(matcher: Selector) -> None:
    assert matchers_of(f"\n  {matcher_line(matcher)}  \n") == (matcher,)


@pytest.mark.parametrize(
    "text", ["", "  \n ", "edge", "cluster=", "cluster=a cluster=b", "colour=red", "cluster=a edge", "metadata.=x"]
)
def test_matchers__line_that_says_nothing__is_refused_with_its_number(text: str) -> None:
    with pytest.raises(InputInvalid, match=r"Line 1|at least one line"):
        matchers_of(text)
