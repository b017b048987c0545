"""Answers what is staged: the names whose newest revision is not what the stable side has, the changes that wrote them,
and the candidate side of an open rollout (rollouts.md, "Words"). Reads only; `services.staging` moves them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import models

from controlplane.catalog.choices import ChangeKind, StagedChangeState, StagedState
from controlplane.catalog.models import (
    CandidateSide,
    Change,
    Environment,
    Rehearsal,
    SideMove,
    StagedChange,
    StagedName,
)
from controlplane.catalog.rollout_settings import settings_stored
from xdscore.sides import RolloutTable

Key = tuple[str, str]
"""The word of a type, and a resource's name."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class StagedView:
    """A name whose newest revision is not what the stable side has.

    `from_revision`: the number of the revision that the stable side has; None where it has nothing.
    `to_revision`: the number of the newest revision; None where that is a deletion, as `deleted` says.
    `revision`: the number of the newest revision, also of a deletion.
    `change`, `author`: the public id of the change that wrote the newest revision, and who made that change.
    `from_address`, `from_version`, `to_address`, `to_version`: the hash and the `version_info` of both contents; empty
        where there is none.
    `generation`: that of the change.
    `since`: the generation at which the name came into this state.
    """

    key: Key
    state: StagedState
    from_revision: int | None
    to_revision: int | None
    revision: int
    change: str
    author: str
    deleted: bool
    from_address: str
    from_version: str
    to_address: str
    to_version: str
    generation: int
    since: int


@dataclass(frozen=True, slots=True)
class StagedChangeView:
    """A change of which something was staged.

    `rollout`: the public id of the rollout that has it, or had it last; empty: none did.
    `promoted_generation`: the generation at which nothing of it was staged any more; None before.
    """

    change: str
    state: StagedChangeState
    rollout: str
    promoted_generation: int | None


@dataclass(frozen=True, slots=True)
class OpenSide:
    """The candidate side of an environment: the public id of its rollout, and the table that says who is on it."""

    rollout: str
    table: RolloutTable


def names_waiting(environment_key: str) -> tuple[StagedView, ...]:
    """The names of an environment that wait for the next rollout, by type and name. One query."""
    return _views(environment_key, StagedState.WAITING)


def waiting_since(environment_key: str) -> datetime | None:
    """When the newest of what waits for the next rollout was written, by the clock of who wrote it; None where nothing
    waits.
    """
    rows = StagedName.objects.filter(resource__environment__key=environment_key, state=StagedState.WAITING.value)
    newest: datetime | None = rows.aggregate(newest=models.Max("resource__head__change__at"))["newest"]
    return newest


def names_candidate(environment_key: str) -> tuple[StagedView, ...]:
    """The names of an environment that the open rollout has, by type and name. One query."""
    return _views(environment_key, StagedState.CANDIDATE)


def names_stopped(environment_key: str) -> tuple[StagedView, ...]:
    """The names of an environment that a rollout took back and that nobody wrote or released since, by type and name.
    One query.
    """
    return _views(environment_key, StagedState.STOPPED)


def staged_names(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, StagedView]:
    """The names among `keys` that are staged, in whatever state, by type and name."""
    wanted, found = sorted(set(keys)), dict[Key, StagedView]()
    for start in range(0, len(wanted), _BATCH):
        batch = set(wanted[start : start + _BATCH])
        rows = _rows(environment_key).filter(
            resource__type__in={word for word, _ in batch}, resource__name__in={name for _, name in batch}
        )
        found |= {view.key: view for view in map(_view, rows) if view.key in batch}
    return found


def staged_keys(*, environment_key: str) -> frozenset[Key]:
    """The type and name of everything that is staged in an environment. One query."""
    rows = StagedName.objects.filter(resource__environment__key=environment_key)
    return frozenset(rows.values_list("resource__type", "resource__name"))


def candidate_side(environment_key: str) -> OpenSide | None:
    """The candidate side of an environment; None while no rollout is open."""
    row = CandidateSide.objects.filter(environment__key=environment_key).first()
    return OpenSide(str(row.rollout), RolloutTable.from_json(row.table)) if row is not None else None


def environments_waiting() -> tuple[int, ...]:
    """The row ids of the environments with rollouts in which names wait, and neither a rollout nor a rehearsal is
    open.
    """
    rehearsals = Rehearsal.objects.filter(environment=models.OuterRef("pk"), closed_at=None)
    waiting = StagedName.objects.filter(state=StagedState.WAITING.value, resource__environment=models.OuterRef("pk"))
    rows = Environment.objects.filter(models.Exists(waiting), rollout__isnull=False, candidate_side__isnull=True)
    found = rows.filter(~models.Exists(rehearsals)).order_by("pk").values_list("pk", "rollout")
    return tuple(pk for pk, rollout in found if settings_stored(rollout).stages)


def staged_changes(*, changes: Collection[int]) -> Mapping[int, StagedChangeView]:
    """How far each of these changes, given by row id, has come; those of which nothing was ever staged are left out."""
    wanted, found = sorted(set(changes)), dict[int, StagedChangeView]()
    for start in range(0, len(wanted), _BATCH):
        rows = StagedChange.objects.filter(change__in=wanted[start : start + _BATCH]).select_related("change")
        found |= {row.change_id: _change_view(row) for row in rows}
    return found


def changes_of(*, environment_key: str, names: Collection[Key]) -> tuple[str, ...]:
    """The public ids of the changes that wrote the newest revisions of those of these names that are staged, oldest
    first.
    """
    views = staged_names(environment_key=environment_key, keys=names).values()
    return tuple(dict.fromkeys(view.change for view in sorted(views, key=lambda view: view.generation)))


def changes_of_rollout(rollout: str) -> tuple[StagedChangeView, ...]:
    """The changes that the rollout with this public id has, or had as their last one, oldest first."""
    rows = StagedChange.objects.filter(rollout=UUID(rollout)).select_related("change")
    return tuple(_change_view(row) for row in rows.order_by("change__generation"))


def is_staged(*, environment_key: str, word: str, name: str, revision: int) -> bool:
    """Whether the revision of this number is the newest of its resource and the stable side has another one."""
    return StagedName.objects.filter(
        resource__environment__key=environment_key,
        resource__type=word,
        resource__name=name,
        resource__head__number=revision,
    ).exists()


def sides_moved_last(*, environment_id: int) -> bool:
    """Whether the newest generation of an environment is news of a rollout, for which nobody waits: names or clients
    moved between the sides, or a rollout took something back.
    """
    here = {"environment": models.OuterRef("pk"), "generation": models.OuterRef("generation")}
    moved = models.Exists(SideMove.objects.filter(**here))
    taken_back = models.Exists(Change.objects.filter(**here, kind=ChangeKind.ROLLBACK.value))
    return Environment.objects.filter(moved | taken_back, pk=environment_id).exists()


def _views(environment_key: str, state: StagedState) -> tuple[StagedView, ...]:
    rows = _rows(environment_key).filter(state=state.value).order_by("resource__type", "resource__name")
    return tuple(map(_view, rows))


def _rows(environment_key: str) -> models.QuerySet[StagedName]:
    rows = StagedName.objects.filter(resource__environment__key=environment_key)
    return rows.select_related("resource__head__change", "stable")


def _view(row: StagedName) -> StagedView:
    resource, stable = row.resource, row.stable
    head = resource.head
    if head is None:  # written in the same transaction as the resource
        raise RuntimeError(f"resource {resource.pk} has no head")
    nothing_before = stable is None or stable.blob_id is None
    return StagedView(
        key=(resource.type, resource.name),
        state=StagedState(row.state),
        from_revision=None if stable is None or nothing_before else stable.number,
        to_revision=None if head.blob_id is None else head.number,
        revision=head.number,
        change=str(head.change.public_id),
        author=head.change.author,
        deleted=head.blob_id is None,
        from_address=(stable.blob_id or "") if stable is not None else "",
        from_version=stable.version if stable is not None else "",
        to_address=head.blob_id or "",
        to_version=head.version,
        generation=head.change.generation,
        since=row.since,
    )


def _change_view(row: StagedChange) -> StagedChangeView:
    return StagedChangeView(
        str(row.change.public_id),
        StagedChangeState(row.state),
        str(row.rollout) if row.rollout is not None else "",
        row.promoted_generation,
    )
