"""Access rules: the first that covers the type, matches the name and speaks of the audience decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.access import CLOSED, AccessTable, Audience, Effect, Rule, Ruling
from xdscore.client_groups import ClientGroup, Trust
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.names import glob_matches
from xdscore.resource_types import CLUSTER, LISTENER, SECRET, ResourceType

KINDS = (CLUSTER, LISTENER, SECRET)
GROUPS = (
    ClientGroup("edge", (Selector(node_cluster="edge"),)),
    ClientGroup("pay", (Selector(identity="spiffe://corp/ns/pay/*"),), Trust.VERIFIED),
    ClientGroup("old", (Selector(node_id="old-*"), Selector(metadata={"age": "old"}))),
)
EDGE = ClientFacts(node_id="n", node_cluster="edge")
PAY = ClientFacts(identity="spiffe://corp/ns/pay/sa/web", node_id="n", node_cluster="edge")

EFFECTS = st.sampled_from(Effect)
TEXTS = st.text(alphabet="ab", max_size=4)
RULES = st.lists(
    st.builds(
        Rule,
        number=st.just(0),
        effect=EFFECTS,
        pattern=st.lists(TEXTS, min_size=1, max_size=3).map("*".join),
        client_groups=st.frozensets(st.sampled_from([group.key for group in GROUPS])),
        types=st.frozensets(st.sampled_from([kind.word for kind in KINDS])),
        message=st.sampled_from(["", "ask payments"]),
    ),
    max_size=8,
).map(lambda rules: tuple(numbered(rule, number) for number, rule in enumerate(rules, start=1)))
AUDIENCES = st.builds(
    Audience,
    environment=st.just("prod"),
    groups=st.frozensets(st.sampled_from([group.key for group in GROUPS])),
    verified=st.booleans(),
)


def numbered(rule: Rule, number: int) -> Rule:
    return Rule(number, rule.effect, rule.pattern, rule.client_groups, rule.types, rule.message)


def naive(table: AccessTable, audience: Audience, kind: ResourceType, name: str) -> Ruling:
    """The rules as a person reads them."""
    trust = {group.key: group.trust for group in table.groups}
    for rule in table.rules:
        speaks_of = audience.groups & rule.client_groups
        if kind is SECRET and rule.effect is Effect.ALLOW:
            if "secret" not in rule.types:
                continue
            if audience.verified:
                speaks_of = frozenset(key for key in speaks_of if trust[key] is Trust.VERIFIED)
        elif rule.types and kind.word not in rule.types:
            continue
        if (not rule.client_groups or speaks_of) and glob_matches(rule.pattern, name):
            return Ruling(rule.effect, rule.number, rule.message)
    covered = kind is not SECRET or table.default is not Effect.ALLOW or table.default_covers_secrets
    return Ruling(table.default if covered else Effect.DENY)


@given(
    default=EFFECTS,
    rules=RULES,
    audience=AUDIENCES,
    kind=st.sampled_from(KINDS),
    name=TEXTS,
    default_covers_secrets=st.booleans(),
)
def test_verdict__any_rules__is_that_of_the_first_rule_that_speaks(
    default: Effect,
    rules: tuple[Rule, ...],
    audience: Audience,
    kind: ResourceType,
    name: str,
    default_covers_secrets: bool,
) -> None:
    table = AccessTable(default, GROUPS, rules, default_covers_secrets=default_covers_secrets)

    ruling = table.ruling(audience, kind, name)

    assert ruling == naive(table, audience, kind, name)
    assert table.permissions(audience, kind).of_row(table.row(kind, name)) == ruling
    assert ruling.effect is Effect.ALLOW or not table.unrestricted(audience, kind)
    assert ruling.effect is not Effect.ALLOW or not table.refuses_all(audience, kind)


@given(default=EFFECTS, rules=RULES, audience=AUDIENCES, kind=st.sampled_from(KINDS), name=TEXTS)
def test_trace__any_rules__ends_with_the_rule_that_decided(
    default: Effect, rules: tuple[Rule, ...], audience: Audience, kind: ResourceType, name: str
) -> None:
    table = AccessTable(default, GROUPS, rules)

    trace = table.trace(audience, kind, name)

    deciding = [step.rule.number for step in trace if step.decided]
    number = table.ruling(audience, kind, name).rule
    assert deciding == ([number] if number else [])
    assert not number or trace[-1].decided
    assert all(glob_matches(step.rule.pattern, name) for step in trace)


@given(
    defaults=st.tuples(EFFECTS, EFFECTS),
    rules=st.tuples(RULES, RULES),
    audiences=st.tuples(AUDIENCES, AUDIENCES),
    kind=st.sampled_from(KINDS),
    name=TEXTS,
)
def test_decides_alike__says_so__no_name_is_decided_differently(
    defaults: tuple[Effect, Effect],
    rules: tuple[tuple[Rule, ...], tuple[Rule, ...]],
    audiences: tuple[Audience, Audience],
    kind: ResourceType,
    name: str,
) -> None:
    one, other = (AccessTable(default, GROUPS, each) for default, each in zip(defaults, rules, strict=True))

    if one.decides_alike(audiences[0], other, audiences[1]):
        assert one.ruling(audiences[0], kind, name) == other.ruling(audiences[1], kind, name)


def test_decides_alike__a_rule_for_others_is_added__nothing_changes_for_the_rest() -> None:
    before = AccessTable(Effect.ALLOW, GROUPS, (Rule(1, Effect.DENY, "a", frozenset({"edge"})),))
    after = AccessTable(Effect.ALLOW, GROUPS, (*before.rules, Rule(2, Effect.HIDE, "*", frozenset({"old"}))))
    edge, old = Audience("prod", frozenset({"edge"})), Audience("prod", frozenset({"old"}))

    assert before.decides_alike(edge, after, edge)
    assert not before.decides_alike(old, after, old)


@pytest.mark.parametrize(
    ("client", "groups"),
    [
        (EDGE, {"edge"}),
        (PAY, {"edge", "pay"}),
        (ClientFacts(identity="spiffe://corp/ns/paymaster/sa/x", node_id="n"), set()),
        (ClientFacts(node_id="old-7"), {"old"}),
        (ClientFacts(node_id="n", metadata={"age": "old"}), {"old"}),
        (ClientFacts(node_id="n", metadata={"age": "young"}), set()),
    ],
)
def test_audience__client__has_the_groups_that_fit(client: ClientFacts, groups: set[str]) -> None:
    table = AccessTable(
        Effect.DENY, GROUPS, tuple(Rule(n, Effect.ALLOW, "*", frozenset({g.key})) for n, g in enumerate(GROUPS, 1))
    )

    assert table.audience("prod", client) == Audience("prod", frozenset(groups))


def test_audience__group_that_no_rule_mentions__makes_no_difference() -> None:
    table = AccessTable(Effect.DENY, GROUPS, (Rule(1, Effect.ALLOW, "*", frozenset({"pay"})),))

    assert table.audience("prod", EDGE) == table.audience("prod", ClientFacts(node_id="old-1"))


def test_verified_group__client_that_only_claims__is_not_in_it() -> None:
    everybody = ClientGroup("all", (Selector(identity="*"), Selector(node_id="*")), Trust.VERIFIED)

    assert not everybody.has(ClientFacts(node_id="n"))
    assert everybody.has(PAY)


@pytest.mark.parametrize(
    ("client", "group", "effect"),
    [
        (EDGE, "edge", Effect.ALLOW),  # nothing is verified anywhere: what is said must do
        (PAY, "edge", Effect.DENY),  # who can prove who they are must be allowed for that (C15)
        (PAY, "pay", Effect.ALLOW),
    ],
)
def test_secret__allowed_by_group__what_a_verified_client_merely_says_does_not_count(
    client: ClientFacts, group: str, effect: Effect
) -> None:
    rules = (Rule(1, Effect.ALLOW, "*", frozenset({group}), frozenset({"secret", "cluster"})),)
    table = AccessTable(Effect.DENY, GROUPS, rules)
    audience = table.audience("prod", client)

    assert table.ruling(audience, SECRET, "tls").effect is effect
    assert table.ruling(audience, CLUSTER, "tls").effect is Effect.ALLOW


def test_secret__rule_for_any_type__allows_none_but_denies_them() -> None:
    everybody = Audience("prod")

    assert AccessTable(Effect.DENY, (), (Rule(1, Effect.ALLOW),)).ruling(everybody, SECRET, "x").effect is Effect.DENY
    assert AccessTable(Effect.ALLOW, (), (Rule(1, Effect.DENY),)).ruling(everybody, SECRET, "x").rule == 1


@given(
    default=EFFECTS,
    rules=RULES.map(lambda rules: tuple(rule for rule in rules if SECRET.word not in rule.types)),
    audience=AUDIENCES,
    name=TEXTS,
)
def test_secret__no_rule_names_the_type__is_read_by_nobody_whatever_the_default(
    default: Effect, rules: tuple[Rule, ...], audience: Audience, name: str
) -> None:
    table = AccessTable(default, GROUPS, rules)

    assert table.ruling(audience, SECRET, name).effect is not Effect.ALLOW
    assert not table.unrestricted(audience, SECRET)


def test_knows__end_of_a_secrets_row__where_the_default_leaves_secrets_out() -> None:
    rule = Rule(7, Effect.DENY, "a", types=frozenset({"cluster"}))
    allowing, denying = (AccessTable(default, rules=(rule,)) for default in (Effect.ALLOW, Effect.DENY))

    assert allowing.row(SECRET, "a") == (CLOSED,)
    assert allowing.knows(allowing.row(SECRET, "a"))
    assert denying.row(SECRET, "a") == ()
    assert not denying.knows(allowing.row(SECRET, "a"))


@pytest.mark.parametrize(
    ("groups", "rules"),
    [
        ((GROUPS[0], GROUPS[0]), ()),
        ((), (Rule(1, Effect.ALLOW), Rule(1, Effect.DENY))),
        ((), (Rule(1, Effect.ALLOW, "*", frozenset({"nobody"})),)),
    ],
)
def test_table__inconsistent__is_refused(groups: tuple[ClientGroup, ...], rules: tuple[Rule, ...]) -> None:
    with pytest.raises(ValueError, match="access table"):
        AccessTable(Effect.DENY, groups, rules)


def test_verdict__more_audiences_and_names_than_are_remembered__stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xdscore.access._MAX_AUDIENCES", 2)
    monkeypatch.setattr("xdscore.access._MAX_VERDICTS", 2)
    table = AccessTable(Effect.ALLOW, GROUPS, (Rule(1, Effect.DENY, "a*", frozenset({"edge"})),))
    audiences = [Audience("prod", frozenset(groups)) for groups in ((), ("edge",), ("old",), ("edge", "old"))]

    asked = [(audience, f"{start}{number}") for audience in audiences for start in "ab" for number in range(3)]
    for audience, name in asked * 2:
        assert table.ruling(audience, CLUSTER, name) == naive(table, audience, CLUSTER, name)
    assert len(table._compiled.permissions) <= 2
