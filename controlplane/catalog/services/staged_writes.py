"""What a write of resources does about the sides: which of its edits wait for a rollout, and which reach both sides.

`staging_of` decides it under the environment's lock, before the first write; `staging_store` stores it with the
revisions. An environment that never had rollouts pays nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from django.db import models, transaction

from controlplane.broker.hints import hint_rollout
from controlplane.catalog.choices import StagedChangeState, StagedState
from controlplane.catalog.models import (
    CandidateSide,
    Change,
    Environment,
    Reference,
    Resource,
    Revision,
    StagedChange,
    StagedName,
    UnpromotedRevision,
)
from controlplane.catalog.references import needs_of
from controlplane.catalog.rollout_settings import settings_stored
from controlplane.catalog.services.planning import BATCH, Key, Plan, Prepared, Terms
from controlplane.catalog.services.staged_rows import changes_settle, rows_promote

_NO_ROWS: Final[Mapping[Key, StagedName]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Staging:
    """What a write does about the sides.

    `staged`: the names whose new revision waits, or is in the open rollout (`state`).
    `rows`: what was staged before of the names that the write edits.
    `promoted`: names that are as the write asks already, but only for those who are to have them: all have them now.
    `rollout`: the open rollout, where the write joins it.
    """

    staged: frozenset[Key] = frozenset()
    rows: Mapping[Key, StagedName] = field(default_factory=lambda: _NO_ROWS)
    promoted: tuple[StagedName, ...] = ()
    state: StagedState = StagedState.WAITING
    rollout: str = ""


NOTHING_STAGED: Final = Staging()


def staging_of(environment: Environment, planned: Plan, edited: Collection[Key], terms: Terms) -> Staging:
    """What writing this plan would do about the sides. `edited`: all names that the write is about, also those that are
    as it asks already.

    With rollouts, or while one is open, each edit waits whose content is not what the stable side has, unless its type
    is immediate (rollouts.md, "Immediate types"). An edit of a name that the open rollout has joins it, with all others
    of the write (R5 and settled question 6).
    """
    if environment.rollout is None:
        return NOTHING_STAGED
    settings = settings_stored(environment.rollout)
    side = models.Exists(CandidateSide.objects.filter(environment=models.OuterRef("pk")))
    names = models.Exists(StagedName.objects.filter(resource__environment=models.OuterRef("pk")))
    side_is_open, anything = Environment.objects.filter(pk=environment.pk).values_list(side, names).get()
    if not settings.stages and not side_is_open and not anything:
        return NOTHING_STAGED
    rows = _rows(planned)
    if not terms.staged:
        effective = {edit.key for edit in planned.effective}
        promoted = tuple(row for key, row in rows.items() if key in edited and key not in effective)
        return Staging(rows=rows, promoted=promoted)
    if not settings.stages and not side_is_open:
        return Staging(rows=rows)
    staged = _staged(environment, planned, rows, frozenset(settings.immediate))
    joins = any(rows[edit.key].state == StagedState.CANDIDATE.value for edit in planned.effective if edit.key in rows)
    if not joins:
        return Staging(staged, rows)
    rollout = str(CandidateSide.objects.get(environment=environment).rollout)
    return Staging(staged, rows, state=StagedState.CANDIDATE, rollout=rollout)


def staging_store(
    staging: Staging,
    change: Change,
    planned: Plan,
    resources: Mapping[Key, Resource],
    heads_before: Mapping[Key, int | None],
) -> None:
    """Store what the write of `planned` does about the sides, after its revisions. `resources`: the rows of the edited
    resources; `heads_before`: the row ids of what were their newest revisions.
    """
    if staging is NOTHING_STAGED:
        return
    overwritten = [staging.rows[edit.key] for edit in planned.effective if edit.key in staging.rows]
    UnpromotedRevision.objects.bulk_create(
        (UnpromotedRevision(revision=row.resource.head) for row in overwritten if row.resource.head is not None),
        ignore_conflicts=True,
        batch_size=BATCH,
    )
    gone = [row.pk for row in overwritten if (row.resource.type, row.resource.name) not in staging.staged]
    for start in range(0, len(gone), BATCH):
        StagedName.objects.filter(pk__in=gone[start : start + BATCH]).delete()
    StagedName.objects.bulk_create(
        (_row(key, resources[key], staging, change, heads_before) for key in sorted(staging.staged)),
        update_conflicts=True,
        unique_fields=["resource"],
        update_fields=["state", "since"],
        batch_size=BATCH // 4,
    )
    rows_promote(staging.promoted, change.generation)
    if staging.staged:
        environment_id = change.environment_id
        transaction.on_commit(lambda: hint_rollout(environment_id))
        state = StagedChangeState(staging.state.value)
        StagedChange.objects.create(change=change, state=state.value, rollout=staging.rollout or None)
    promoted = _changes(staging.promoted)
    # A candidate that is overwritten does not take its change out of the rollout that it was in.
    changes_settle(_changes(overwritten) | promoted, change.generation, promoted=promoted)


def _row(
    key: Key, resource: Resource, staging: Staging, change: Change, heads_before: Mapping[Key, int | None]
) -> StagedName:
    known = staging.rows.get(key)
    stable = known.stable_id if known is not None else heads_before.get(key)
    return StagedName(resource=resource, stable_id=stable, state=staging.state.value, since=change.generation)


def _rows(planned: Plan) -> dict[Key, StagedName]:
    """What is staged of the resources that are edited, with the revisions of both sides."""
    resources = [resource.pk for resource in planned.current.values()]
    found: dict[Key, StagedName] = {}
    for start in range(0, len(resources), BATCH):
        rows = StagedName.objects.filter(pk__in=resources[start : start + BATCH])
        for row in rows.select_related("resource__head", "stable"):
            found[row.resource.type, row.resource.name] = row
    return found


def _staged(
    environment: Environment, planned: Plan, rows: Mapping[Key, StagedName], immediate: Collection[str]
) -> frozenset[Key]:
    """The names whose edits do not reach the stable side."""
    differing = {edit.key: edit for edit in planned.effective if not _is_stable(edit, _stable(edit.key, planned, rows))}
    staged = {key for key in differing if key[0] not in immediate}
    deletions = {key for key, edit in differing.items() if edit.parsed is None} - staged
    # Of two immediate types one may need the other, so that one that waits makes the next one wait.
    while needed := deletions & _needed(environment, deletions, planned, staged):
        staged |= needed
        deletions -= needed
    return frozenset(staged)


def _stable(key: Key, planned: Plan, rows: Mapping[Key, StagedName]) -> Revision | None:
    """The revision of a name that the stable side has before the write; None where there was none yet."""
    if key in rows:
        return rows[key].stable
    resource = planned.current.get(key)
    return resource.head if resource is not None else None


def _is_stable(edit: Prepared, stable: Revision | None) -> bool:
    """Whether an edit asks for what the stable side has, so that there is nothing to roll out."""
    if edit.parsed is None:
        return stable is None or stable.blob_id is None
    return stable is not None and (stable.blob_id, stable.ttl_ms) == (edit.address.hex(), edit.parsed.ttl_ms)


def _needed(environment: Environment, names: Collection[Key], planned: Plan, staged: Collection[Key]) -> set[Key]:
    """The names, of `names` and others, to which something refers that the stable side has once the write is done."""
    both = {edit.key: edit for edit in planned.effective if edit.key not in staged}
    found = {target for edit in both.values() if edit.parsed is not None for target in needs_of(edit.parsed)}
    found.update(target for referrer, target in _references(environment, names) if referrer not in both)
    return found


def _references(environment: Environment, targets: Collection[Key]) -> Iterator[tuple[Key, Key]]:
    """Who refers to these names on the stable side as it is now: (the resource that refers, the name)."""
    head = models.Q(revision__resource__staged=None, revision=models.F("revision__resource__head"))
    stable = models.Q(revision=models.F("revision__resource__staged__stable"))
    ordered = sorted(targets)
    for start in range(0, len(ordered), BATCH):
        batch = ordered[start : start + BATCH]
        rows = Reference.objects.filter(
            head | stable,
            revision__resource__environment=environment,
            to_type__in={word for word, _ in batch},
            to_name__in={name for _, name in batch},
        )
        columns = ("revision__resource__type", "revision__resource__name", "to_type", "to_name")
        for word, name, to_type, to_name in rows.values_list(*columns):
            yield (word, name), (to_type, to_name)


def _changes(rows: Collection[StagedName]) -> frozenset[int]:
    """The row ids of the changes that wrote what were the newest revisions of these names."""
    return frozenset(row.resource.head.change_id for row in rows if row.resource.head is not None)
