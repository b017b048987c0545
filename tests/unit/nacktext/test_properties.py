"""Attribution over generated names and texts: exact where a grammar is followed, harmless everywhere else.

No deadlines: what a text may cost is measured in test_attribution.py.
"""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.nacktext import grammar
from tests.unit.nacktext.grammar import CDS, EDS, LDS, RDS, Case
from xdscore.nacktext import Dialect, attribute

IN_GRAMMAR = {
    "core": (grammar.core_cases(), LDS, Dialect.GRPC_CORE),
    "rust": (grammar.rust_cases(), CDS, Dialect.GRPC_RUST),
    "node": (grammar.node_cases(), LDS, Dialect.GRPC_NODE),
    "go": (grammar.go_cases(), CDS, Dialect.GRPC_GO),
    "java": (grammar.java_cases(), LDS, Dialect.GRPC_JAVA),
    "envoy clusters": (grammar.cluster_lists, CDS, Dialect.ENVOY),
    "envoy listeners": (grammar.listener_lists, LDS, Dialect.ENVOY),
    "envoy rules": (grammar.broken_rule_cases(), CDS, Dialect.ENVOY),
    "envoy duplicates": (grammar.duplicate_cases(), CDS, Dialect.ENVOY),
    "envoy on demand": (grammar.on_demand_cases(), CDS, Dialect.ENVOY),
}
# How a text is cut: by nobody knows whom, by Envoy or Parley, by one after the other.
_CUTS = ("", "...(truncated)", "...(trunc", "...(trunca...(truncated)")


@pytest.mark.parametrize("form", IN_GRAMMAR)
@settings(deadline=None)
@given(data=st.data())
def test_attribute__text_in_the_grammar_of_a_client_and_nasty_names__is_exact(form: str, data: st.DataObject) -> None:
    cases, type_url, dialect = IN_GRAMMAR[form]
    case = data.draw(cases)
    assume(not case.may_be_cut)

    attribution = attribute(case.message, type_url=type_url, names=case.names)

    assert attribution.names == case.culprit_names
    assert attribution.indexes == case.culprits
    assert attribution.dialect == dialect
    assert attribution.complete


@pytest.mark.parametrize("form", IN_GRAMMAR)
@settings(deadline=None)
@given(data=st.data())
def test_attribute__text_cut_anywhere__blames_only_culprits_and_is_incomplete(form: str, data: st.DataObject) -> None:
    cases, type_url, _ = IN_GRAMMAR[form]
    case = data.draw(cases)
    kept = data.draw(st.integers(0, len(case.message)))
    mark = data.draw(st.sampled_from(_CUTS))

    attribution = attribute(case.message[:kept] + mark, type_url=type_url, names=case.names)

    assert mark == "" or not attribution.complete
    assert set(attribution.names) <= set(case.culprit_names)
    if len(set(case.names)) > 1:
        assert set(attribution.indexes) <= set(case.culprits)


@settings(deadline=None)
@given(data=st.data(), case=grammar.core_error_entry_cases(), mark=st.sampled_from(_CUTS))
def test_attribute__text_about_error_entries_cut_anywhere__blames_nobody(
    data: st.DataObject, case: Case, mark: str
) -> None:
    kept = data.draw(st.integers(0, len(case.message)))

    attribution = attribute(case.message[:kept] + mark, type_url=LDS, names=case.names)

    assert (attribution.names, attribution.indexes) == ((), ())
    # The whole text says all there is to say: that no resource is to blame.
    assert attribution.complete == (kept == len(case.message) and mark == "")


_anything = st.text(max_size=200)
_pieces = st.lists(
    st.one_of(_anything, grammar.nasty_names, st.sampled_from(("xDS response validation errors: [", "resource index ")))
).map("".join)
_any_message = st.one_of(
    _pieces,
    *(cases.map(lambda case: case.message) for cases, _, _ in IN_GRAMMAR.values()),
    st.tuples(st.one_of(*(cases for cases, _, _ in IN_GRAMMAR.values())), _pieces).map(
        lambda pair: pair[0].message + pair[1]
    ),
)


@settings(deadline=None)
@given(
    message=_any_message,
    names=st.lists(st.one_of(grammar.nasty_names, _anything)),
    type_url=st.one_of(st.sampled_from((LDS, CDS, RDS, EDS)), _anything),
)
def test_attribute__any_text__blames_only_what_was_sent_and_always_the_same(
    message: str, names: list[str], type_url: str
) -> None:
    attribution = attribute(message, type_url=type_url, names=names)

    assert set(attribution.names) <= set(names)
    assert "" not in attribution.names
    assert all(0 <= index < len(names) for index in attribution.indexes)
    assert {names[index] for index in attribution.indexes} - {""} == set(attribution.names)
    assert len(set(attribution.names)) == len(attribution.names)
    assert len(set(attribution.indexes)) == len(attribution.indexes)
    assert attribute(message, type_url=type_url, names=tuple(names)) == attribution


@settings(deadline=None)
@given(case=st.one_of(*(cases for cases, _, _ in IN_GRAMMAR.values())))
def test_attribute__text_about_another_response__blames_nobody_by_a_name_it_does_not_hold(case: Case) -> None:
    others = tuple(f"other {place}" for place in range(len(case.names)))

    attribution = attribute(case.message, type_url=CDS, names=others)

    if attribution.dialect in {Dialect.ENVOY, Dialect.GRPC_GO}:
        assert attribution.names == ()
