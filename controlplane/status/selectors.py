"""Answers how each of a page of resources stands, and which resources stand so. Values only, never rows.

Nothing of it is kept: it is read from the catalogue, the newest build and the open incidents each time, in a number of
queries that does not grow with the page.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from controlplane.builder.selectors import HeldName, covered_at, held_names, held_rows
from controlplane.catalog.models import Resource
from controlplane.catalog.standing import (
    HeadRow,
    Key,
    QuarantineRow,
    heads_in_quarantine,
    heads_of,
    heads_unbuilt,
    rows_named_like,
)
from controlplane.incidents.refusals import NO_REFUSALS, OpenRefusal, Refusals, incidents_open_named, refusals_of
from controlplane.status.derivation import status_of
from controlplane.status.values import Facts, HeldBack, Quarantine, Refusal, ResourceStatus, Status


@dataclass(frozen=True, slots=True)
class Standing:
    """How a resource stands; `held`: why the newest build does not serve it as written, with its findings."""

    status: ResourceStatus
    held: HeldName | None


def standings_of(*, environment_key: str, keys: Collection[Key]) -> Mapping[Key, Standing]:
    """How those of these resources stand that are there, by (type word, name). At most seven queries."""
    heads = heads_of(environment_key=environment_key, keys=keys)
    held = held_names(environment_key=environment_key, keys=heads.keys())
    covered = covered_at(environment_key=environment_key, generations={head.generation for head in heads.values()})
    versions = {key: head.version for key, head in heads.items()}
    refusals = refusals_of(environment_key=environment_key, versions=versions)
    return {
        key: Standing(
            status_of(_facts(head, covered.get(head.generation), held.get(key), refusals.get(key, NO_REFUSALS))),
            held.get(key),
        )
        for key, head in heads.items()
    }


def with_status(rows: QuerySet[Resource], *, environment_key: str, status: Status) -> QuerySet[Resource]:
    """Those of an environment's resources that stand so, as `derivation.status_of` says it of each.

    The database makes sets of what is in trouble, of which there is little, and looks each row up in them: the cost
    does not grow with the number of sound resources beyond that of reading them.
    """
    quarantined = Q(head__in=heads_in_quarantine(environment_key=environment_key))
    unbuilt = Q(head__in=heads_unbuilt(environment_key=environment_key))
    refused = Q(pk__in=rows_named_like(incidents_open_named(environment_key=environment_key), version="version"))
    held, rejected = _held(environment_key), _held(environment_key, rejected=True)
    out_of_service = quarantined & rejected & ~unbuilt
    match status:
        case Status.QUARANTINED:
            return rows.filter(out_of_service & _held(environment_key, rejected=True, served=True))
        case Status.WITHHELD:
            return rows.filter(out_of_service & _held(environment_key, rejected=True, served=False))
        case Status.REFUSED:
            return rows.filter(refused & ~out_of_service)
        case Status.WAITING:
            return rows.filter(~refused & (unbuilt | (quarantined & ~rejected) | (rejected & ~quarantined)))
        case Status.STALLED:
            return rows.filter(~refused & ~unbuilt & ~quarantined & _held(environment_key, rejected=False))
        case Status.PUBLISHED:
            return rows.filter(~refused & ~unbuilt & ~quarantined & ~held)


def _held(environment_key: str, *, rejected: bool | None = None, served: bool | None = None) -> Q:
    return Q(pk__in=rows_named_like(held_rows(environment_key=environment_key, rejected=rejected, served=served)))


def _facts(head: HeadRow, covered: datetime | None, held: HeldName | None, refusals: Refusals) -> Facts:
    """`covered`: when its build ended; one whose record is forgotten followed the writing within seconds."""
    quarantine = head.quarantine
    return Facts(
        revision=head.revision,
        written_at=head.written_at,
        covered_at=(covered or head.written_at) if head.covered else None,
        acknowledged_at=head.acknowledged_at,
        fallback=head.fallback,
        quarantine=_quarantine(quarantine, held) if quarantine is not None and quarantine.released_at is None else None,
        released_at=quarantine.released_at if quarantine is not None else None,
        held=HeldBack(held.reason, held.served, held.rejected, held.since or head.written_at) if held else None,
        refusal=_refusal(refusals.current),
        earlier=_refusal(refusals.earlier),
        suspicion=_refusal(refusals.suspicion),
    )


def _quarantine(row: QuarantineRow, held: HeldName | None) -> Quarantine:
    """What is withheld from some kinds of clients only is `withheld`; `with_status` finds it by its row among the held
    names, which says that nothing is served in its place.
    """
    return Quarantine(row.reason, row.opened_at, withheld_from=held.kinds if held is not None else ())


def _refusal(found: OpenRefusal | None) -> Refusal | None:
    if found is None:
        return None
    return Refusal(found.incident, found.clients, found.sent, found.revision, found.first_at)
