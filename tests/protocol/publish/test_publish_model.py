"""The publish protocol: nothing that can happen between two steps breaks a rule, and every rule is needed."""

import pytest

from tests.protocol.publish.explorer import explore
from tests.protocol.publish.model import Flaws, World, model, world
from tests.support.figures import measured

WORLDS = {
    "two builders race": world(builders=2, replicas=1, writes=2),
    "a backup is put back under two builders": world(builders=2, replicas=1, writes=1, backups=1),
    "a backup is put back under two replicas": world(builders=1, replicas=2, writes=1, backups=1),
}
RULES = {
    Flaws.NO_FENCE: "P2: a later epoch is of a later generation",
    Flaws.TORN_READ: "P3: a snapshot holds what was written at its generation",
    Flaws.TWO_TRANSACTIONS: "P3: a snapshot holds what was written at its generation",
    Flaws.PRUNE_BESIDE_PUBLISH: "P3: what a snapshot needs is stored with it",
    Flaws.GO_BACK: "P5: a replica does not go back within a lineage",
    Flaws.NO_LINEAGE: "P11: converges once nothing goes wrong",
    Flaws.NUMBERS_ALONE: "P3: a snapshot holds what was written at its generation",
}


@pytest.mark.parametrize("title", WORLDS)
def test_protocol__every_order_of_steps__keeps_every_rule_and_settles(title: str) -> None:
    explored = explore(WORLDS[title], model())

    assert explored.finding is None
    assert explored.states > 4_000
    measured(states=explored.states)


@pytest.mark.parametrize("flaw", Flaws)
def test_protocol__without_one_of_its_safeguards__breaks_a_rule(flaw: Flaws) -> None:
    first: World = WORLDS["two builders race"]
    if flaw is not Flaws.PRUNE_BESIDE_PUBLISH:
        first = WORLDS["a backup is put back under two builders"]

    finding = explore(first, model(flaw)).finding

    assert finding is not None
    assert finding.rule == RULES[flaw]
