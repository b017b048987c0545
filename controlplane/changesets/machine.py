"""Which acts a change set allows in which state, and what becomes of it. Pure; the only place that decides it.

    draft → review → approved → scheduled → published

An edit makes it a draft again, at a new version, and so voids every approval. A change set whose
resources were written meanwhile is `stale`, one whose time is over `expired`; both follow from facts and end when it is
edited.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controlplane.catalog.review import ReviewSettings
from controlplane.changesets.values import OPEN_STATES, SetState
from controlplane.common.errors import Conflict


class Act(StrEnum):
    """What somebody does with a change set."""

    EDIT = "edit"
    SUBMIT = "submit"
    APPROVE = "approve"
    REJECT = "reject"
    SCHEDULE = "schedule"
    PUBLISH = "publish"
    CANCEL = "cancel"
    DELETE = "delete"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a change set stands, as far as it decides what may be done with it.

    `stored`: its state in the database; `moved`: how many of its resources were written since it was made; `is_over`:
    the time until which it may be published has passed; `approvals`: how many people approved this version; `review`:
    what the environment asks for.
    """

    stored: SetState
    moved: int
    is_over: bool
    approvals: int
    review: ReviewSettings

    @property
    def state(self) -> SetState:
        """The state that people see."""
        if self.stored not in OPEN_STATES:
            return self.stored
        if self.is_over:
            return SetState.EXPIRED
        return SetState.STALE if self.moved else self.stored

    @property
    def is_approved(self) -> bool:
        """Whether as many people approved this version as the environment asks for now."""
        return self.approvals >= self.review.approvals

    @property
    def rested(self) -> SetState:
        """The state that it has when nothing is scheduled any more."""
        return SetState.APPROVED if self.is_approved else SetState.DRAFT


_ALLOWED: Final[Mapping[Act, frozenset[SetState]]] = {
    Act.EDIT: frozenset(SetState) - {SetState.PUBLISHED},
    Act.SUBMIT: frozenset({SetState.DRAFT}),
    Act.APPROVE: frozenset({SetState.REVIEW, SetState.APPROVED, SetState.SCHEDULED}),
    Act.REJECT: frozenset({SetState.REVIEW, SetState.APPROVED, SetState.SCHEDULED, SetState.STALE}),
    Act.SCHEDULE: frozenset({SetState.DRAFT, SetState.APPROVED, SetState.SCHEDULED}),
    Act.PUBLISH: frozenset({SetState.DRAFT, SetState.APPROVED, SetState.SCHEDULED}),
    Act.CANCEL: frozenset(SetState) - {SetState.PUBLISHED, SetState.DRAFT},
    Act.DELETE: frozenset(SetState) - {SetState.PUBLISHED},
    Act.COMMENT: frozenset(SetState),
}
# The state in which the act was done already: doing it again changes nothing.
_DONE: Final[Mapping[Act, SetState]] = {
    Act.SUBMIT: SetState.REVIEW,
    Act.REJECT: SetState.REJECTED,
    Act.PUBLISH: SetState.PUBLISHED,
    Act.CANCEL: SetState.DRAFT,
}
_AFTER: Final[Mapping[Act, SetState]] = {
    Act.EDIT: SetState.DRAFT,
    Act.SUBMIT: SetState.REVIEW,
    Act.REJECT: SetState.REJECTED,
    Act.SCHEDULE: SetState.SCHEDULED,
    Act.PUBLISH: SetState.PUBLISHED,
}
_NEXT: Final[Mapping[SetState, str]] = {
    SetState.DRAFT: "Submit it for review first.",
    SetState.REVIEW: "It waits for review: let others approve it, or cancel the review.",
    SetState.APPROVED: "Publish it, schedule it, or cancel it to make it a draft again.",
    SetState.SCHEDULED: "Cancel the schedule first.",
    SetState.PUBLISHED: "What it did can be undone as any change.",
    SetState.REJECTED: "Edit it, or cancel it to make it a draft again, and submit it again.",
    SetState.EXPIRED: "Set a later time in 'expires', and submit it again.",
    SetState.STALE: "Resources of it were written since: look at 'moved', decide about each name ('merge'), and submit "
    "it again.",
}


def is_done(act: Act, standing: Standing) -> bool:
    """Whether the act was done already, so that doing it again changes nothing."""
    return _DONE.get(act) == standing.state


def check(act: Act, standing: Standing, name: str) -> None:
    """Raise Conflict unless the act is possible now. `name`: what people call the change set, for the sentence."""
    if standing.state not in _ALLOWED[act]:
        raise Conflict(f"{name} is {_said(standing.state)}: {act.value} is not possible. {_NEXT[standing.state]}")
    if act in (Act.PUBLISH, Act.SCHEDULE):
        _check_reviewed(standing, name)


def after(act: Act, standing: Standing) -> SetState:
    """The state to store after an act that `check` allowed; `standing` has the approvals after it."""
    if act is Act.APPROVE and standing.stored is SetState.REVIEW and standing.is_approved:
        return SetState.APPROVED
    if act is Act.CANCEL:
        # One step back: what was scheduled keeps its approvals.
        return standing.rested if standing.stored is SetState.SCHEDULED else SetState.DRAFT
    return _AFTER.get(act, standing.stored)


def _check_reviewed(standing: Standing, name: str) -> None:
    """Raise Conflict where the environment asks for a review that the change set does not have."""
    if standing.review.required and not standing.is_approved:
        missing = standing.review.approvals - standing.approvals
        people = "one more person has" if missing == 1 else f"{missing} more people have"
        first = _NEXT[SetState.DRAFT] if standing.stored is SetState.DRAFT else ""
        raise Conflict(f"{name} needs review: {people} to approve it. {first}".rstrip())


def _said(state: SetState) -> str:
    return {SetState.DRAFT: "a draft", SetState.REVIEW: "in review"}.get(state, state.value)
