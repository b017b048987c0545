"""Which acts a change set allows in which state, and what becomes of it."""

from itertools import product

import pytest

from controlplane.catalog.review import ReviewSettings
from controlplane.changesets.machine import Act, Standing, after, check, is_done
from controlplane.changesets.values import STORED_STATES, SetState
from controlplane.common.errors import Conflict

EVERYTHING = [
    Standing(stored, moved, is_over, approvals, ReviewSettings(required, needed))
    for stored, moved, is_over, approvals, required, needed in product(
        STORED_STATES, (0, 2), (False, True), (0, 1, 2), (False, True), (1, 2)
    )
]


def allowed(act: Act, standing: Standing) -> bool:
    """Whether the act is allowed; a refusal must be a sentence about the change set that says what to do."""
    said = ""
    try:
        check(act, standing, "Change set x")
    except Conflict as error:
        said = error.detail
    assert not said or (said.startswith("Change set x ") and said.endswith("."))
    return not said


@pytest.mark.parametrize("standing", EVERYTHING, ids=str)
def test_published__only_what_is_current_in_time_and_reviewed_as_asked(standing: Standing) -> None:
    reviewed = not standing.review.required or standing.approvals >= standing.review.approvals
    current = not standing.moved and not standing.is_over
    open_to_it = standing.stored in (SetState.DRAFT, SetState.APPROVED, SetState.SCHEDULED)

    assert allowed(Act.PUBLISH, standing) == (reviewed and current and open_to_it)
    assert allowed(Act.SCHEDULE, standing) == allowed(Act.PUBLISH, standing)


@pytest.mark.parametrize("standing", EVERYTHING, ids=str)
def test_from_every_state_but_published__a_draft_can_be_made_again(standing: Standing) -> None:
    assert allowed(Act.EDIT, standing) == (standing.stored is not SetState.PUBLISHED)
    assert after(Act.EDIT, standing) is SetState.DRAFT


@pytest.mark.parametrize(
    ("stored", "moved", "is_over", "shown"),
    [
        (SetState.DRAFT, 0, False, SetState.DRAFT),
        (SetState.APPROVED, 1, False, SetState.STALE),
        (SetState.SCHEDULED, 1, True, SetState.EXPIRED),
        (SetState.PUBLISHED, 1, True, SetState.PUBLISHED),
        (SetState.REJECTED, 1, True, SetState.REJECTED),
    ],
)
def test_state__follows_from_what_was_written_and_from_the_time(
    stored: SetState, moved: int, is_over: bool, shown: SetState
) -> None:
    assert Standing(stored, moved, is_over, 0, ReviewSettings()).state is shown


@pytest.mark.parametrize(
    ("act", "stored", "approvals", "becomes"),
    [
        (Act.SUBMIT, SetState.DRAFT, 0, SetState.REVIEW),
        (Act.APPROVE, SetState.REVIEW, 1, SetState.REVIEW),
        (Act.APPROVE, SetState.REVIEW, 2, SetState.APPROVED),
        (Act.APPROVE, SetState.SCHEDULED, 2, SetState.SCHEDULED),
        (Act.REJECT, SetState.APPROVED, 2, SetState.REJECTED),
        (Act.CANCEL, SetState.SCHEDULED, 2, SetState.APPROVED),
        (Act.CANCEL, SetState.SCHEDULED, 1, SetState.DRAFT),
        (Act.CANCEL, SetState.APPROVED, 2, SetState.DRAFT),
        (Act.COMMENT, SetState.APPROVED, 2, SetState.APPROVED),
    ],
)
def test_after__of_each_act(act: Act, stored: SetState, approvals: int, becomes: SetState) -> None:
    standing = Standing(stored, 0, False, approvals, ReviewSettings(approvals=2))

    assert allowed(act, standing)
    assert after(act, standing) is becomes


@pytest.mark.parametrize(
    ("act", "stored"),
    [(Act.SUBMIT, SetState.REVIEW), (Act.REJECT, SetState.REJECTED), (Act.PUBLISH, SetState.PUBLISHED)],
)
def test_is_done__the_second_time__changes_nothing(act: Act, stored: SetState) -> None:
    assert is_done(act, Standing(stored, 0, False, 0, ReviewSettings()))


def test_refusal__of_an_unreviewed_one__says_how_many_people_are_missing() -> None:
    standing = Standing(SetState.DRAFT, 0, False, 0, ReviewSettings(required=True, approvals=2))

    with pytest.raises(Conflict, match=r"2 more people have to approve it\. Submit it for review first\."):
        check(Act.PUBLISH, standing, "Change set x")
