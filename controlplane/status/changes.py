"""Derives how a change stands from how far it has come and what became of what it wrote: facts in, one word out. Pure.

`progress` alone says how far the builder and the fleet are with it, and a change is as settled once everybody has lost
something by it as once everybody has taken it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from controlplane.status.values import Status


class Progress(StrEnum):
    """How far a change has come on its way to clients (interfaces.md section 4)."""

    SAVED = "saved"
    CANDIDATE = "candidate"  # an open rollout has it
    BUILT = "built"  # for whoever does not ask what the build made of it
    PUBLISHED = "published"
    SETTLED = "settled"
    UNCHANGED = "unchanged"  # built, and no client sees a difference
    SUPERSEDED = "superseded"  # everything it wrote was written again before a build saw it
    FAILED = "failed"
    STOPPED = "stopped"  # a rollout took it back, wholly or in part


class Outcome(StrEnum):
    """The reason why a change is not well, or not in force. Where several apply, the first in this order is given."""

    LOST = "lost"  # connected clients lost what they had by it, and nobody has resolved that
    WITHHELD = "withheld"  # the next ones: something that it wrote, and that is still current, stands so (`Status`)
    REFUSED = "refused"  # or clients refuse something of which it is the suspect
    QUARANTINED = "quarantined"
    STALLED = "stalled"
    TAKEN_BACK = "taken_back"  # by an undo or a rollback
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """The facts about a change from which its status is derived.

    `statuses`: the statuses of those resources that it wrote and nobody has written since.
    `lost`: whether connected clients lost something by it and the incident about that is open.
    `refused`: whether clients refuse something and the change is the suspect.
    `undone`: whether a later change took it back.
    """

    progress: Progress
    statuses: Collection[Status] = ()
    lost: bool = False
    refused: bool = False
    undone: bool = False


def change_status(facts: ChangeFacts) -> Outcome | Progress:
    """The status of a change: what is wrong with it, or else how far it has come."""
    # Of what is out of service because clients refused it that is said, as of the resource itself.
    refused = facts.refused and Status.QUARANTINED not in facts.statuses
    waits = facts.progress is Progress.SAVED or Status.WAITING in facts.statuses
    true = {
        Outcome.LOST: facts.lost,
        Outcome.WITHHELD: Status.WITHHELD in facts.statuses,
        Outcome.REFUSED: Status.REFUSED in facts.statuses or refused,
        Outcome.QUARANTINED: Status.QUARANTINED in facts.statuses,
        Outcome.STALLED: Status.STALLED in facts.statuses,
        Outcome.TAKEN_BACK: facts.undone,
        # What a rollout has says so itself.
        Outcome.WAITING: waits and facts.progress not in {Progress.FAILED, Progress.CANDIDATE, Progress.STOPPED},
    }
    return next((each for each in Outcome if true[each]), facts.progress)
