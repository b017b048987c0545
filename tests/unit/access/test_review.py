"""Rules that never decide are found, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.access.review import rules_for_nobody, rules_shadowed
from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.resource_types import RESOURCE_TYPES

GROUPS = tuple(ClientGroup(key, (Selector(node_id=f"{key}-*"),)) for key in ("a", "b"))


def table(*rules: tuple[Effect, str, set[str], set[str]]) -> AccessTable:
    made = (Rule(n, e, p, frozenset(g), frozenset(t)) for n, (e, p, g, t) in enumerate(rules, start=1))
    return AccessTable(Effect.DENY, GROUPS, tuple(made))


@pytest.mark.parametrize(
    ("earlier", "later", "shadowed"),
    [
        (("pay*", set(), set()), ("pay-eu", set(), set()), True),
        (("pay*", set(), set()), ("pay*eu", {"a"}, {"cluster"}), True),
        (("*pay*", {"a", "b"}, set()), ("x-pay-*", {"b"}, set()), True),
        (("pay*", {"a"}, set()), ("pay*", set(), set()), False),
        (("pay*", {"a"}, set()), ("pay*", {"a", "b"}, set()), False),
        (("pay*", set(), {"cluster"}), ("pay*", set(), set()), False),
        (("pay-eu", set(), set()), ("pay*", set(), set()), False),
        (("*eu", set(), set()), ("pay*", set(), set()), False),
        (("a*b*c", set(), set()), ("a*c", set(), set()), False),
    ],
)
def test_rules_shadowed__one_rule_before_another__only_when_it_takes_everything(
    earlier: tuple[str, set[str], set[str]], later: tuple[str, set[str], set[str]], shadowed: bool
) -> None:
    rules = table((Effect.DENY, *earlier), (Effect.HIDE, *later))

    assert [finding.code for _, finding in rules_shadowed(rules)] == (["XDS3053"] if shadowed else [])


RULES = st.lists(
    st.tuples(
        st.sampled_from(Effect),
        st.lists(st.text("xy", max_size=2), min_size=1, max_size=3).map("*".join),
        st.sets(st.sampled_from(["a", "b"])),
        st.sets(st.sampled_from(["cluster", "secret"])),
    ),
    max_size=5,
)


@given(rules=RULES, name=st.text("xy", max_size=5), groups=st.frozensets(st.sampled_from(["a", "b"])))
def test_rules_shadowed__rule_is_called_shadowed__it_never_decides(
    rules: list[tuple[Effect, str, set[str], set[str]]], name: str, groups: frozenset[str]
) -> None:
    made = table(*rules)

    dead = {rule.number for rule in made.rules for number, _ in rules_shadowed(made) if rule.number == number}

    audience = Audience("prod", groups)
    assert all(made.ruling(audience, kind, name).rule not in dead for kind in RESOURCE_TYPES)


def test_rules_for_nobody__group_without_a_known_client__is_found() -> None:
    rules = table(
        (Effect.DENY, "*", {"a"}, set()), (Effect.DENY, "*", {"a", "b"}, set()), (Effect.DENY, "*", set(), set())
    )

    found = rules_for_nobody(rules, [ClientFacts(node_id="b-1")])

    assert [(number, finding.detail.split()[1]) for number, finding in found] == [(1, "1")]


def test_rules_for_nobody__group_matched_by_metadata__is_not_judged() -> None:
    group = ClientGroup("m", (Selector(metadata={"stage": "prod"}),))
    rules = AccessTable(Effect.DENY, (group,), (Rule(1, Effect.ALLOW, "*", frozenset({"m"})),))

    assert rules_for_nobody(rules, []) == ()
