"""Moves staged names between the sides: a rollout opens, steps, promotes, takes back and ends (rollouts.md R2).

Each of these is called within the caller's transaction, with the environment's row locked before any other. Each counts
a generation of the environment and, once the transaction commits, hints a build; the resources concerned are touched,
so that a build reads them again.
"""

from collections.abc import Collection, Mapping

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.broker.hints import hint_build
from controlplane.catalog.choices import ChangeKind, QuarantineCause, StagedState
from controlplane.catalog.models import (
    CandidateSide,
    Environment,
    Quarantine,
    Rehearsal,
    Revision,
    SideMove,
    StagedName,
)
from controlplane.catalog.rollout_settings import settings_stored
from controlplane.catalog.services.staged_rows import (
    Key,
    changes_settle,
    rows_move,
    rows_promote,
    staged_rows,
)
from controlplane.catalog.services.writing import change_start
from controlplane.catalog.values import ChangeMade
from controlplane.common.errors import Conflict
from controlplane.journal.services import audit_record
from xdscore.sides import RolloutTable

_MAX_MESSAGE = 1_000
_MAX_REASON = 500
_NAMED = 3


def side_open(environment: Environment, *, table: RolloutTable, names: Collection[Key]) -> frozenset[Key]:
    """Open the candidate side of an environment for the rollout of `table`, with those of `names` that wait; returns
    them. The changes that wrote them are candidates from now on. Raises Conflict while a rollout is open.
    """
    open_side = CandidateSide.objects.filter(environment=environment).first()
    if open_side is not None:
        raise Conflict(
            f"A rollout is open in '{environment.key}' already: {open_side.rollout}. Wait for its end. "
            "Nothing was changed."
        )
    if Rehearsal.objects.filter(environment=environment, closed_at=None).exists():
        raise Conflict(f"A rehearsal is open in '{environment.key}'. Wait for its end. Nothing was changed.")
    CandidateSide.objects.create(environment=environment, rollout=table.id, table=table.as_json())
    rows = staged_rows(environment, StagedState.WAITING, names)
    generation = generation_count(environment)
    rows_move(rows, StagedState.CANDIDATE, generation)
    changes_settle(_changes(rows), generation, rollout=table.id)
    return frozenset((row.resource.type, row.resource.name) for row in rows)


def side_step(environment: Environment, *, table: RolloutTable) -> None:
    """Replace the table of the open rollout by `table`, which is of the same rollout: other clients are on the
    candidate side from now on. Raises Conflict where no rollout, or another one, is open.
    """
    row = CandidateSide.objects.filter(environment=environment).first()
    if row is None or str(row.rollout) != table.id:
        raise Conflict(f"The rollout {table.id} is not open in '{environment.key}'. Nothing was changed.")
    row.table = table.as_json()
    row.save(update_fields=["table"])
    generation_count(environment)


def names_promote(environment: Environment, *, names: Collection[Key]) -> frozenset[Key]:
    """Make the newest revisions of those of `names` that the open rollout has what the stable side has; returns them.
    What clients acknowledged of them is from now on what they fall back to (rollouts.md R6). A change of which nothing
    is staged any more is promoted.
    """
    rows = staged_rows(environment, StagedState.CANDIDATE, names)
    generation = generation_count(environment)
    rows_promote(rows, generation)
    changes_settle(_changes(rows), generation, promoted=_changes(rows))
    return frozenset((row.resource.type, row.resource.name) for row in rows)


def names_take_back(
    environment: Environment, *, incidents: Mapping[Key, str], reason: str, actor: Principal, rollout_label: str
) -> ChangeMade:
    """Take the candidate content of the names in `incidents` back: both sides have what the stable side has, and no
    later rollout takes the newest revision before somebody releases its quarantine or writes another (rollouts.md R7).
    It is one change of kind rollback; without any such name there is none.

    `incidents`: for each name, the public id of the incident about it; empty where there is none.
    `reason`: why, in one sentence.
    `rollout_label`: what people call the rollout, such as "rollout 1b2c3d4e".
    """
    rows = staged_rows(environment, StagedState.CANDIDATE, incidents)
    if not rows:
        return ChangeMade(environment.key, None, environment.generation)
    keys = sorted((row.resource.type, row.resource.name) for row in rows)
    change = change_start(
        environment=environment,
        kind=ChangeKind.ROLLBACK,
        actor=actor,
        message=f"{rollout_label} took back {_named(keys)}: {reason}"[:_MAX_MESSAGE],
    )
    rows_move(rows, StagedState.STOPPED, change.generation)
    _quarantine(rows, incidents, reason, actor)
    changes_settle(_changes(rows), change.generation)
    audit_record(
        actor=actor,
        verb="rollout.took_back",
        subject=str(change.public_id),
        environment=environment.key,
        detail={"rollout": rollout_label, "reason": reason, "names": len(keys)},
    )
    return ChangeMade(environment.key, change, change.generation)


def side_close(environment: Environment) -> None:
    """End the candidate side of an environment; does nothing where there is none. Names that the rollout still had wait
    again. Where rollouts are off by now, what waits is promoted, because no rollout will come for it.
    """
    if not CandidateSide.objects.filter(environment=environment).delete()[0]:
        return
    generation = generation_count(environment)
    rows = staged_rows(environment, StagedState.CANDIDATE)
    rows_move(rows, StagedState.WAITING, generation)
    changes_settle(_changes(rows), generation)
    if not settings_stored(environment.rollout).stages:
        waiting_promote(environment, generation)


def waiting_promote(environment: Environment, generation: int) -> None:
    """Promote everything that waits in an environment, at a generation that the caller has counted; what a rollout took
    back stays taken back.
    """
    rows = staged_rows(environment, StagedState.WAITING)
    rows_promote(rows, generation)
    changes_settle(_changes(rows), generation, promoted=_changes(rows))


def staged_stop(revision: Revision, generation: int) -> None:
    """Keep a revision that was just put into quarantine from both sides, if it is staged. `generation`: that of the
    quarantine.
    """
    rows = list(StagedName.objects.filter(resource__head=revision).select_related("resource__head"))
    if rows:
        rows_move(rows, StagedState.STOPPED, generation)
        changes_settle(_changes(rows), generation)


def stopped_release(environment: Environment, revision: Revision, generation: int) -> None:
    """Let a revision whose quarantine was just released wait for the next rollout, if a rollout had taken it back and
    nobody wrote over it since. Where rollouts are off and none is open, it is promoted at once. `generation`: that of
    the release.
    """
    stopped = StagedName.objects.filter(resource__head=revision, state=StagedState.STOPPED.value)
    row = stopped.select_related("resource__head").first()
    if row is None:
        return
    rows_move([row], StagedState.WAITING, generation)
    open_side = CandidateSide.objects.filter(environment=environment).exists()
    if not open_side and not settings_stored(environment.rollout).stages:
        rows_promote([row], generation)
    changes_settle(_changes([row]), generation, promoted=_changes([row]))


def generation_count(environment: Environment) -> int:
    """Count a generation of an environment at which no change is written, and hint its build once the caller's
    transaction commits; returns it.
    """
    environment.generation += 1
    environment.save(update_fields=["generation"])
    SideMove.objects.create(environment=environment, generation=environment.generation)
    environment_id = environment.pk
    transaction.on_commit(lambda: hint_build(environment_id))
    return environment.generation


def _quarantine(rows: Collection[StagedName], incidents: Mapping[Key, str], reason: str, actor: Principal) -> None:
    """Put the newest revision of each of these names into quarantine, unless it is in one already."""
    heads = {row.resource.head_id: (row.resource.type, row.resource.name) for row in rows if row.resource.head_id}
    open_ones = Quarantine.objects.filter(revision__resource__staged__in=rows, released_at=None)
    for pk in open_ones.values_list("revision_id", flat=True):
        heads.pop(pk, None)
    Quarantine.objects.bulk_create(
        Quarantine(
            revision_id=head,
            cause=QuarantineCause.ROLLOUT.value,
            incident=incidents[key],
            reason=reason[:_MAX_REASON],
            opened_by=actor.name,
        )
        for head, key in heads.items()
    )


def _changes(rows: Collection[StagedName]) -> frozenset[int]:
    """The row ids of the changes that wrote the newest revisions of these names."""
    return frozenset(row.resource.head.change_id for row in rows if row.resource.head is not None)


def _named(keys: Collection[Key]) -> str:
    shown = ", ".join(f"{word} '{name}'" for word, name in list(keys)[:_NAMED])
    more = len(keys) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
