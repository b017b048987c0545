"""Rollouts: nothing that can happen between two steps breaks a rule, and every safeguard is needed (rollouts.md
R12).
"""

import pytest

from tests.protocol.publish.explorer import explore
from tests.protocol.publish.rollout_model import model
from tests.protocol.publish.rollout_world import Flaws, World, put_back, world
from tests.support.figures import measured

RACE = "two workers race"
PEOPLE = "people do more and more under one worker"
BACKUP = "a backup is put back under two workers"
AFTER = "a rollout that had ended is open again after a restore"
WORLDS = {
    RACE: world(workers=2, acts=2),
    PEOPLE: world(workers=1, acts=3),
    BACKUP: world(workers=2, acts=1, backups=1),
    AFTER: put_back(workers=2, acts=1),
}
LARGE = {
    "two workers, and people do more and more": world(workers=2, acts=3),
    "a backup is put back while people write": world(workers=1, acts=2, backups=1),
}
FOUND = {
    Flaws.OPENS_BESIDE: (RACE, "R12: one rollout at most is open, with its candidate side"),
    Flaws.NO_FENCE: (PEOPLE, "R12: who moves a step has seen it, and what it is about"),
    Flaws.NAMES_UNSEEN: (RACE, "R12: who moves a step has seen it, and what it is about"),
    Flaws.NUMBERS_ALONE: (BACKUP, "R12: who moves a step has seen it, and what it is about"),
    Flaws.LINEAGE_UNSEEN: (BACKUP, "R12: a restore pauses what was open"),
    Flaws.RESTORE_GOES_ON: (AFTER, "R12: a restore pauses what was open"),
    Flaws.PAUSES_NOTHING: (AFTER, "P11: converges once nothing goes wrong"),
    Flaws.ROLLBACK_STAGED: (RACE, "R13: a rollback reaches both sides"),
    Flaws.ADVANCE_WITHOUT: (PEOPLE, "R13: a rollback aborts the open rollout"),
    Flaws.OFF_FORGETS: (RACE, "P11: converges once nothing goes wrong"),
    Flaws.TAKES_BACK_BY_HALVES: (RACE, "R7: no later rollout has what was taken back"),
}


@pytest.mark.parametrize("title", WORLDS)
def test_rollouts__every_order_of_steps__keeps_every_rule_and_settles(title: str) -> None:
    explored = explore(WORLDS[title], model())

    assert explored.finding is None
    assert explored.states > 300
    measured(states=explored.states)


@pytest.mark.nightly
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("title", LARGE)
def test_rollouts__every_order_of_many_steps__keeps_every_rule_and_settles(title: str) -> None:
    explored = explore(LARGE[title], model())

    assert explored.finding is None
    assert explored.states > 100_000
    measured(states=explored.states)


@pytest.mark.parametrize("flaw", Flaws)
def test_rollouts__without_one_of_their_safeguards__break_a_rule(flaw: Flaws) -> None:
    title, rule = FOUND[flaw]
    first: World = WORLDS[title]

    finding = explore(first, model(flaw)).finding

    assert finding is not None
    assert finding.rule == rule
