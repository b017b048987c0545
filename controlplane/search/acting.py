"""Finds what a command is about: incidents with a quarantine form, and changes by their number or id."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet

from controlplane.catalog.models import Change, Quarantine
from controlplane.incidents.models import Incident
from controlplane.incidents.values import UNRESOLVED, IncidentCause
from controlplane.search.sources import SOURCES, Sight
from controlplane.search.values import Kind

_CHANGES = next(each for each in SOURCES if each.kind is Kind.CHANGE)


@dataclass(frozen=True, slots=True)
class Refused:
    """An incident about a revision of a resource that clients refuse."""

    id: str
    environment: str
    type: str
    name: str
    revision: int


def incidents_to_quarantine(
    *, environment_keys: Collection[str], name: str, word: str = "", limit: int
) -> tuple[Refused, ...]:
    """The incidents of these environments in which a revision can be quarantined, of resources whose name contains
    `name`, by name. `word`: only of this type. One query.
    """
    rows = _about(environment_keys, name, word).filter(state__in=[each.value for each in UNRESOLVED])
    return _refused(rows.exclude(Exists(_open())), limit)


def incidents_to_release(
    *, environment_keys: Collection[str], name: str, word: str = "", limit: int
) -> tuple[Refused, ...]:
    """The incidents of these environments whose revision is quarantined, and can be released, of resources whose name
    contains `name`, by name. `word`: only of this type. One query.
    """
    return _refused(_about(environment_keys, name, word).filter(Exists(_open())), limit)


def changes_called(*, sight: Sight, called: str, limit: int) -> tuple[Change, ...]:
    """The newest changes that somebody may see, of which `called` is the number, or begins the id. One query."""
    rows = Change.objects.filter(_CHANGES.called(called), environment__key__in=sight.keys)
    return tuple(rows.select_related("environment").order_by("-pk")[:limit])


def _about(environment_keys: Collection[str], name: str, word: str) -> "QuerySet[Incident]":
    rows = Incident.objects.filter(
        environment__key__in=list(environment_keys),
        cause=IncidentCause.NACK.value,
        revision__gt=0,
        name__icontains=name,
    )
    return rows.filter(type=word) if word else rows


def _open() -> "QuerySet[Quarantine]":
    return Quarantine.objects.filter(
        released_at=None,
        revision__number=OuterRef("revision"),
        revision__resource__environment=OuterRef("environment"),
        revision__resource__type=OuterRef("type"),
        revision__resource__name=OuterRef("name"),
    )


def _refused(rows: "QuerySet[Incident]", limit: int) -> tuple[Refused, ...]:
    columns = ("public_id", "environment__key", "type", "name", "revision")
    found = rows.order_by("name", "-last_at", "-pk").values_list(*columns)[:limit]
    return tuple(Refused(str(public_id), key, word, name, revision) for public_id, key, word, name, revision in found)
