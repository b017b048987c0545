"""How each change of a list stands, for pages and API alike: the number of queries does not grow with the list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from controlplane.catalog.choices import StagedChangeState
from controlplane.catalog.models import Change
from controlplane.catalog.rollbacks import undone_by
from controlplane.catalog.staging import StagedChangeView, staged_changes
from controlplane.incidents.selectors import refused_and_lost
from controlplane.status.changes import Outcome, Progress
from controlplane.status.selectors import change_statuses

_ROLLING: Final = {
    StagedChangeState.WAITING: Progress.SAVED,
    StagedChangeState.CANDIDATE: Progress.CANDIDATE,
    StagedChangeState.STOPPED: Progress.STOPPED,
}


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change in a list.

    `edits`: how many resources it wrote.
    `refused`: how many clients refuse something of it now.
    `lost`: how many clients lost something by it; 0 once it is taken back.
    `undone_by`: the rollback or undo that took it back; None while it is in force.
    """

    change: Change
    edits: int
    status: Outcome | Progress
    refused: int
    lost: int
    undone_by: Change | None


def change_lines(changes: Sequence[Change]) -> list[ChangeLine]:
    """How each of these changes stands, in their order. Each has the attribute `edits` (`change_list`). Some eight
    queries for each environment that they are of.
    """
    by_environment = sorted(changes, key=lambda each: each.environment.key)
    found = {
        line.change.pk: line
        for key, of_one in groupby(by_environment, key=lambda each: each.environment.key)
        for line in _lines(key, list(of_one))
    }
    return [found[each.pk] for each in changes]


def _lines(environment_key: str, changes: Sequence[Change]) -> Iterable[ChangeLine]:
    refused, lost = refused_and_lost(change_ids=[str(each.public_id) for each in changes])
    undone = undone_by(environment_key=environment_key, changes=changes)
    staged = staged_changes(changes=[each.pk for each in changes])
    statuses = change_statuses(
        environment_key=environment_key,
        changes={each: _progress(each, staged.get(each.pk)) for each in changes},
        refused=refused,
        lost=lost,
        undone=undone,
    )
    for each in changes:
        public_id = str(each.public_id)
        yield ChangeLine(
            each,
            int(getattr(each, "edits", 0)),
            statuses[public_id],
            refused.get(public_id, 0),
            lost.get(public_id, 0),
            undone.get(each.generation),
        )


def _progress(change: Change, staged: StagedChangeView | None) -> Progress:
    """How far a change has come. `staged`: how far it is with rollouts, None where nothing of it was staged."""
    if staged is not None and staged.state in _ROLLING:
        return _ROLLING[staged.state]
    return Progress.BUILT if change.generation <= change.environment.built_generation else Progress.SAVED
