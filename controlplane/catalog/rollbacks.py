"""Which change took another one back, and what a change took back: from its `back_to` and `undoes`, never from texts.

A rollback makes the resources what they were at an earlier generation, so it takes back every change of resources in
between; an undo takes back the one change it names. A later one may lead back to where a change that was taken back
was in force: then it is again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import models

from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.models import Change, Revision


@dataclass(frozen=True, slots=True)
class Turn:
    """A change, written at `generation`, that took others back: a rollback to the generation `back_to`, or an undo of
    the change that was written at the generation `undoes`.
    """

    generation: int
    back_to: int | None = None
    undoes: int | None = None


def undone_by(*, environment_key: str, changes: Sequence[Change]) -> Mapping[int, Change]:
    """For each of these changes that was taken back, by its generation: the rollback or undo that did so. Changes in
    force are left out. Three queries at most.

    A rollback does not take back a change one of whose revisions is still current: the rollback left a name alone for
    which the earlier snapshot served nothing (`snapshots.rollback`), or the content is the same.
    """
    if not changes:
        return {}
    rows = _later_turns(environment_key, min(each.generation for each in changes))
    if not rows:
        return {}
    turns, by_generation = _turns_of(environment_key, rows), {row.generation: row for row in rows}
    found: dict[int, Change] = {}
    for each in changes:
        turn = in_force(each.generation, turns, resources=each.kind == ChangeKind.RESOURCES.value)
        if turn is not None:
            found[each.generation] = by_generation[turn.generation]
    rolled_back = [generation for generation, by in found.items() if by.back_to is not None]
    current = Revision.objects.filter(
        change__environment__key=environment_key, change__generation__in=rolled_back, resource__head=models.F("pk")
    )
    for generation in current.values_list("change__generation", flat=True).distinct():
        del found[generation]
    return found


def in_force(generation: int, turns: Sequence[Turn], *, resources: bool = True) -> Turn | None:
    """The rollback or undo because of which the change of this generation is not in force now; None while it is in
    force. `turns`: all rollbacks and undos, oldest first. `resources`: the change is of resources; rollbacks take back
    no other. Pure.
    """
    by_generation = {turn.generation: turn for turn in turns}
    end = turns[-1].generation if turns else 0
    for turn in reversed(turns):
        if not generation < turn.generation <= end:
            continue
        # As it was at that generation: only what had been taken back by then counts.
        if turn.back_to is not None:
            if resources and turn.back_to < generation:
                return turn
            end = turn.back_to if resources else end
        elif turn.undoes == generation:
            return turn
        elif turn.undoes is not None and _decides(turn.undoes, generation, by_generation, resources=resources):
            end = turn.undoes - 1
    return None


def undone_of(*, change: Change, limit: int) -> tuple[tuple[Change, ...], int]:
    """The first `limit` changes that this change took back, newest first, and how many it took back in all; most
    changes took back none.
    """
    if change.undoes:
        rows = Change.objects.filter(environment=change.environment_id, public_id=change.undoes)
    elif change.back_to is not None:
        rows = Change.objects.filter(
            environment=change.environment_id,
            generation__gt=change.back_to,
            generation__lt=change.generation,
            kind=ChangeKind.RESOURCES.value,
        )
    else:
        return (), 0
    return tuple(rows.order_by("-generation")[:limit]), rows.count()


def _later_turns(environment_key: str, generation: int) -> list[Change]:
    took_back = models.Q(back_to__isnull=False) | models.Q(undoes__gt="")
    rows = Change.objects.filter(took_back, environment__key=environment_key, generation__gt=generation)
    return list(rows.order_by("generation"))


def _turns_of(environment_key: str, rows: Sequence[Change]) -> list[Turn]:
    wanted = {UUID(row.undoes) for row in rows if row.undoes}
    undone: dict[str, int] = {}
    if wanted:
        targets = Change.objects.filter(environment__key=environment_key, public_id__in=wanted)
        undone = {str(public_id): number for public_id, number in targets.values_list("public_id", "generation")}
    return [Turn(row.generation, row.back_to, undone.get(row.undoes)) for row in rows]


def _decides(of: int, generation: int, turns: Mapping[int, Turn], *, resources: bool) -> bool:
    """Whether the rollback or undo of the generation `of` took back the change of `generation` or, by undoing an undo
    of that change, put it in force again.
    """
    turn = turns.get(of)
    while turn is not None and turn.generation > generation:
        if turn.back_to is not None:
            return resources
        if turn.undoes == generation:
            return True
        turn = turns.get(turn.undoes or 0)
    return False
