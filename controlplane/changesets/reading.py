"""Reads what change sets are: rows to values, and entries to the edits that they stand for."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet, Subquery, Value
from django.db.models.expressions import OuterRef
from django.db.models.functions import Coalesce

from controlplane.catalog.models import Resource
from controlplane.catalog.review import review_stored
from controlplane.catalog.selectors import blob_plaintext
from controlplane.catalog.services import parsed_again
from controlplane.catalog.values import Delete, Edit, Put
from controlplane.changesets.machine import Standing
from controlplane.changesets.models import ChangeSet, ChangeSetEntry, ChangeSetRemark
from controlplane.changesets.values import Moved, SetState, Verdict
from controlplane.common.errors import NotFound
from xdscore.codes import shown
from xdscore.findings import Finding
from xdscore.resource_types import by_word
from xdscore.schema import ParsedResource, Refused

Key = tuple[str, str]


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


def standings_of(rows: Sequence[ChangeSet], now: datetime) -> Mapping[int, Standing]:
    """How each of these change sets stands at `now`, by row id. Two queries."""
    moved = Counter(_moved(rows).values_list("change_set", flat=True))
    approved = ChangeSetRemark.objects.filter(
        change_set__in=rows, verdict=Verdict.APPROVED.value, version=F("change_set__version")
    )
    approvals = Counter(approved.values_list("change_set", flat=True))
    return {
        row.pk: Standing(
            stored=SetState(row.state),
            moved=moved[row.pk],
            is_over=row.expires is not None and row.expires <= now,
            approvals=approvals[row.pk],
            review=review_stored(row.environment.review),
        )
        for row in rows
    }


def moved_of(row: ChangeSet) -> tuple[Moved, ...]:
    """The resources of a change set that were written since it was made, by type and name."""
    rows: QuerySet[Any] = _moved([row]).order_by("type", "name")
    found = rows.values_list("type", "name", "base", "now", "by", "with_change")
    return tuple(Moved(word, name, base, now, by, str(change)) for word, name, base, now, by, change in found)


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


@dataclass(frozen=True, slots=True)
class EntriesRead:
    """What the entries of a change set say by the rules of today: their edits, the resources among them, and findings
    about contents that are not valid any more. `environment`: the key; `bases`: the revision that each was made from,
    by type and name, 0 for none.
    """

    edits: tuple[Edit, ...]
    parsed: tuple[ParsedResource, ...]
    refused: tuple[Finding, ...]
    environment: str
    bases: Mapping[Key, int]


def entries_read(row: ChangeSet) -> EntriesRead:
    """The edits that a change set stands for, secrets included."""
    edits: list[Edit] = []
    parsed: list[ParsedResource] = []
    refused: list[Finding] = []
    bases: dict[Key, int] = {}
    for entry in _entries(row):
        bases[entry.type, entry.name] = entry.base
        if entry.blob is None:
            edits.append(Delete(by_word[entry.type], entry.name, missing_ok=True))
            continue
        result = parsed_again(entry.blob, entry.type, entry.name, ttl_ms=entry.ttl_ms)
        if isinstance(result, Refused):
            refused += [each.about(entry.type, entry.name) for each in result.findings]
        else:
            parsed.append(result)
            edits.append(Put(result))
    return EntriesRead(tuple(edits), tuple(parsed), tuple(refused), row.environment.key, bases)


def kept_of(row: ChangeSet, keys: Collection[Key]) -> Mapping[Key, bytes]:
    """The contents of a change set's entries for these names, secrets included, as `catalog.reading` fills secrets in
    from them.
    """
    return {
        (entry.type, entry.name): blob_plaintext(entry.blob)
        for entry in _entries(row)
        if entry.blob is not None and (entry.type, entry.name) in keys
    }


def _entries(row: ChangeSet) -> Iterator[ChangeSetEntry]:
    yield from row.entries.select_related("blob").order_by("type", "name").iterator(chunk_size=200)
