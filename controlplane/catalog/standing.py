"""Answers what the catalogue knows of the newest revisions of a page of resources; and which are in a special state, as
sets that a list is filtered by. A bounded number of queries, whatever is asked about.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models.functions import Coalesce

from controlplane.catalog.choices import StagedState
from controlplane.catalog.models import Quarantine, Resource, Revision, StagedName

Key = tuple[str, str]
"""The word of a type, and a resource's name."""


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """A quarantine of a revision; it is open while `released_at` is None."""

    reason: str
    opened_at: datetime
    released_at: datetime | None


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The newest revision of a resource.

    `generation`: that of the change that wrote it.
    `covered`: a build has read it.
    `acknowledged_at`: when a client first acknowledged it; None: no client has.
    `fallback`: the number of an earlier revision that clients acknowledged; 0 without one.
    `quarantine`: the last quarantine of the revision, open or released; None without one.
    `staged`: set where the revision is not what the stable side has; `stable`: the number of the revision that it has
        instead, 0 where that is nothing.
    """

    revision: int
    version: str
    generation: int
    covered: bool
    written_at: datetime
    acknowledged_at: datetime | None
    fallback: int
    quarantine: QuarantineRow | None
    staged: StagedState | None = None
    stable: int = 0


def heads_of(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, HeadRow]:
    """The newest revision of each of these resources, by type and name; those that do not exist are left out. Two
    queries.
    """
    wanted = set(keys)
    rows = Resource.objects.filter(
        environment__key=environment_key,
        deleted=False,
        type__in={word for word, _ in wanted},
        name__in={name for _, name in wanted},
    ).values_list(
        *("type", "name", "counter", "environment__built_generation", "head", "head__version"),
        *("head__change__generation", "head__at", "head__proof__at", "proven", "proven__number"),
        *("staged__state", "staged__stable__number", "staged__stable__blob"),
    )
    found = {(row[0], row[1]): row[2:] for row in rows if (row[0], row[1]) in wanted}
    quarantines = _quarantines([head for _, _, head, *_ in found.values()])
    return {
        key: HeadRow(
            revision=number,
            version=version,
            generation=generation,
            covered=generation <= built,
            written_at=at,
            acknowledged_at=acknowledged,
            fallback=proven_number or 0 if proven != head else 0,
            quarantine=quarantines.get(head),
            staged=StagedState(staged) if staged is not None else None,
            stable=stable if stable is not None and before is not None else 0,
        )
        for key, (
            number, built, head, version, generation, at, acknowledged, proven, proven_number, staged, stable, before
        ) in found.items()
    }  # fmt: skip


def in_quarantine() -> models.QuerySet[Quarantine]:
    """The open quarantines of all environments. There are few; a query for one environment alone would make the
    database begin with all of its resources.
    """
    return Quarantine.objects.filter(released_at=None)


def on_their_way() -> models.QuerySet[StagedName]:
    """The names of all environments whose newest revision waits for a rollout, or is in the open one. There are few; a
    query for one environment alone would make the database begin with all of its resources.
    """
    return StagedName.objects.filter(state__in=(StagedState.WAITING.value, StagedState.CANDIDATE.value))


def staged_counts() -> Mapping[StagedState, int]:
    """How many names of all environments are staged, by how far they have come."""
    rows = StagedName.objects.order_by().values_list("state").annotate(count=models.Count("pk"))
    counted = dict(rows)
    return {state: counted.get(state.value, 0) for state in StagedState}


def revisions_unbuilt(*, environment_keys: Collection[str]) -> models.QuerySet[Revision]:
    """The revisions of these environments that were written since the last build."""
    return Revision.objects.filter(
        change__environment__key__in=list(environment_keys),
        change__generation__gt=models.F("change__environment__built_generation"),
    )


def rows_named_like(rows: models.QuerySet[Any], *, version: str = "") -> models.QuerySet[Any, int]:
    """The row ids of the resources that exist under the `environment`, `type` and `name` of these rows; 0 for a row
    without one.

    `version`: the field of the rows that must also equal the version of the resource's newest revision; empty: none.
    """
    same = Resource.objects.filter(
        environment=models.OuterRef("environment"),
        type=models.OuterRef("type"),
        name=models.OuterRef("name"),
        deleted=False,
    )
    if version:
        same = same.filter(head__version=models.OuterRef(version))
    # No row is number 0. A NULL among them would make "is in none of these" true of nothing.
    found: models.QuerySet[Any] = rows.annotate(resource=Coalesce(models.Subquery(same.values("pk")[:1]), 0))
    return found.values_list("resource", flat=True)


def _quarantines(revisions: Collection[int]) -> Mapping[int, QuarantineRow]:
    """The last quarantine of each of these revisions, open or released, by the revision's row id; revisions that never
    were in quarantine are left out.
    """
    rows = Quarantine.objects.filter(revision__in=revisions).order_by("pk")
    found = rows.values_list("revision", "reason", "opened_at", "released_at")
    return {revision: QuarantineRow(reason, opened, released) for revision, reason, opened, released in found}
