"""What is expected of an end, and how ends and cases are kept as JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.routecases.values import (
    ANSWERS,
    End,
    Expected,
    RouteCaseDraft,
    Share,
    draft_from_json,
    end_from_json,
)
from xdscore.environment_choice import ClientFacts
from xdscore.routing.values import Answer, Request

PAY = End(
    Answer.ROUTED,
    listener="edge",
    route="shop",
    virtual_host="shop",
    shares=(Share("pay", 100.0),),
    route_name="r",
)
SPLIT = End(Answer.ROUTED, shares=(Share("a", 66.67), Share("b", 33.33)))
MOVED = End(Answer.REDIRECT, status=301, location="https://shop.example/pay")


@pytest.mark.parametrize(
    ("expected", "end", "kept"),
    [
        (Expected(Answer.ROUTED), PAY, True),
        (Expected(Answer.ROUTED, cluster="pay", virtual_host="shop", route="shop", route_name="r"), PAY, True),
        (Expected(Answer.ROUTED, cluster="other"), PAY, False),
        (Expected(Answer.ROUTED, virtual_host="other"), PAY, False),
        (Expected(Answer.ROUTED, route="other"), PAY, False),
        (Expected(Answer.ROUTED, route_name="other"), PAY, False),
        (Expected(Answer.DIRECT), PAY, False),
        (Expected(Answer.ROUTED, cluster="a"), SPLIT, False),
        (Expected(Answer.ROUTED, weighted=(Share("b", 33.3), Share("a", 66.7))), SPLIT, True),
        (Expected(Answer.ROUTED, weighted=(Share("b", 33.0), Share("a", 67.0))), SPLIT, False),
        (Expected(Answer.ROUTED, weighted=(Share("a", 66.67),)), SPLIT, False),
        (Expected(Answer.REDIRECT, status=301, location="https://shop.example/pay"), MOVED, True),
        (Expected(Answer.REDIRECT, status=302), MOVED, False),
        (Expected(Answer.REDIRECT, location="https://shop.example/"), MOVED, False),
        (Expected(virtual_host="shop"), PAY, True),
        (Expected(virtual_host="shop"), End(Answer.REFUSED, virtual_host="shop", status=404), False),
        (Expected(virtual_host="shop"), End(Answer.UNKNOWN, virtual_host="shop"), False),
        (Expected(Answer.REFUSED, status=404), End(Answer.REFUSED, status=404), True),
    ],
)
def test_expected__of_an_end__is_kept_where_all_that_it_says_holds(expected: Expected, end: End, kept: bool) -> None:
    assert expected.kept_by(end) is kept


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (PAY, "goes to cluster 'pay' (virtual host 'shop', route 'r')"),
        (SPLIT, "goes to clusters 'a' (66.67 %), 'b' (33.33 %)"),
        (MOVED, "is redirected with 301 to 'https://shop.example/pay'"),
        (End(Answer.DIRECT, status=403, virtual_host="shop"), "is answered 403 (virtual host 'shop')"),
        (End(Answer.REFUSED, because="The answer is 404."), "is taken by nothing: The answer is 404."),
        (End(Answer.UNKNOWN, because="By a plugin."), "cannot be judged: By a plugin."),
    ],
)
def test_end__in_words__ends_a_sentence_that_begins_with_the_request(end: End, said: str) -> None:
    assert end.said == said


texts = st.text(alphabet="ab/ü ", max_size=5)
shares = st.lists(st.builds(Share, texts, st.floats(0, 100)), max_size=2).map(tuple)
ends = st.builds(
    End,
    *(st.sampled_from(Answer), texts, texts, texts, texts, shares, st.integers(0, 599), texts, texts),
)
expectations = st.builds(
    Expected,
    *(st.none() | st.sampled_from(ANSWERS), texts, shares, texts, texts, texts, st.integers(0, 599), texts),
)
clients = st.none() | st.builds(ClientFacts, texts, texts, st.just("edge"), st.dictionaries(texts, texts, max_size=2))
drafts = st.builds(
    RouteCaseDraft,
    texts,
    st.builds(Request, texts, texts, texts, texts, st.dictionaries(texts, texts, max_size=2)),
    expectations,
    *(texts, clients, st.booleans(), texts),
)


@given(end=ends)
def test_end__kept_as_json__is_the_same(end: End) -> None:
    assert end_from_json(json.loads(json.dumps(end.as_json()))) == end


@given(draft=drafts)
def test_case__kept_as_json__is_the_same(draft: RouteCaseDraft) -> None:
    assert draft_from_json(json.loads(json.dumps(draft.as_json()))) == draft
