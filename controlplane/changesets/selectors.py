"""Answers what change sets are and do. Values only, never rows.

For the REST API (interfaces.md section 8): `GET /environments/{env}/change-sets` is `change_sets_of`, `GET
/change-sets/{id}` is `change_set_get` with `change_set_contents`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count

from controlplane.catalog.contents import contents_of_pairs
from controlplane.catalog.differences import ResourceDifference
from controlplane.catalog.manifests import manifest_of, manifest_of_parsed
from controlplane.catalog.review import WriteUnreviewed
from controlplane.catalog.services import Terms, change_plan
from controlplane.catalog.values import ChangePlanned
from controlplane.changesets.machine import Act, Standing, check
from controlplane.changesets.models import ChangeSet, ChangeSetAuthor, ChangeSetChange, ChangeSetEntry
from controlplane.changesets.reading import EntriesRead, Key, entries_read, kept_of, moved_of, row_of, standings_of
from controlplane.changesets.values import Moved, Remark, SetEntry, SetState, SetView, Verdict
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, ControlPlaneError, InputInvalid
from xdscore.findings import Finding, Severity
from xdscore.schema import Tree

_OVER_HOLD = Terms(overrides_hold=True)
_LOOKED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class SetPage:
    """One page of change sets, newest first. `after`: where the next page begins; empty where there is none."""

    rows: tuple[SetView, ...]
    after: str


@dataclass(frozen=True, slots=True)
class SetDetail:
    """A change set with all that its page shows, except what it would do now. `acts`: what its state allows now."""

    view: SetView
    entries: tuple[SetEntry, ...]
    moved: tuple[Moved, ...]
    remarks: tuple[Remark, ...]
    acts: frozenset[Act]


@dataclass(frozen=True, slots=True)
class SetContents:
    """What a change set writes: `manifests` by type and name, without secrets; `diff`: each resource beside the
    revision that it was made from; `findings`: about contents that are not valid any more.
    """

    manifests: Mapping[Key, dict[str, Tree]]
    diff: tuple[ResourceDifference, ...]
    read: EntriesRead


def change_set_environment(*, public_id: str) -> str:
    """The key of the environment of a change set. Raises NotFound."""
    return row_of(public_id).environment.key


def change_set_get(*, public_id: str) -> SetDetail:
    """A change set as it stands now. Raises NotFound."""
    row = row_of(public_id)
    standing = standings_of([row], database_now())[row.pk]
    (view,) = _views([row], {row.pk: standing})
    entries = row.entries.order_by("type", "name").values_list("type", "name", "blob_id", "base")
    return SetDetail(
        view=view,
        entries=tuple(SetEntry(word, name, blob is None, base) for word, name, blob, base in entries),
        moved=moved_of(row) if standing.moved else (),
        remarks=_remarks(row),
        acts=frozenset(act for act in Act if _is_possible(act, standing)),
    )


def change_set_contents(*, public_id: str) -> SetContents:
    """What a change set writes, as everybody may read it. Raises NotFound."""
    row = row_of(public_id)
    read = entries_read(row)
    manifests = {(each.type.word, each.name): manifest_of_parsed(each) for each in read.parsed}
    entries = list(row.entries.order_by("type", "name"))
    before = contents_of_pairs(
        environment_key=row.environment.key,
        revisions={(each.type, each.name): (each.base or None, None) for each in entries},
    )
    diff = []
    for entry in entries:
        key = (entry.type, entry.name)
        stored, _ = before[key]
        old, new = manifest_of(stored) if stored is not None else None, manifests.get(key)
        if old is not None or new is not None:
            diff.append(ResourceDifference(key, old, new))
    return SetContents(manifests, tuple(diff), read)


def change_set_plan(*, public_id: str, read: EntriesRead) -> tuple[ChangePlanned | None, tuple[Finding, ...]]:
    """What publishing a change set would do now, and findings; None where it could not be published at all, which the
    findings tell. `read`: its entries. Raises NotFound.
    """
    if read.refused:
        return None, read.refused
    row = row_of(public_id)
    try:
        planned = change_plan(environment_key=row.environment.key, edits=read.edits, terms=_OVER_HOLD)
    except InputInvalid as error:
        return None, error.findings or (_finding(error),)
    except ControlPlaneError as error:
        return None, (_finding(error),)
    # That is about a write that is no change set.
    return planned, tuple(each for each in planned.findings if each.code != WriteUnreviewed.code)


def change_set_kept(*, public_id: str, keys: Sequence[Key]) -> Mapping[Key, bytes]:
    """The contents of a change set for these names, secrets included: only to fill in what an edit of the set keeps
    (`catalog.reading`). Raises NotFound.
    """
    return kept_of(row_of(public_id), frozenset(keys))


def change_sets_of(
    *, environment_key: str, states: Sequence[SetState] = (), after: str = "", limit: int = 50
) -> SetPage:
    """One page of the change sets of an environment, newest first. `states`: only those that stand so."""
    rows = ChangeSet.objects.select_related("environment").filter(environment__key=environment_key).order_by("-pk")
    last = int(after) if after.isdecimal() else None
    found: list[SetView] = []
    now = database_now()
    # A state may follow from facts, so it is asked of rows that were read.
    while batch := list((rows.filter(pk__lt=last) if last is not None else rows)[:_LOOKED_AT_ONCE]):
        standings = standings_of(batch, now)
        wanted = [row for row in batch if not states or standings[row.pk].state in states]
        room = limit - len(found)
        found += _views(wanted[:room], standings)
        if len(wanted) > room:
            return SetPage(tuple(found), str(wanted[room - 1].pk if room else last))
        last = batch[-1].pk
    return SetPage(tuple(found), "")


def change_set_of_change(*, change: str) -> SetView | None:
    """The change set as which a change was proposed, given by the change's public id; None where there was none."""
    made = ChangeSetChange.objects.filter(change__public_id=change).select_related("change_set__environment").first()
    if made is None:
        return None
    row = made.change_set
    return _views([row], standings_of([row], database_now()))[0]


def _is_possible(act: Act, standing: Standing) -> bool:
    try:
        check(act, standing, "")
    except Conflict:
        return False
    return True


def _views(rows: Sequence[ChangeSet], standings: Mapping[int, Standing]) -> tuple[SetView, ...]:
    """The values of these rows, in a number of queries that does not grow."""
    authors: defaultdict[int, list[str]] = defaultdict(list)
    for author in ChangeSetAuthor.objects.filter(change_set__in=rows).order_by("pk"):
        authors[author.change_set_id].append(author.name)
    changes: defaultdict[int, list[str]] = defaultdict(list)
    made = ChangeSetChange.objects.filter(change_set__in=rows).order_by("pk")
    for change_set, change in made.values_list("change_set", "change__public_id"):
        changes[change_set].append(str(change))
    counts = dict(
        ChangeSetEntry.objects.filter(change_set__in=rows).order_by().values_list("change_set").annotate(n=Count("pk"))
    )
    return tuple(
        SetView(
            id=str(row.public_id),
            environment=row.environment.key,
            title=row.title,
            message=row.message,
            state=standings[row.pk].state,
            version=row.version,
            authors=tuple(authors[row.pk]),
            resources=counts.get(row.pk, 0),
            moved=standings[row.pk].moved,
            base_generation=row.base_generation,
            approvals=standings[row.pk].approvals,
            needed=standings[row.pk].review.approvals,
            required=standings[row.pk].review.required,
            not_before=row.not_before,
            expires=row.expires,
            waits_for=row.waits_for,
            scheduled_by=row.scheduled_by,
            published_by=row.published_by,
            changes=tuple(changes[row.pk]),
            created_at=row.created_at,
            edited_at=row.edited_at,
            ended_at=row.ended_at,
        )
        for row in rows
    )


def _remarks(row: ChangeSet) -> tuple[Remark, ...]:
    return tuple(
        Remark(
            author=each.author,
            verdict=Verdict(each.verdict),
            text=each.text,
            version=each.version,
            at=each.at,
            counts=each.verdict == Verdict.APPROVED.value and each.version == row.version,
            type=each.type,
            name=each.name,
            line=each.line,
        )
        for each in row.remarks.order_by("pk")
    )


def _finding(error: ControlPlaneError) -> Finding:
    return Finding(code=error.code, severity=Severity.ERROR, detail=error.detail)
