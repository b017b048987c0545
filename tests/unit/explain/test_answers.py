"""One decision in words for operators, with the rule that made it."""

import pytest

from controlplane.explain.answers import answer_of
from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.decision import decide
from xdscore.resource_types import CLUSTER
from xdscore.snapshot import Content, Served, snapshot_from_entries

RULES = (
    Rule(4, Effect.DENY, "pay", client_groups=frozenset({"edge"})),
    Rule(7, Effect.DENY, "pay*"),
    Rule(8, Effect.HIDE, "inner*"),
    Rule(9, Effect.ALLOW, "web"),
)


@pytest.mark.parametrize(
    ("name", "sentence", "rule"),
    [
        ("pay", "Rule 7 denies Cluster 'pay'.", 7),
        ("payroll", "Rule 7 denies Cluster 'payroll'.", 7),
        ("inner", "Rule 8 hides Cluster 'inner' from these clients in 'prod'.", 8),
        ("web", "Cluster 'web' is served in 'prod', version v1. Rule 9 allows it.", 9),
        ("other", "'prod' denies by default, and nothing allows Cluster 'other'.", 0),
    ],
)
def test_answer__access_rules__says_which_one_decided(name: str, sentence: str, rule: int) -> None:
    table = AccessTable(Effect.DENY, (ClientGroup("edge", ()),), RULES)
    served = Served(Content(b"\\1" * 16, "v1", 10))
    snapshot = snapshot_from_entries(
        environment="prod", lineage="l", epoch=1, access=table, entries=[(("cluster", "web"), served)]
    )
    audience = Audience("prod")

    answer = answer_of(
        decide(audience, CLUSTER, name, snapshot),
        kind=CLUSTER,
        name=name,
        environment="prod",
        rules=table.trace(audience, CLUSTER, name),
    )

    assert (answer.sentence, answer.rule) == (sentence, rule)


def test_answer__hidden_by_default__says_so() -> None:
    snapshot = snapshot_from_entries(
        environment="prod", lineage="l", epoch=1, access=AccessTable(Effect.HIDE), entries=[]
    )

    answer = answer_of(decide(Audience("prod"), CLUSTER, "a", snapshot), kind=CLUSTER, name="a", environment="prod")

    assert answer.sentence == "'prod' hides by default, and nothing allows Cluster 'a'."
