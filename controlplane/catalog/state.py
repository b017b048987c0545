"""Reads what a build needs of the catalogue at one moment (decisions D6): heads and policies never come from
different generations.

A reader that knows an earlier generation reads only the rows that were touched since; whatever it knows, the outcome is
the same (`Resource.touched`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from django.db import models

from controlplane.catalog.choices import QuarantineCause, StagedState
from controlplane.catalog.heads import CatalogState, Head, Moment, Staged
from controlplane.catalog.models import CandidateSide, Environment, Quarantine, Reference, Resource, StagedName
from controlplane.catalog.rehearsals import any_rehearsal, rehearsal_read
from controlplane.catalog.selectors import change_of_generation
from controlplane.catalog.withholding import Withholding, marks_of
from controlplane.database.aliases import READER
from xdscore.access import Effect
from xdscore.sides import RolloutTable
from xdscore.snapshot import Content, EntryKey

# How many deletions are remembered as "was removed" (XDS2102), newest first; older ones read "is not published".
MAX_REMOVED = 10_000

_CHUNK = 5_000
_BATCH = 500  # as many variables as a statement of SQLite may surely have


def catalog_state_read(*, environment_id: int, known: CatalogState | None = None) -> CatalogState | None:
    """Read everything that is written in an environment now; None when the environment does not exist. Called in a
    transaction of the database alias READER.

    `known`: an earlier result, of any environment; what did not change since is taken from it, which only saves time.
    """
    anything_staged = models.Exists(StagedName.objects.filter(resource__environment=models.OuterRef("pk")))
    rows = Environment.objects.using(READER).filter(pk=environment_id).select_related("candidate_side")
    rehearsing = any_rehearsal(models.OuterRef("pk"))
    environment = rows.annotate(anything_staged=anything_staged, rehearsing=rehearsing).first()
    if environment is None:
        return None
    if known is not None and not _continues(environment, known):
        known = None
    heads = dict(known.heads) if known is not None else {}
    since = known.at.generation if known is not None else -1
    references, withholdings = _references(environment_id, since), _withholdings(environment_id)
    staged = _staged(environment_id, since, withholdings) if environment.anything_staged else {}
    still_staged = set(known.staged) if known is not None else set()
    for head in _touched(environment_id, since, references, withholdings, staged, heads):
        heads[head.key] = head
        still_staged.discard(head.key)
    complete = known is None or known.removed_complete
    removed = sum(head.content is None and head.staged is None for head in heads.values())
    if removed > MAX_REMOVED or not complete:
        complete = _keep_newest_removed(environment_id, heads)
    state = CatalogState(
        environment=environment.key,
        at=_moment(environment, environment.generation),
        built_generation=environment.built_generation,
        heads=heads,
        default_effect=Effect(environment.default_effect),
        removed_complete=complete,
        deep_validation=environment.deep_validation,
        staged=frozenset(still_staged | staged.keys()),
        side=_side(environment),
    )
    return _with_rehearsal(state, environment_id) if environment.rehearsing else state


def _with_rehearsal(state: CatalogState, environment_id: int) -> CatalogState:
    """The state with the open rehearsal; without it, but said so, where its deadline has passed."""
    rehearsal = rehearsal_read(environment_id=environment_id)
    if rehearsal is None:
        return state
    if rehearsal.over:
        return replace(state, overdue=True)
    return replace(state, side=rehearsal.table, rehearsed=rehearsal.heads, rehearsal=rehearsal.id)


def _continues(environment: Environment, known: CatalogState) -> bool:
    """Whether `known` is an earlier state of this environment as the database has it: a restored database may have lost
    what `known` was read from (decisions D5b).
    """
    return (
        known.environment == environment.key
        and known.at.generation <= environment.generation
        and known.at == _moment(environment, known.at.generation)
    )


def _moment(environment: Environment, generation: int) -> Moment:
    change = change_of_generation(environment_id=environment.pk, generation=generation, using=READER)
    return Moment(str(environment.lineage), generation, change)


_COLUMNS = ("blob_id", "version", "size", "eds_name", "claims")


def _touched(
    environment_id: int,
    since: int,
    references: Mapping[int, tuple[EntryKey, ...]],
    withholdings: Mapping[int, Withholding],
    staged: Mapping[EntryKey, Staged],
    heads: Mapping[EntryKey, Head],
) -> Iterator[Head]:
    quarantines = Quarantine.objects.filter(released_at=None)
    rows = (
        _resources(environment_id, since)
        .annotate(
            quarantined=models.Exists(quarantines.filter(revision=models.OuterRef("head"))),
            proven_quarantined=models.Exists(quarantines.filter(revision=models.OuterRef("proven"))),
        )
        .values_list(
            *("type", "name", "head_id", "quarantined", "proven_quarantined"),
            *(f"head__{column}" for column in _COLUMNS),
            *(f"proven__{column}" for column in _COLUMNS),
        )
    )
    for word, name, revision, quarantined, proven_quarantined, *contents in rows.iterator(chunk_size=_CHUNK):
        head, proven = contents[: len(_COLUMNS)], contents[len(_COLUMNS) :]
        old = heads.get((word, name))
        yield Head(
            key=old.key if old is not None else (word, name),
            content=_content(*head[:4]),
            quarantined=quarantined,
            proven=_content(*proven[:4]),
            proven_quarantined=proven_quarantined,
            revision=revision,
            references=references.get(revision, ()),
            claims=_claims(head[4]),
            proven_claims=_claims(proven[4]),
            withholding=withholdings.get(revision) if quarantined else None,
            staged=staged.get((word, name)),
        )


def _staged(environment_id: int, since: int, withholdings: Mapping[int, Withholding]) -> Mapping[EntryKey, Staged]:
    """What the stable side has of each name that is staged and whose resource was touched after the generation
    `since`.
    """
    rows = StagedName.objects.using(READER).filter(resource__environment_id=environment_id)
    if since >= 0:
        rows = rows.filter(resource__touched__gt=since)
    quarantines = Quarantine.objects.filter(released_at=None)
    columns = rows.annotate(
        quarantined=models.Exists(quarantines.filter(revision=models.OuterRef("stable"))),
        proven_quarantined=models.Exists(quarantines.filter(revision=models.OuterRef("resource__proven"))),
    ).values_list(
        *("resource__type", "resource__name", "state", "stable_id", "quarantined", "proven_quarantined"),
        *(f"stable__{column}" for column in _COLUMNS),
        *(f"resource__proven__{column}" for column in _COLUMNS),
    )
    found = list(columns)
    references = _references_of([row[3] for row in found if row[3] is not None])
    staged: dict[EntryKey, Staged] = {}
    for word, name, state, revision, quarantined, proven_quarantined, *contents in found:
        stable, proven = contents[: len(_COLUMNS)], contents[len(_COLUMNS) :]
        head = Head(
            key=(word, name),
            content=_content(*stable[:4]),
            quarantined=quarantined,
            proven=_content(*proven[:4]),
            proven_quarantined=proven_quarantined,
            revision=revision or 0,
            references=references.get(revision, ()),
            claims=_claims(stable[4]),
            proven_claims=_claims(proven[4]),
            withholding=withholdings.get(revision) if quarantined else None,
        )
        staged[word, name] = Staged(head if revision is not None else None, StagedState(state))
    return staged


def _side(environment: Environment) -> RolloutTable | None:
    """Who is on the candidate side of an environment; None while no rollout is open."""
    side: CandidateSide | None = getattr(environment, "candidate_side", None)  # Django raises where there is none
    return RolloutTable.from_json(side.table) if side is not None else None


def _withholdings(environment_id: int) -> Mapping[int, Withholding]:
    """For each revision in quarantine (by row id), which clients do not get it."""
    rows = Quarantine.objects.using(READER).filter(released_at=None, revision__resource__environment_id=environment_id)
    columns = ("revision_id", "cause", "refused_by", "accepted_by", "revision__proof")
    return {
        revision: Withholding(
            marks_of(refused_by),
            marks_of(accepted_by),
            acknowledged=proof is not None,
            # What an operator took out of service is not tried on anybody.
            probed=cause == QuarantineCause.AUTOMATIC.value,
        )
        for revision, cause, refused_by, accepted_by, proof in rows.values_list(*columns)
    }


def _references(environment_id: int, since: int) -> Mapping[int, tuple[EntryKey, ...]]:
    """For each newest revision (by row id) of a resource written after the generation `since`: the resources that it
    refers to.
    """
    rows = (
        _resources(environment_id, since)
        .filter(head__references__isnull=False)
        .order_by("head_id", "head__references__to_type", "head__references__to_name")
        .values_list("head_id", "head__references__to_type", "head__references__to_name")
    )
    return _grouped(rows.iterator(chunk_size=_CHUNK))


def _references_of(revisions: Collection[int]) -> Mapping[int, tuple[EntryKey, ...]]:
    """The resources that each of these revisions, given by row id, refers to."""
    ordered, found = sorted(revisions), dict[int, tuple[EntryKey, ...]]()
    for start in range(0, len(ordered), _BATCH):
        rows = Reference.objects.using(READER).filter(revision__in=ordered[start : start + _BATCH])
        ranked = rows.order_by("revision_id", "to_type", "to_name")
        found |= _grouped(ranked.values_list("revision_id", "to_type", "to_name"))
    return found


def _grouped(rows: Iterable[tuple[int, str, str]]) -> dict[int, tuple[EntryKey, ...]]:
    known: dict[EntryKey, EntryKey] = {}
    found: dict[int, list[EntryKey]] = {}
    for revision, word, name in rows:
        target = (word, name)
        found.setdefault(revision, []).append(known.setdefault(target, target))
    return {revision: tuple(targets) for revision, targets in found.items()}


def _resources(environment_id: int, since: int) -> models.QuerySet[Resource]:
    rows = Resource.objects.using(READER).filter(environment_id=environment_id)
    return rows if since < 0 else rows.filter(touched__gt=since)


def _keep_newest_removed(environment_id: int, heads: dict[EntryKey, Head]) -> bool:
    """Drop the oldest deleted names from `heads`, beyond the number that snapshots remember; returns True where none
    had to be dropped. A staged deletion stays: the stable side has the name.
    """
    gone = Resource.objects.using(READER).filter(environment_id=environment_id, deleted=True, staged=None)
    gone = gone.order_by("-head_id")
    newest = list(gone.values_list("type", "name", "head_id")[: MAX_REMOVED + 1])
    for key in [key for key, head in heads.items() if head.content is None and head.staged is None]:
        del heads[key]
    for word, name, revision in newest[:MAX_REMOVED]:
        heads[word, name] = Head((word, name), None, revision=revision)
    return len(newest) <= MAX_REMOVED


def _content(address: str | None, version: str | None, size: int | None, eds_name: str | None) -> Content | None:
    if address is None:
        return None
    return Content(bytes.fromhex(address), version or "", size or 0, eds_name or "")


def _claims(lines: str | None) -> tuple[str, ...]:
    return tuple(lines.split("\n")) if lines else ()
