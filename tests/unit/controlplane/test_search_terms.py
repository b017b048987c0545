"""The search box understands what people paste."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.console.search_terms import MAX_CHARS, terms_of
from xdscore.decision import Denied, Missing
from xdscore.errors import error_of
from xdscore.resource_types import LISTENER

LINK = "https://cp.example/x?e=prod&t=listener&n=pay.internal"


@pytest.mark.parametrize("decision", [Missing(), Denied(3, "ask the payments team"), Missing(removed=True)])
@pytest.mark.parametrize("name", ["pay.internal", "xdstp://a/b?c=d&e=f", "ü ber"])
def test_terms__text_of_an_error__ask_what_the_client_asked(decision: Missing | Denied, name: str) -> None:
    error = error_of(decision, kind=LISTENER, name=name, environment="prod", public_url="https://cp.example")
    assert error is not None
    wrapped = f"UNAVAILABLE: empty address list (LDS resource {name}: {error.text} (node ID:demo-1))"

    found = terms_of(f"2026-05-04 02:14 ERROR {wrapped}\n")

    assert (found.environment, found.word, found.name) == ("prod", "listener", name)
    assert (found.client, found.code, found.asks) == ("demo-1", error.xds_code, True)


def test_terms__link_was_cut_off__reads_the_sentence() -> None:
    found = terms_of("NOT_FOUND [XDS2101] Cluster 'pay' is not published in 'prod'. Expl")

    assert (found.environment, found.word, found.name, found.code) == ("prod", "cluster", "pay", "XDS2101")


@pytest.mark.parametrize(
    ("typed", "code", "asks"),
    [("XDS2103", "XDS2103", False), (" xds2103 ", "XDS2103", False), ("pay.internal", "", False), ("", "", False)],
)
def test_terms__a_word__is_a_code_or_to_be_looked_for(typed: str, code: str, asks: bool) -> None:
    found = terms_of(typed)

    assert (found.code, found.asks, found.text) == (code, asks, typed.strip())


def test_terms__link_alone__is_the_question() -> None:
    assert terms_of(LINK).name == "pay.internal"


@given(st.text(max_size=200))
def test_terms__any_text__is_read_without_trouble(text: str) -> None:
    assert len(terms_of(text).text) <= MAX_CHARS
