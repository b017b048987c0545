"""How an environment and a change stand, from what is known of them: the word, its order, and every reason."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.status.changes import ChangeFacts, Outcome, Progress, change_status
from controlplane.status.environments import EnvironmentFacts, Headline, environment_status
from controlplane.status.values import Status

# What alone makes the word true, worst first; beside it the sentence of two resources, one of which is published.
ALONE = {
    Headline.LOST: (
        EnvironmentFacts({Status.PUBLISHED: 2}, losses=1),
        "1 loss is open: clients do not have what they had.",
    ),
    Headline.WITHHELD: (
        EnvironmentFacts({Status.PUBLISHED: 1, Status.WITHHELD: 1}),
        "1 of 2 resources is withheld.",
    ),
    Headline.REFUSED: (
        EnvironmentFacts({Status.PUBLISHED: 1, Status.REFUSED: 1}),
        "1 of 2 resources is refused by clients.",
    ),
    Headline.QUARANTINED: (
        EnvironmentFacts({Status.PUBLISHED: 1, Status.QUARANTINED: 1}),
        "1 of 2 resources is quarantined.",
    ),
    Headline.STALLED: (EnvironmentFacts({Status.STALLED: 2}), "2 of 2 resources are stalled."),
    Headline.HELD: (EnvironmentFacts({Status.PUBLISHED: 2}, hold="freeze."), "On hold: freeze."),
    Headline.WAITING: (
        EnvironmentFacts({Status.PUBLISHED: 1, Status.WAITING: 1}, unbuilt=True),
        "1 of 2 resources waits for the next build.",
    ),
    Headline.EMPTY: (EnvironmentFacts(), "It has no resources yet."),
    Headline.PUBLISHED: (EnvironmentFacts({Status.PUBLISHED: 2}), "All 2 resources are published."),
}


def together(one: EnvironmentFacts, other: EnvironmentFacts) -> EnvironmentFacts:
    return EnvironmentFacts(
        {status: one.counts.get(status, 0) + other.counts.get(status, 0) for status in Status},
        one.losses + other.losses,
        one.unnamed + other.unnamed,
        one.hold or other.hold,
        one.unbuilt or other.unbuilt,
    )


@pytest.mark.parametrize("word", Headline)
def test_environment__one_thing_is_true__is_the_word_and_the_sentence(word: Headline) -> None:
    facts, sentence = ALONE[word]

    found = environment_status(facts)

    assert (found.status, found.reason) == (word, sentence)


@pytest.mark.parametrize(
    ("worse", "better"), list(itertools.combinations([each for each in Headline if each is not Headline.EMPTY], 2))
)
def test_environment__two_things_are_true__says_the_worse_and_tells_of_both(worse: Headline, better: Headline) -> None:
    found = environment_status(together(ALONE[worse][0], ALONE[better][0]))

    assert found.status is worse
    if better is not Headline.PUBLISHED:
        assert len(found.reason.split(". ")) >= 2


def test_environment__response_refused_and_nobody_named__is_refused() -> None:
    found = environment_status(EnvironmentFacts({Status.PUBLISHED: 3}, unnamed=1))

    assert found.status is Headline.REFUSED
    assert found.reason == "Clients refuse a response, and nobody knows for which resource: 1 incident."


@given(
    st.dictionaries(st.sampled_from(Status), st.integers(0, 20_000)),
    *(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", "freeze"]), st.booleans()),
)
def test_environment__anything__is_published_only_where_everything_is(
    counts: dict[Status, int], losses: int, unnamed: int, hold: str, unbuilt: bool
) -> None:
    found = environment_status(EnvironmentFacts(counts, losses, unnamed, hold, unbuilt))

    others = sum(count for status, count in counts.items() if status is not Status.PUBLISHED)
    well = others == losses == unnamed == 0 and not hold and not unbuilt and counts.get(Status.PUBLISHED, 0) > 0
    assert (found.status is Headline.PUBLISHED) is well
    assert found.counts.keys() == set(Status)
    assert found.resources == sum(counts.values())
    assert found.reason.endswith(".")


@given(
    st.sampled_from(Progress),
    st.frozensets(st.sampled_from(Status)),
    *(st.booleans(), st.booleans(), st.booleans()),
)
def test_change__anything__is_as_far_as_it_has_come_only_where_nothing_came_of_it(
    progress: Progress, statuses: frozenset[Status], lost: bool, refused: bool, undone: bool
) -> None:
    found = change_status(ChangeFacts(progress, statuses, lost, refused, undone))

    if lost:
        assert found is Outcome.LOST
    if isinstance(found, Progress):
        assert found is progress
        assert not any((lost, refused, undone))
        says_that_it_waits = found in {Progress.FAILED, Progress.CANDIDATE, Progress.STOPPED}
        assert statuses <= ({Status.PUBLISHED, Status.WAITING} if says_that_it_waits else {Status.PUBLISHED})


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (ChangeFacts(Progress.SETTLED, {Status.PUBLISHED}), Progress.SETTLED),
        (ChangeFacts(Progress.SETTLED, {Status.PUBLISHED}, lost=True), Outcome.LOST),
        (ChangeFacts(Progress.SETTLED, {Status.STALLED, Status.WITHHELD}), Outcome.WITHHELD),
        (ChangeFacts(Progress.SETTLED, {Status.QUARANTINED}, refused=True), Outcome.QUARANTINED),
        (ChangeFacts(Progress.SETTLED, refused=True, undone=True), Outcome.REFUSED),
        (ChangeFacts(Progress.PUBLISHED, undone=True), Outcome.TAKEN_BACK),
        (ChangeFacts(Progress.SAVED), Outcome.WAITING),
        (ChangeFacts(Progress.FAILED, {Status.WAITING}), Progress.FAILED),
        (ChangeFacts(Progress.SUPERSEDED), Progress.SUPERSEDED),
        (ChangeFacts(Progress.CANDIDATE, {Status.WAITING}), Progress.CANDIDATE),
        (ChangeFacts(Progress.STOPPED, {Status.WAITING}), Progress.STOPPED),
        (ChangeFacts(Progress.STOPPED, {Status.QUARANTINED}), Outcome.QUARANTINED),
    ],
)
def test_change__of_several_things_that_are_true__the_worst_is_said(
    facts: ChangeFacts, word: Outcome | Progress
) -> None:
    assert change_status(facts) is word
