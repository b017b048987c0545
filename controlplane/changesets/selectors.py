"""Answers what change sets are and do. Values only, never rows.

For the REST API (interfaces.md section 8): `GET /environments/{env}/change-sets` is `change_sets_of`, `GET
/change-sets/{id}` is `change_set_get` with `change_set_contents`.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Now

from controlplane.access.together import access_foresee
from controlplane.catalog.contents import contents_of_pairs
from controlplane.catalog.differences import ResourceDifference
from controlplane.catalog.manifests import manifest_of, manifest_of_bytes, with_labels
from controlplane.catalog.models import Change
from controlplane.catalog.review import WriteUnreviewed
from controlplane.catalog.selectors import blob_plaintext
from controlplane.catalog.services import Terms, change_plan
from controlplane.catalog.values import ChangePlanned
from controlplane.changesets.filtering import EVERY_SET, SetFilter
from controlplane.changesets.machine import Act, Standing, check
from controlplane.changesets.models import (
    ChangeSet,
    ChangeSetAuthor,
    ChangeSetChange,
    ChangeSetEntry,
    ChangeSetWish,
)
from controlplane.changesets.reading import (
    Key,
    entries_moved,
    entries_of,
    entries_read,
    kept_of,
    moved_of,
    row_of,
    standings_of,
    wishes_moved,
    wishes_of,
)
from controlplane.changesets.values import (
    OPEN_STATES,
    Holds,
    Moved,
    Remark,
    SetBrief,
    SetEntry,
    SetPublished,
    SetState,
    SetView,
    SetWish,
    Verdict,
)
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict, ControlPlaneError, InputInvalid, NotFound
from xdscore.codes import CATALOGUE
from xdscore.findings import Finding, Severity, has_errors
from xdscore.resource_types import by_word
from xdscore.schema import Tree

AT_ONCE = CATALOGUE["XDS3057"]
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
    wishes: tuple[SetWish, ...]
    moved: tuple[Moved, ...]
    remarks: tuple[Remark, ...]
    acts: frozenset[Act]

    @property
    def holds(self) -> Holds:
        """What the change set holds."""
        return Holds(tuple((each.type, each.name) for each in self.entries), bool(self.wishes))


@dataclass(frozen=True, slots=True)
class SetContents:
    """What a change set writes: `manifests` by type and name, without secrets, which may not be valid any more; `diff`:
    each resource beside the revision that it was made from.
    """

    manifests: Mapping[Key, dict[str, Tree]]
    diff: tuple[ResourceDifference, ...]


def change_set_environment(*, public_id: str) -> str:
    """The key of the environment of a change set. Raises NotFound."""
    return row_of(public_id).environment.key


def change_set_get(*, public_id: str) -> SetDetail:
    """A change set as it stands now. Raises NotFound."""
    row = row_of(public_id)
    remarks = _remarks(row)
    standing = standings_of([row], database_now(), approvals={row.pk: sum(each.counts for each in remarks)})[row.pk]
    entries = list(row.entries.order_by("type", "name").values_list("type", "name", "blob_id", "base"))
    wishes = wishes_of(row)
    (view,) = _views([row], {row.pk: standing}, {("entries", row.pk): len(entries), ("wishes", row.pk): len(wishes)})
    return SetDetail(
        view=view,
        entries=tuple(SetEntry(word, name, blob is None, base) for word, name, blob, base in entries),
        wishes=wishes,
        moved=moved_of(row) if standing.moved else (),
        remarks=remarks,
        acts=frozenset(act for act in Act if _is_possible(act, standing)),
    )


def change_set_contents(*, public_id: str, keys: Collection[Key] | None = None) -> SetContents:
    """What a change set writes, as everybody may read it; of `keys` alone, types and names, where that is given. Raises
    NotFound.
    """
    row = row_of(public_id)
    entries = list(entries_of(row, keys))
    manifests = {
        (each.type, each.name): manifest_of_bytes(by_word[each.type], each.name, blob_plaintext(each.blob), each.ttl_ms)
        for each in entries
        if each.blob is not None
    }
    before = contents_of_pairs(
        environment_key=row.environment.key,
        revisions={(each.type, each.name): (each.base or None, None) for each in entries},
    )
    diff = []
    for key, (stored, _) in before.items():
        old, new = manifest_of(stored) if stored is not None else None, manifests.get(key)
        if old is not None or new is not None:
            diff.append(ResourceDifference(key, old, new))
    labels = {(each.type, each.name): each.labels for each in entries}
    return SetContents({key: with_labels(each, labels[key]) for key, each in manifests.items()}, tuple(diff))


def change_set_plan(*, public_id: str, wishes: tuple[SetWish, ...]) -> tuple[ChangePlanned | None, tuple[Finding, ...]]:
    """What publishing a change set would do now, and findings; None where it could not be published at all, which the
    findings tell. `wishes`: what it does with rules and groups. Raises NotFound.
    """
    read = entries_read(row_of(public_id), wishes)
    foreseen = access_foresee(
        environment_key=read.environment,
        wishes=[each.wish for each in read.wishes],
        default=read.policy.default_effect,
    )
    if read.refused:
        return None, (*read.refused, *foreseen.findings)
    try:
        planned = change_plan(
            environment_key=read.environment,
            edits=read.edits,
            asker=None,
            terms=_OVER_HOLD,
            tables=foreseen.tables,
        )
    except InputInvalid as error:
        return None, (*(error.findings or (_finding(error),)), *foreseen.findings)
    except ControlPlaneError as error:
        return None, (_finding(error), *foreseen.findings)
    # That is about a write that is no change set.
    findings = (*(each for each in planned.findings if each.code != WriteUnreviewed.code), *foreseen.findings)
    if planned.edits and foreseen.tables is not None and read.policy.rollout.stages:
        findings = (*findings, AT_ONCE.finding(""))
    return None if has_errors(foreseen.findings) else planned, findings


def change_set_kept(*, public_id: str, keys: Sequence[Key]) -> Mapping[Key, bytes]:
    """The contents of a change set for these names, secrets included: only to fill in what an edit of the set keeps
    (`catalog.reading`). Raises NotFound.
    """
    return kept_of(row_of(public_id), frozenset(keys))


def change_sets_of(
    *,
    environment_key: str,
    states: Sequence[SetState] = (),
    wanted: SetFilter = EVERY_SET,
    after: str = "",
    limit: int = 50,
) -> SetPage:
    """One page of the change sets of an environment that meet the conditions, newest first. `states`: only those that
    stand so.
    """
    rows = ChangeSet.objects.select_related("environment").filter(environment__key=environment_key).order_by("-pk")
    rows = wanted.applied(rows)
    if states:
        rows = rows.filter(state__in=_stored_for(states))
    last = int(after) if after.isdecimal() else None
    size = _LOOKED_AT_ONCE if states else limit + 1
    found: list[SetView] = []
    now = database_now()
    # A state may follow from facts, so it is asked of rows that were read.
    while batch := list((rows.filter(pk__lt=last) if last is not None else rows)[:size]):
        standings = standings_of(batch, now)
        fitting = [row for row in batch if not states or standings[row.pk].state in states]
        room = limit - len(found)
        found += _views(fitting[:room], standings) if fitting and room else ()
        if len(fitting) > room:
            return SetPage(tuple(found), str(fitting[room - 1].pk if room else last))
        last = batch[-1].pk
    return SetPage(tuple(found), "")


def change_set_manifest(*, public_id: str, key: Key) -> tuple[SetEntry, dict[str, Tree] | None]:
    """What a change set does with one resource, and its manifest without secrets; None where it deletes it. A
    manifest may not be valid any more. Raises NotFound, also where the set does nothing with the resource.
    """
    word, name = key
    row = row_of(public_id)
    entry = row.entries.select_related("blob").filter(type=word, name=name).first()
    if entry is None:
        raise NotFound(f"{str(row).capitalize()} does nothing with the {word} '{name}'.")
    view = SetEntry(word, name, entry.blob is None, entry.base)
    if entry.blob is None:
        return view, None
    manifest = manifest_of_bytes(by_word[word], name, blob_plaintext(entry.blob), entry.ttl_ms)
    return view, with_labels(manifest, entry.labels)


def change_sets_writing(*, environment_key: str, key: Key) -> tuple[SetBrief, ...]:
    """The change sets that write or delete a resource and may still be published, newest first. One query."""
    rows = ChangeSetEntry.objects.filter(
        change_set__environment__key=environment_key,
        change_set__state__in=[each.value for each in OPEN_STATES],
        type=key[0],
        name=key[1],
    ).order_by("-change_set")
    found = rows.values_list("change_set__public_id", "change_set__title", "blob")
    return tuple(SetBrief(str(public_id), title, blob is None) for public_id, title, blob in found)


def review_counts(*, environment_keys: Sequence[str]) -> Mapping[str, int]:
    """How many change sets of each of these environments wait for review: those that are stale or expired do not. One
    query.
    """
    here = OuterRef("pk")
    moved = entries_moved(ChangeSetEntry.objects.filter(change_set=here))
    waiting = ChangeSet.objects.filter(
        Q(expires=None) | Q(expires__gt=Now()),
        ~Exists(moved),
        ~Exists(wishes_moved(ChangeSetWish.objects.filter(change_set=here))),
        environment__key__in=environment_keys,
        state=SetState.REVIEW.value,
    )
    counts = waiting.order_by().values_list("environment__key").annotate(n=Count("pk"))
    return dict.fromkeys(environment_keys, 0) | dict(counts)


def change_and_set(*, public_id: str) -> tuple[Change, SetPublished | None]:
    """The row of a change, as `catalog.selectors.change_get` has it, and the change set as which it was proposed; None
    where there was none. One query. Raises NotFound.
    """
    made = ChangeSetChange.objects.filter(change=OuterRef("pk"))
    columns = ("public_id", "title", "published_by")
    found = {f"set_{each}": Subquery(made.values(f"change_set__{each}")[:1]) for each in columns}
    row = Change.objects.select_related("environment").filter(public_id=public_id).annotate(**found).first()
    if row is None:
        raise NotFound(f"There is no change '{public_id}'.")
    made_id, title, published_by = (getattr(row, f"set_{each}") for each in columns)
    return row, SetPublished(str(made_id), title, published_by) if made_id is not None else None


def _stored_for(states: Sequence[SetState]) -> list[str]:
    """The states in the database that a change set may have which stands in one of these states."""
    derived = {SetState.STALE, SetState.EXPIRED} & set(states)
    return [each.value for each in {*states, *(OPEN_STATES if derived else ())} - {SetState.STALE, SetState.EXPIRED}]


def _is_possible(act: Act, standing: Standing) -> bool:
    try:
        check(act, standing, "")
    except Conflict:
        return False
    return True


def _views(
    rows: Sequence[ChangeSet], standings: Mapping[int, Standing], counts: Mapping[tuple[str, int], int] | None = None
) -> tuple[SetView, ...]:
    """The values of these rows, in a number of queries that does not grow. `counts`: how many entries and wishes each
    holds, by what is counted and row id, where that was read before.
    """
    authors: defaultdict[int, list[str]] = defaultdict(list)
    for author in ChangeSetAuthor.objects.filter(change_set__in=rows).order_by("pk"):
        authors[author.change_set_id].append(author.name)
    changes: defaultdict[int, list[str]] = defaultdict(list)
    made = ChangeSetChange.objects.filter(change_set__in=rows).order_by("pk")
    for change_set, change in made.values_list("change_set", "change__public_id"):
        changes[change_set].append(str(change))
    if counts is None:
        entries, wishes = _counted(ChangeSetEntry.objects.all(), rows), _counted(ChangeSetWish.objects.all(), rows)
        both = entries.annotate(of=Value("entries")).union(wishes.annotate(of=Value("wishes")), all=True)
        counts = {(of, change_set): n for change_set, n, of in both}
    return tuple(
        SetView(
            id=str(row.public_id),
            environment=row.environment.key,
            title=row.title,
            message=row.message,
            state=standings[row.pk].state,
            version=row.version,
            authors=tuple(authors[row.pk]),
            resources=counts.get(("entries", row.pk), 0),
            access=counts.get(("wishes", row.pk), 0),
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


def _counted(held: QuerySet[Any], rows: Sequence[ChangeSet]) -> QuerySet[Any]:
    """How many of what is held each of these change sets holds."""
    counted: QuerySet[Any] = (
        held.filter(change_set__in=rows).order_by().values_list("change_set").annotate(n=Count("pk"))
    )
    return counted


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
