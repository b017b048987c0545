"""The rows of what is staged: which names, which changes, and what a promotion makes of the resources.

Called by the services that write: `changes`, `staging`, `quarantines` and `environments`, each within its transaction
and with the environment locked.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from django.db import models

from controlplane.catalog.choices import StagedChangeState, StagedState
from controlplane.catalog.models import (
    Environment,
    Quarantine,
    Resource,
    RevisionProof,
    StagedChange,
    StagedName,
)

Key = tuple[str, str]
"""The word of a type, and a resource's name."""

# Of a revision: no rollout promoted it, so that nothing falls back to it (rollouts.md R6).
UNPROMOTED: Final = models.Q(unpromoted__isnull=False) | models.Q(
    resource__staged__isnull=False, resource__head=models.F("pk")
)
_BATCH = 500
_Row = TypeVar("_Row")
_NO_CHANGES: frozenset[int] = frozenset()


def staged_rows(environment: Environment, state: StagedState, names: Collection[Key] | None = None) -> list[StagedName]:
    """The rows of the names of an environment in this state, with their resources and newest revisions; only of those
    in `names`, unless that is None.
    """
    rows = StagedName.objects.filter(resource__environment=environment, state=state.value)
    found = rows.select_related("resource__head").order_by("pk")
    wanted = None if names is None else set(names)
    return [row for row in found if wanted is None or (row.resource.type, row.resource.name) in wanted]


def rows_move(rows: Sequence[StagedName], state: StagedState, generation: int) -> None:
    """Put these names into this state, at this generation, and have a build read their resources again."""
    for some in _batches([row.pk for row in rows]):
        StagedName.objects.filter(pk__in=some).update(state=state.value, since=generation)
        Resource.objects.filter(pk__in=some).update(touched=generation)


def rows_promote(rows: Sequence[StagedName], generation: int) -> None:
    """Make the newest revisions of these names what the stable side has, at this generation. A revision that a client
    acknowledged and that is in no quarantine becomes the one to fall back to; a deletion leaves none.
    """
    for some in _batches([row.pk for row in rows]):
        StagedName.objects.filter(pk__in=some).delete()
        resources = Resource.objects.filter(pk__in=some)
        resources.update(touched=generation)
        resources.filter(deleted=True).update(proven=None)
        acknowledged = RevisionProof.objects.filter(revision=models.OuterRef("head"))
        quarantined = Quarantine.objects.filter(revision=models.OuterRef("head"), released_at=None)
        sound = resources.filter(models.Exists(acknowledged), ~models.Exists(quarantined), deleted=False)
        sound.update(proven=models.F("head"))


def changes_settle(
    changes: Collection[int], generation: int, *, rollout: str | None = None, promoted: Collection[int] = _NO_CHANGES
) -> None:
    """Set the state of each of these changes, given by row id, from what of it is staged at this generation: a
    candidate while a rollout has anything of it, then stopped where anything was taken back, and promoted where nothing
    of it is staged any more.

    `rollout`: the open rollout, which a change that becomes a candidate belongs to. `promoted`: the changes of which
    something was just promoted; another change that is stopped stays so, whoever writes over what it wrote.
    """
    for some in _batches(sorted(changes)):
        states: dict[int, set[str]] = {}
        staged = StagedName.objects.filter(resource__head__change__in=some)
        for change, of_name in staged.values_list("resource__head__change", "state").distinct():
            states.setdefault(change, set()).add(of_name)
        for row in StagedChange.objects.filter(change__in=some):
            state = _state_of(row, states.get(row.change_id, set()), was_promoted=row.change_id in promoted)
            row.promoted_generation = _promoted_at(row, state, generation)
            if state is StagedChangeState.CANDIDATE and rollout is not None:
                row.rollout = rollout
            row.state = state.value
            row.save(update_fields=["state", "rollout", "promoted_generation"])


def _state_of(row: StagedChange, staged: Collection[str], *, was_promoted: bool) -> StagedChangeState:
    # While a rollout has anything of it, the change is on its way (rollouts.md R7).
    for state in (StagedState.CANDIDATE, StagedState.STOPPED, StagedState.WAITING):
        if state.value in staged:
            return StagedChangeState(state.value)
    before = StagedChangeState(row.state)
    return before if before is StagedChangeState.STOPPED and not was_promoted else StagedChangeState.PROMOTED


def _promoted_at(row: StagedChange, state: StagedChangeState, generation: int) -> int | None:
    if state is not StagedChangeState.PROMOTED:
        return None
    return row.promoted_generation if row.promoted_generation is not None else generation


def _batches(items: Iterable[_Row]) -> Iterator[list[_Row]]:
    ordered = list(items)
    for start in range(0, len(ordered), _BATCH):
        yield ordered[start : start + _BATCH]
