"""The one sentence about an environment: each state, which of several is told, and one or many."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from controlplane.incidents.values import IncidentCause
from controlplane.rollouts.values import RolloutState
from controlplane.status.environments import EnvironmentFacts, Headline, environment_status
from controlplane.status.sentence import About, Link, OpenRollout, Scene, Worst, environment_sentence
from controlplane.status.values import Status

AT: Final = datetime(2026, 7, 1, 12, 30, tzinfo=UTC)
CHANGE: Final = "4166aa00-0000-4000-8000-000000000000"
LOSS: Final = Worst(
    "i", IncidentCause.LOSS, 2, 2, "cluster", "pay", AT, names=3, change=CHANGE, author="ann", message="no\nrule"
)
NACK: Final = Worst("i", IncidentCause.NACK, 5, 120, "cluster", "pay", AT, revision=7, change=CHANGE, author="ann")
ROLLOUT: Final = OpenRollout("r", RolloutState.WAITING, 1, 3, "a person to say that it may go on")
TWO: Final = {Status.PUBLISHED: 2}
SERVED: Final = Scene(connected=120, published_at=AT)
WAITS: Final = EnvironmentFacts(TWO, staged=1)

TABLE: Final = (
    (
        EnvironmentFacts(TWO, losses=1),
        Scene(worst=LOSS),
        "2 of 2 clients lost 3 names since change 4166aa00 by ann (“no rule”), 2026-07-01 12:30 UTC.",
    ),
    (
        EnvironmentFacts(TWO, losses=3),
        Scene(worst=replace(LOSS, clients=1, of=1, names=1, message="")),
        "1 of 1 client lost cluster pay since change 4166aa00 by ann, 2026-07-01 12:30 UTC; 2 more losses are open.",
    ),
    (EnvironmentFacts(TWO, losses=1), Scene(), "1 loss is open: clients do not have what they had."),
    (
        EnvironmentFacts({Status.WITHHELD: 1}),
        Scene(),
        "1 of 1 resource is withheld: some clients, or all, get nothing of it.",
    ),
    (
        EnvironmentFacts({Status.WITHHELD: 2, Status.PUBLISHED: 2}),
        Scene(),
        "2 of 4 resources are withheld: some clients, or all, get nothing of them.",
    ),
    (
        EnvironmentFacts({Status.REFUSED: 1}),
        Scene(worst=NACK),
        "5 of 120 clients refuse cluster pay r7 of change 4166aa00 by ann, first 2026-07-01 12:30 UTC.",
    ),
    (
        EnvironmentFacts({Status.REFUSED: 3}),
        Scene(worst=replace(NACK, clients=1, of=1, change="")),
        "1 of 1 client refuses cluster pay r7, first 2026-07-01 12:30 UTC; 2 more resources are refused.",
    ),
    (
        EnvironmentFacts(TWO, unnamed=1),
        Scene(worst=replace(NACK, name="", revision=0, change="")),
        "5 of 120 clients refuse a response, and nobody knows for which resource, first 2026-07-01 12:30 UTC.",
    ),
    (EnvironmentFacts({Status.REFUSED: 2}), Scene(), "Clients refuse 2 resources."),
    (
        EnvironmentFacts({Status.QUARANTINED: 1, Status.PUBLISHED: 1}),
        Scene(),
        "1 of 2 resources is quarantined: an earlier revision is served.",
    ),
    (
        EnvironmentFacts({Status.STALLED: 2}),
        Scene(),
        "2 of 2 resources are stalled: a finding keeps them from being served.",
    ),
    (
        EnvironmentFacts(TWO, hold="the year's end."),
        Scene(hold="the year's end."),
        "On hold, so no resource can be changed: the year's end.",
    ),
    (WAITS, Scene(rollout=ROLLOUT), "The rollout waits for a person to say that it may go on, at step 1 of 3."),
    (
        WAITS,
        Scene(rollout=replace(ROLLOUT, state=RolloutState.PAUSED)),
        "The rollout is paused at step 1 of 3: it waits for a person to let it go on.",
    ),
    (
        WAITS,
        Scene(rollout=replace(ROLLOUT, state=RolloutState.RUNNING, waits_for="")),
        "The rollout is at step 1 of 3: the clients of its cohort are asked before all others.",
    ),
    (EnvironmentFacts({Status.WAITING: 1}), Scene(), "1 resource waits to be published."),
    (EnvironmentFacts({Status.WAITING: 2}), Scene(), "2 resources wait to be published."),
    (EnvironmentFacts(TWO, unbuilt=True), Scene(), "What was written last waits for the next build."),
    (EnvironmentFacts(), SERVED, "It has no resources yet."),
    (EnvironmentFacts(TWO), SERVED, "All 120 clients have what was published 2026-07-01 12:30 UTC."),
    (
        EnvironmentFacts(TWO),
        replace(SERVED, connected=1),
        "The only client has what was published 2026-07-01 12:30 UTC.",
    ),
    (
        EnvironmentFacts(TWO),
        replace(SERVED, refusing=3, unanswered=1),
        (
            "116 of 120 clients have what was published 2026-07-01 12:30 UTC: "
            "3 refused the last response, 1 has not answered yet."
        ),
    ),
    (
        EnvironmentFacts(TWO),
        replace(SERVED, connected=2, unanswered=1),
        "1 of 2 clients has what was published 2026-07-01 12:30 UTC: 1 has not answered yet.",
    ),
    (
        EnvironmentFacts(TWO),
        replace(SERVED, behind=1, unanswered=9),
        "1 ADS process does not serve what was published 2026-07-01 12:30 UTC; clients there keep what they had.",
    ),
    (
        EnvironmentFacts({Status.PUBLISHED: 1}),
        replace(SERVED, connected=0),
        "Its only resource is published, and no client is connected; the newest snapshot is of 2026-07-01 12:30 UTC.",
    ),
    (EnvironmentFacts(TWO), Scene(), "All 2 resources are published."),
)


@pytest.mark.parametrize(("facts", "scene", "expected"), TABLE, ids=lambda each: "" if isinstance(each, str) else None)
def test_sentence__what_is_known__is_said_in_one_sentence(facts: EnvironmentFacts, scene: Scene, expected: str) -> None:
    assert environment_sentence(environment_status(facts), scene).text == expected


def test_table__each_word_for_an_environment__has_a_sentence() -> None:
    assert {environment_status(facts).status for facts, *_ in TABLE} == set(Headline)


def test_sentence__loss_rollout_and_refusal_at_once__tells_of_the_loss() -> None:
    facts = EnvironmentFacts({Status.REFUSED: 1, Status.WAITING: 1}, losses=1, hold="freeze", staged=1)

    said = environment_sentence(environment_status(facts), Scene("freeze", LOSS, ROLLOUT, connected=2))

    assert said.text.startswith("2 of 2 clients lost 3 names")
    assert [each for each in said.pieces if isinstance(each, Link)] == [
        Link("2 of 2 clients", About.INCIDENT, "i"),
        Link("change 4166aa00", About.CHANGE, CHANGE),
    ]
    assert AT in said.pieces


def test_sentence__long_words_of_others__are_cut_and_stay_on_one_line() -> None:
    worst = replace(LOSS, names=1, name="n" * 500, message="m\n" * 500)

    said = environment_sentence(environment_status(EnvironmentFacts(TWO, losses=1)), Scene(worst=worst)).text

    assert len(said) < 300
    assert "\n" not in said
