"""Reads what change sets are: rows to values, and entries to the edits that they stand for."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Case, Count, F, QuerySet, Subquery, Value, When
from django.db.models.expressions import OuterRef
from django.db.models.functions import Coalesce

from controlplane.access.choices import EditSubject
from controlplane.access.models import AccessEdit, AccessRule, ClientGroup
from controlplane.access.steps import group_of, rule_of
from controlplane.access.values import GroupDraft, RuleDraft, Wish
from controlplane.catalog.models import Resource
from controlplane.catalog.review import review_stored
from controlplane.catalog.selectors import blob_plaintext, environment_state
from controlplane.catalog.services import parsed_again
from controlplane.catalog.values import Delete, Edit, EnvironmentPolicy, Put
from controlplane.changesets.machine import Standing
from controlplane.changesets.models import ChangeSet, ChangeSetEntry, ChangeSetRemark, ChangeSetWish
from controlplane.changesets.values import ACCESS_WORDS, Holds, Moved, SetState, SetWish, Verdict
from controlplane.common.errors import NotFound
from xdscore.codes import shown
from xdscore.findings import Finding
from xdscore.resource_types import by_word
from xdscore.schema import ParsedResource, Refused

# As many names as both databases take in one statement without thinking about it.
_NAMED: Final = 500

Key = tuple[str, str]
"""A type's word and a name; for a rule or group, its word and name (`ACCESS_WORDS`)."""


def row_of(public_id: str) -> ChangeSet:
    """The row of the change set with this public id, with its environment. Raises NotFound, also for a text that is no
    id.
    """
    try:
        wanted = UUID(public_id)
    except ValueError:
        wanted = None
    rows = ChangeSet.objects.select_related("environment")
    row = rows.filter(public_id=wanted).first() if wanted is not None else None
    if row is None:
        raise NotFound(f"There is no change set '{shown(public_id, 64)}'.")
    return row


def standings_of(
    rows: Sequence[ChangeSet], now: datetime, *, approvals: Mapping[int, int] | None = None
) -> Mapping[int, Standing]:
    """How each of these change sets stands at `now`, by row id. `approvals`: how many of each count, by row id, where
    that was read before. Two queries at most.
    """
    wishes = _wishes_moved(rows).values_list("change_set", flat=True)
    moved = Counter(_moved(rows).values_list("change_set", flat=True).union(wishes, all=True))
    if approvals is None:
        approved = ChangeSetRemark.objects.filter(
            change_set__in=rows, verdict=Verdict.APPROVED.value, version=F("change_set__version")
        )
        approvals = Counter(approved.values_list("change_set", flat=True))
    return {
        row.pk: Standing(
            stored=SetState(row.state),
            moved=moved[row.pk],
            is_over=row.expires is not None and row.expires <= now,
            approvals=approvals.get(row.pk, 0),
            review=review_stored(row.environment.review),
        )
        for row in rows
    }


def moved_of(row: ChangeSet) -> tuple[Moved, ...]:
    """What of a change set was written since it was made: resources by type and name, then groups and rules."""
    columns = ("name", "base", "now", "by", "with_change")
    of_resources: QuerySet[Any] = _moved([row]).order_by("type", "name")
    of_access: QuerySet[Any] = _wishes_moved([row]).order_by("subject", "pk")
    found = (*of_resources.values_list("type", *columns), *of_access.values_list("subject", *columns))
    return tuple(
        Moved(word, name, base, now, by or "", str(change or "")) for word, name, base, now, by, change in found
    )


def _moved(rows: Sequence[ChangeSet]) -> QuerySet[ChangeSetEntry]:
    return entries_moved(ChangeSetEntry.objects.filter(change_set__in=rows))


def entries_moved(entries: QuerySet[ChangeSetEntry]) -> QuerySet[ChangeSetEntry]:
    """The entries among `entries` whose resource is at another revision than they were made from; none of a set that
    was published, which moved them itself.
    """
    stored = Resource.objects.filter(
        environment=OuterRef("change_set__environment"), type=OuterRef("type"), name=OuterRef("name")
    )
    return (
        entries.exclude(change_set__state=SetState.PUBLISHED.value)
        .annotate(
            now=Coalesce(Subquery(stored.filter(deleted=False).values("counter")[:1]), Value(0)),
            by=Subquery(stored.values("head__change__author")[:1]),
            with_change=Subquery(stored.values("head__change__public_id")[:1]),
        )
        .exclude(now=F("base"))
    )


def _wishes_moved(rows: Sequence[ChangeSet]) -> QuerySet[ChangeSetWish]:
    return wishes_moved(ChangeSetWish.objects.filter(change_set__in=rows))


def wishes_moved(wishes: QuerySet[ChangeSetWish]) -> QuerySet[ChangeSetWish]:
    """The wishes among `wishes` whose rule or group was written since they were made, as `entries_moved`. A group to be
    made is moved where there is one of its key by now.
    """
    here = OuterRef("change_set__environment")
    rules = AccessRule.objects.filter(environment=here, pk=OuterRef("subject_id"))
    groups = ClientGroup.objects.filter(environment=here)
    by_id, by_key = groups.filter(pk=OuterRef("subject_id")), groups.filter(key=OuterRef("name"))
    stored = Case(
        When(subject=EditSubject.RULE.value, then=Subquery(rules.values("pk")[:1])),
        When(subject_id=None, then=Subquery(by_key.values("pk")[:1])),
        default=Subquery(by_id.values("pk")[:1]),
    )
    edits = AccessEdit.objects.filter(subject=OuterRef("subject"), subject_id=OuterRef("stored")).order_by()
    last = AccessEdit.objects.filter(subject=OuterRef("subject"), subject_id=OuterRef("any_id")).order_by("-pk")
    return (
        wishes.exclude(change_set__state=SetState.PUBLISHED.value)
        .annotate(stored=stored)
        .annotate(
            now=Coalesce(Subquery(edits.values("subject_id").annotate(n=Count("pk")).values("n")), Value(0)),
            any_id=Coalesce("stored", "subject_id"),
        )
        .exclude(now=F("base"))
        .annotate(
            by=Subquery(last.values("change__author")[:1]), with_change=Subquery(last.values("change__public_id")[:1])
        )
    )


def wishes_of(row: ChangeSet) -> tuple[SetWish, ...]:
    """What a change set does with rules and groups: groups first, then rules, in the order in which they were added."""
    return tuple(
        SetWish(Wish(EditSubject(each.subject), each.name, each.subject_id, _draft_of(each)), each.base, each.before)
        for each in row.wishes.order_by("subject", "pk")
    )


def has_name(row: ChangeSet, key: Key) -> bool:
    """Whether a change set does anything with this resource, rule or group."""
    word, name = key
    of_access = word in ACCESS_WORDS
    return (
        row.wishes.filter(subject=word, name=name) if of_access else row.entries.filter(type=word, name=name)
    ).exists()


def holds_of(row: ChangeSet) -> Holds:
    """What a change set holds. Two queries."""
    return Holds(tuple(row.entries.values_list("type", "name")), row.wishes.exists())


def _draft_of(row: ChangeSetWish) -> RuleDraft | GroupDraft | None:
    if row.draft is None:
        return None
    return rule_of(row.draft) if row.subject == EditSubject.RULE.value else group_of(row.draft)


@dataclass(frozen=True, slots=True)
class EntriesRead:
    """What the entries of a change set say by the rules of today: their edits, the resources among them, and findings
    about contents that are not valid any more. `environment`: the key; `bases`: the revision that each was made from,
    by type and name, 0 for none; `wishes`: what it does with rules and groups; `policy`: that of the environment.
    """

    edits: tuple[Edit, ...]
    parsed: tuple[ParsedResource, ...]
    refused: tuple[Finding, ...]
    environment: str
    bases: Mapping[Key, int]
    wishes: tuple[SetWish, ...]
    policy: EnvironmentPolicy


def entries_read(row: ChangeSet, wishes: tuple[SetWish, ...] | None = None) -> EntriesRead:
    """The edits that a change set stands for, secrets included. `wishes`: what it does with rules and groups, where
    that was read already.
    """
    edits: list[Edit] = []
    parsed: list[ParsedResource] = []
    refused: list[Finding] = []
    bases: dict[Key, int] = {}
    for entry in entries_of(row):
        bases[entry.type, entry.name] = entry.base
        if entry.blob is None:
            edits.append(Delete(by_word[entry.type], entry.name, missing_ok=True))
            continue
        result = parsed_again(entry.blob, entry.type, entry.name, ttl_ms=entry.ttl_ms)
        if isinstance(result, Refused):
            refused += [each.about(entry.type, entry.name) for each in result.findings]
        else:
            result = replace(result, labels=entry.labels)
            parsed.append(result)
            edits.append(Put(result))
    return EntriesRead(
        tuple(edits),
        tuple(parsed),
        tuple(refused),
        row.environment.key,
        bases,
        wishes_of(row) if wishes is None else wishes,
        environment_state(row.environment).policy,
    )


def kept_of(row: ChangeSet, keys: Collection[Key]) -> Mapping[Key, bytes]:
    """The contents of a change set's entries for these names, secrets included, as `catalog.reading` fills secrets in
    from them.
    """
    return {
        (entry.type, entry.name): blob_plaintext(entry.blob)
        for entry in entries_of(row, keys)
        if entry.blob is not None
    }


def entries_of(row: ChangeSet, keys: Collection[Key] | None = None) -> Iterator[ChangeSetEntry]:
    """The rows of a change set's entries with their contents, by type and name; of `keys` alone, where it is given."""
    rows = row.entries.select_related("blob").order_by("type", "name")
    if keys is not None and len(keys) <= _NAMED:
        rows = rows.filter(name__in={name for _, name in keys})
    for entry in rows.iterator(chunk_size=200):
        if keys is None or (entry.type, entry.name) in keys:
            yield entry
