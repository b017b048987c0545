"""Answers what became of a change: which build covered it, and what that build said (decisions D6)."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from django.db import models
from django.db.models.functions import Cast, Coalesce

from controlplane.builder.models import Build, BuildOutcome, HeldResource
from controlplane.builder.stages.fallback import REJECTED, Cause
from controlplane.builder.stages.wording import NOT_CHECKED
from controlplane.catalog.change_log import changes_of_generations
from controlplane.catalog.choices import StagedChangeState
from controlplane.catalog.models import Change, Resource, Revision
from controlplane.catalog.selectors import change_get
from controlplane.catalog.staging import StagedChangeView, staged_changes
from controlplane.catalog.values import finding_from_json
from xdscore.findings import Finding

# A failed build is tried again every second (sweeper). So many failures in a row are no passing trouble.
_FAILURES_THAT_LAST = 3
_NOT_FAILED = models.Q(failures__lt=_FAILURES_THAT_LAST)
_BATCH = 500
_MAX_HELD = 1_000  # listed with a change
_MAX_CAUSES = 5_000  # read for a page of snapshots: a build joins the changes of a moment
_ON_THEIR_WAY = (StagedChangeState.WAITING.value, StagedChangeState.CANDIDATE.value)


class ChangeState(Enum):
    """How far a change has come (interfaces.md section 4, decisions C29)."""

    SAVED = "saved"
    CANDIDATE = "candidate"  # an open rollout has it
    PUBLISHED = "published"
    UNCHANGED = "unchanged"  # built, and no client sees a difference
    SUPERSEDED = "superseded"  # everything it wrote was written again before a build saw it
    FAILED = "failed"
    STOPPED = "stopped"  # a rollout took it back, wholly or in part

    @property
    def final(self) -> bool:
        """Whether whoever waits for the change need not wait longer: builder and rollout are done with it."""
        return self not in {ChangeState.SAVED, ChangeState.CANDIDATE}


_STAGED = {
    StagedChangeState.WAITING: ChangeState.SAVED,
    StagedChangeState.CANDIDATE: ChangeState.CANDIDATE,
    StagedChangeState.STOPPED: ChangeState.STOPPED,
}


@dataclass(frozen=True, slots=True)
class HeldBackName:
    """A name that is not served as it was written.

    `served`: whether an older revision is served in its place; else nothing is.
    `findings`: why, with their places in the manifest.
    `kinds`: the only kinds of clients from which it is withheld; empty: it is held back for all.
    `since`: when the build ended that first held it back; None where that is not recorded any more, or was not asked
        for.
    """

    type: str
    name: str
    reason: str
    served: bool
    findings: tuple[Finding, ...] = ()
    kinds: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def rejected(self) -> bool:
        """Whether a quarantine is the reason why the name is held back."""
        return self.reason == REJECTED


@dataclass(frozen=True, slots=True)
class ChangeProgress:
    """How far a change has come. `epoch`: the snapshot that first served it, None where there is none yet or it is not
    recorded any more. `held`: names that it wrote and that are held back. `detail`: why its build failed, or empty.
    `staged`: how far it is with rollouts; None where nothing of it was ever staged.
    """

    state: ChangeState
    epoch: int | None = None
    held: tuple[HeldBackName, ...] = ()
    detail: str = ""
    staged: StagedChangeView | None = None


def change_progress(*, public_id: str) -> ChangeProgress:
    """How far the change with this id has come. Raises NotFound."""
    return progress_of_change(change=change_get(public_id=public_id))


def progress_of_change(*, change: Change) -> ChangeProgress:
    """How far the change has come."""
    return progress_of_changes(changes=[change])[change.pk]


def progress_of_changes(*, changes: Sequence[Change]) -> Mapping[int, ChangeProgress]:
    """How far each of these changes has come, by row id. One of which something was staged is published by the build
    that covers its promotion (rollouts.md R2). The number of queries grows with that of builds, and of changes that
    wait for one.
    """
    staged = staged_changes(changes=[each.pk for each in changes])
    due = {each: _due(each, staged.get(each.pk)) for each in changes}
    covered = _covered_by(due)
    superseded = _superseded(covered)
    held = _held(changes)
    found = {}
    for change, generation in due.items():
        view, build = staged.get(change.pk), covered.get(change)
        if view is not None and view.state is not StagedChangeState.PROMOTED:
            if view.state is StagedChangeState.WAITING and build is None:
                progress = _unbuilt(change, generation)
            else:
                progress = ChangeProgress(_STAGED[view.state], held=held.get(change.pk, ()))
        elif build is None:
            progress = _unbuilt(change, generation)
            if view is not None and view.rollout and progress.state is ChangeState.SAVED:
                progress = ChangeProgress(ChangeState.CANDIDATE)
        elif change.pk in superseded:
            progress = ChangeProgress(ChangeState.SUPERSEDED, build.epoch)
        elif build.from_generation >= generation:
            # Its own build is forgotten (`retention`).
            progress = ChangeProgress(ChangeState.PUBLISHED, held=held.get(change.pk, ()))
        else:
            state = ChangeState.PUBLISHED if build.outcome == BuildOutcome.PUBLISHED else ChangeState.UNCHANGED
            progress = ChangeProgress(state, build.epoch, held.get(change.pk, ()))
        found[change.pk] = replace(progress, staged=view)
    return found


def changes_unfinished(*, public_ids: Sequence[str]) -> frozenset[str]:
    """The ids among `public_ids` of changes that wait for a build or a rollout: neither has finished them, and no build
    has finally failed. One query for all of them.
    """
    unfinished: set[str] = set()
    for start in range(0, len(public_ids), _BATCH):
        builds = Build.objects.filter(
            environment=models.OuterRef("environment"), to_generation__gte=models.OuterRef("due")
        )
        built = models.Exists(builds.filter(outcome__in=(BuildOutcome.PUBLISHED, BuildOutcome.UNCHANGED)))
        waiting = (
            Change.objects.filter(public_id__in=public_ids[start : start + _BATCH])
            .exclude(staged__state=StagedChangeState.STOPPED.value)
            .annotate(due=Coalesce("staged__promoted_generation", "generation"))
            .annotate(failures=_count(builds.filter(outcome=BuildOutcome.FAILED)))
            .filter(models.Q(built, staged__state__in=_ON_THEIR_WAY) | (~models.Q(built) & _NOT_FAILED))
        )
        unfinished.update(str(each) for each in waiting.values_list("public_id", flat=True))
    return frozenset(unfinished)


def held_names(*, environment_key: str, keys: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], HeldBackName]:
    """The names among `keys`, which are (type, name), that the environment holds back, by key. One query."""
    ended = _ended().filter(environment=models.OuterRef("environment"), to_generation=models.OuterRef("generation"))
    rows = held_rows(environment_keys=[environment_key]).filter(
        type__in={word for word, _ in keys}, name__in={name for _, name in keys}
    )
    rows = rows.annotate(since=models.Subquery(ended.order_by("id").values("at")[:1]))
    return {
        (row.type, row.name): replace(_held_name(row), since=row.since) for row in rows if (row.type, row.name) in keys
    }


def held_rows(
    *,
    environment_keys: Collection[str] | None = None,
    rejected: bool | None = None,
    served: bool | None = None,
) -> models.QuerySet[HeldResource]:
    """The rows of the names that these environments (None: all) hold back, for queries that filter by them.

    `rejected`: True: only names held back by a quarantine; False: only the others; None: both.
    `served`: True: only names with an older revision served in their place; False: only the others; None: both.
    """
    rows = HeldResource.objects.all()
    if environment_keys is not None:
        rows = rows.filter(environment__key__in=list(environment_keys))
    if rejected is not None:
        rows = rows.filter(reason=REJECTED) if rejected else rows.exclude(reason=REJECTED)
    return rows if served is None else rows.filter(served=served)


def covered_at(*, environment_key: str, generations: Collection[int]) -> Mapping[int, datetime]:
    """For each of these generations, when the first build that covered it ended; of a change that a rollout promoted,
    the first that covered that. A generation that is not built, or whose build is not recorded any more, is left out.
    One query.
    """
    first = _ended().filter(environment=models.OuterRef("environment"), to_generation__gte=models.OuterRef("due"))
    first = first.order_by("to_generation", "id")
    changes = Change.objects.filter(environment__key=environment_key, generation__in=generations)
    changes = changes.annotate(due=Coalesce("staged__promoted_generation", "generation")).annotate(
        covered=models.Subquery(first.values("at")[:1]), since=models.Subquery(first.values("from_generation")[:1])
    )
    rows = changes.exclude(covered=None).values_list("generation", "due", "since", "covered")
    return {generation: covered for generation, due, since, covered in rows if since < due}


def held_with_code(
    *, environment_keys: Collection[str], code: str, withheld: bool, limit: int
) -> tuple[tuple[tuple[str, HeldBackName], ...], int]:
    """The first `limit` names that are held back because of a finding with this code, as (environment key, name), and
    how many there are in all. `withheld`: instead, the names of which nothing is served, whatever the finding. Two
    queries.
    """
    rows = HeldResource.objects.filter(environment__key__in=list(environment_keys)).select_related("environment")
    if withheld:
        rows = rows.filter(served=False)
    else:
        found = Cast("findings", models.TextField())
        rows = rows.annotate(found=found).filter(found__contains=f'"{code}"')
    first = rows.order_by("environment__key", "type", "name")[:limit]
    return tuple((row.environment.key, _held_name(row)) for row in first), rows.count()


def held_count() -> int:
    """The number of names that are held back now, in all environments."""
    return HeldResource.objects.count()


def environments_failing() -> int:
    """The number of environments whose newest build failed, either as a whole or for a type in which something was
    written.
    """
    newest = Build.objects.filter(environment=models.OuterRef("environment")).order_by("-pk").values("pk")[:1]
    failed = models.Q(outcome=BuildOutcome.FAILED) | models.Q(finding_counts__has_key=Cause.TYPE.value)
    return Build.objects.filter(failed, pk=models.Subquery(newest)).count()


def held_name(*, environment_key: str, word: str, name: str) -> HeldBackName | None:
    """Why the name of this type (`word`) is not served as written; None when it is."""
    row = HeldResource.objects.filter(environment__key=environment_key, type=word, name=name).first()
    return _held_name(row) if row is not None else None


def generation_of_epoch(*, environment_key: str, epoch: int) -> int | None:
    """The last generation that the environment serves with the snapshot of this epoch, by the record of builds; None
    when no build of it is recorded.
    """
    builds = Build.objects.filter(environment__key=environment_key, epoch=epoch)
    last: int | None = builds.aggregate(last=models.Max("to_generation"))["last"]
    return last


@dataclass(frozen=True, slots=True)
class LastBuild:
    """When the newest build of an environment ended, and how many seconds it took."""

    at: datetime
    took_s: float


def last_build(*, environment_id: int) -> LastBuild | None:
    """The newest build of an environment, however it ended; None before the first. One query."""
    rows = Build.objects.filter(environment=environment_id).order_by("-to_generation", "-pk")  # as the index has them
    newest = rows.values_list("at", "stage_ms").first()
    return LastBuild(newest[0], sum(newest[1].values()) / 1000) if newest is not None else None


def last_unchecked(*, environment_id: int) -> str:
    """Why the newest build of an environment that ended well had resources that no Envoy checked though one was to, as
    a sentence; empty where it had none, or names each of them. One query.
    """
    rows = _ended().filter(environment=environment_id).order_by("-to_generation", "-pk")
    found = map(finding_from_json, rows.values_list("findings", flat=True).first() or ())
    return next((each.detail for each in found if each.code == NOT_CHECKED.code and not each.resource_name), "")


def builds_of_epochs(*, environment_key: str, epochs: Sequence[int]) -> Mapping[int, Build]:
    """The build that published the snapshot of each of these epochs, by epoch. An epoch whose build is not recorded any
    more is left out.
    """
    builds = Build.objects.filter(
        environment__key=environment_key, epoch__in=list(epochs), outcome=BuildOutcome.PUBLISHED
    )
    return {build.epoch: build for build in builds.order_by("id") if build.epoch is not None}


def causes_of_builds(*, environment_key: str, builds: Mapping[int, Build]) -> dict[int, tuple[Change, ...]]:
    """For each of these builds, by the epoch of its snapshot: the changes that no earlier build had covered, newest
    first. Of very many only the newest are found, in one query.
    """
    if not builds:
        return {}
    changes = changes_of_generations(
        environment_key=environment_key,
        after=min(build.from_generation for build in builds.values()),
        up_to=max(build.to_generation for build in builds.values()),
        limit=_MAX_CAUSES,
    )
    oldest_first = changes[::-1]

    def behind(generation: int) -> int:
        return bisect_right(oldest_first, generation, key=lambda change: change.generation)

    return {
        epoch: oldest_first[behind(build.from_generation) : behind(build.to_generation)][::-1]
        for epoch, build in builds.items()
    }


def build_list(*, environment_key: str) -> models.QuerySet[Build]:
    """The runs of the builder for an environment, newest first."""
    return Build.objects.filter(environment__key=environment_key).order_by("-id")


def _ended() -> models.QuerySet[Build]:
    """The builds that succeeded: they published a snapshot, or there was no difference for clients."""
    return Build.objects.filter(outcome__in=(BuildOutcome.PUBLISHED, BuildOutcome.UNCHANGED))


def _due(change: Change, view: StagedChangeView | None) -> int:
    """The generation whose build publishes the change."""
    return (view.promoted_generation if view is not None else None) or change.generation


def _covered_by(due: Mapping[Change, int]) -> Mapping[Change, Build]:
    """For each change, given with the generation that is to be built, the first build that covered that; changes that
    wait for one are left out. One query.
    """
    first = _ended().filter(environment=models.OuterRef("environment"), to_generation__gte=models.OuterRef("due"))
    rows = Change.objects.filter(pk__in=[each.pk for each in due])
    rows = rows.annotate(due=Coalesce("staged__promoted_generation", "generation"))
    covering = rows.values_list(models.Subquery(first.order_by("to_generation", "id").values("pk")[:1]))
    builds = tuple(Build.objects.filter(pk__in=covering).order_by("to_generation", "id"))
    found = {}
    for change, generation in due.items():
        of_change = (each for each in builds if each.environment_id == change.environment_id)
        build = next((each for each in of_change if each.to_generation >= generation), None)
        if build is not None:
            found[change] = build
    return found


def _unbuilt(change: Change, generation: int) -> ChangeProgress:
    """How far a change has come that no build has covered since `generation`."""
    covering = Build.objects.filter(environment=change.environment, to_generation__gte=generation)
    failed = covering.filter(outcome=BuildOutcome.FAILED)
    last = failed.order_by("-id").first()
    if last is not None and failed.count() >= _FAILURES_THAT_LAST:
        return ChangeProgress(ChangeState.FAILED, detail=last.detail)
    return ChangeProgress(ChangeState.SAVED)


def _superseded(covered: Mapping[Change, Build]) -> frozenset[int]:
    """The changes among these of which each revision already had a newer one when the build that first covered the
    change was made.
    """
    by_build: dict[int, list[int]] = {}
    for change, build in covered.items():
        if change.generation < build.to_generation:  # else the build has nothing newer
            by_build.setdefault(build.to_generation, []).append(change.pk)
    found: set[int] = set()
    for generation, changes in by_build.items():
        written = Revision.objects.filter(change=models.OuterRef("pk"))
        newer = Revision.objects.filter(
            resource=models.OuterRef("resource"),
            number__gt=models.OuterRef("number"),
            change__generation__lte=generation,
        )
        wrote, current = models.Exists(written), models.Exists(written.exclude(models.Exists(newer)))
        found.update(Change.objects.filter(wrote, ~current, pk__in=changes).values_list("pk", flat=True))
    return frozenset(found)


def _held(changes: Sequence[Change]) -> Mapping[int, tuple[HeldBackName, ...]]:
    """The names that each of these changes wrote and that are held back, as long as the revision it wrote is the
    newest, by row id. One query.
    """
    resources = Resource.objects.filter(
        environment=models.OuterRef("environment"), type=models.OuterRef("type"), name=models.OuterRef("name")
    )
    rows = (
        HeldResource.objects.filter(environment__in={each.environment_id for each in changes})
        .annotate(written_by=models.Subquery(resources.values("head__change")[:1]))
        .filter(written_by__in=[each.pk for each in changes])
        .order_by("type", "name")
    )
    found: dict[int, list[HeldBackName]] = {}
    for row in rows[: _MAX_HELD * len(changes)]:
        of_change = found.setdefault(row.written_by, [])
        if len(of_change) < _MAX_HELD:
            of_change.append(_held_name(row))
    return {change: tuple(names) for change, names in found.items()}


def _held_name(row: HeldResource) -> HeldBackName:
    findings = tuple(finding_from_json(each) for each in row.findings)
    return HeldBackName(row.type, row.name, row.reason, row.served, findings, tuple(row.kinds))


def _count(rows: models.QuerySet[Build]) -> Coalesce:
    """A database expression for the number of `rows` of each environment, to be a column of a query of environments."""
    counted = rows.order_by().values("environment").annotate(count=models.Count("pk")).values("count")
    return Coalesce(models.Subquery(counted), 0)
