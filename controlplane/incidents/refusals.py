"""Answers which of a page of resources clients refuse: by open incidents, so that it stays so when they leave."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, F, Q, QuerySet

from controlplane.catalog.standing import Key
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.values import UNRESOLVED, IncidentCause, IncidentState

_MAX_UNNAMED: Final = 100  # looked through for suspects, the newest ones


@dataclass(frozen=True, slots=True)
class OpenRefusal:
    """An open incident about a resource: since `first_at`, `clients` of the `sent` clients that were sent `revision`
    refuse it.

    `revision` is 0 where the incident names no resource.
    """

    incident: str
    clients: int
    sent: int
    revision: int
    first_at: datetime


@dataclass(frozen=True, slots=True)
class Refusals:
    """The open incidents about a resource, of each sort the one with most clients, or None.

    `current`: about the content that was asked for.
    `earlier`: about another content of the resource.
    `suspicion`: about a response in which this content is one of several suspects.
    """

    current: OpenRefusal | None = None
    earlier: OpenRefusal | None = None
    suspicion: OpenRefusal | None = None


NO_REFUSALS: Final = Refusals()


def refusals_of(*, environment_key: str, versions: Mapping[Key, str]) -> Mapping[Key, Refusals]:
    """The open incidents about each of these resources, by (type, name); resources without any are left out.
    `versions`: the version on the wire of the content that is asked about.

    Two or three queries. A client that is in several incidents about one content, because clients refuse it in
    different words, is counted once.
    """
    named = _open([environment_key]).filter(
        type__in={word for word, _ in versions}, name__in={name for _, name in versions}
    )
    current: dict[Key, list[Incident]] = {}
    earlier: dict[Key, list[Incident]] = {}
    for row in named.exclude(name="").order_by("-nacked", "-last_at"):
        key = (row.type, row.name)
        if key in versions:
            (current if row.version == versions[key] else earlier).setdefault(key, []).append(row)
    suspicions = _suspicions(environment_key, versions)
    distinct = _distinct_clients([row for rows in (*current.values(), *earlier.values()) if rows[1:] for row in rows])
    return {
        key: Refusals(
            _worst(current.get(key, ()), distinct), _worst(earlier.get(key, ()), distinct), suspicions.get(key)
        )
        for key in current.keys() | earlier.keys() | suspicions.keys()
    }


def incidents_open_named(*, environment_keys: Collection[str] | None = None) -> QuerySet[Incident]:
    """The rows of open incidents about refusals that name a resource, in these environments (None: in all), for queries
    that filter by them.
    """
    return _open(environment_keys).exclude(name="")


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """How many unresolved incidents of an environment name no single resource. `losses`: those about what connected
    clients lost; `unnamed`: those about refusals whose culprit is not known. `unattended`: how many of all sorts nobody
    looks after yet.
    """

    losses: int = 0
    unnamed: int = 0
    unattended: int = 0


NOTHING_OPEN: Final = OpenCounts()


def open_counts(*, environment_keys: Collection[str]) -> Mapping[str, OpenCounts]:
    """The counts for each environment, by key; an environment without such incidents is left out. One query."""
    rows = _unresolved(environment_keys).order_by().values_list("environment__key")
    losing, refusing = Q(cause=IncidentCause.LOSS.value), Q(cause=IncidentCause.NACK.value, name="")
    counted = rows.annotate(
        losses=Count("pk", filter=losing),
        unnamed=Count("pk", filter=refusing),
        unattended=Count("pk", filter=Q(state=IncidentState.OPEN.value)),
    )
    return {key: OpenCounts(*counts) for key, *counts in counted}


def _open(environment_keys: Collection[str] | None) -> QuerySet[Incident]:
    return _unresolved(environment_keys).filter(cause=IncidentCause.NACK.value)


def _unresolved(environment_keys: Collection[str] | None) -> QuerySet[Incident]:
    rows = Incident.objects.filter(state__in=[state.value for state in UNRESOLVED])
    return rows if environment_keys is None else rows.filter(environment__key__in=list(environment_keys))


def _suspicions(environment_key: str, versions: Mapping[Key, str]) -> Mapping[Key, OpenRefusal]:
    rows = _open([environment_key]).filter(name="", type__in={word for word, _ in versions}).order_by("-last_at")
    found: dict[Key, OpenRefusal] = {}
    for row in rows[:_MAX_UNNAMED]:
        for name, version in row.suspects:
            if versions.get((row.type, name)) == version:
                found.setdefault((row.type, name), _value(row, row.nacked))
    return found


def _distinct_clients(rows: Collection[Incident]) -> Mapping[tuple[str, str, str], int]:
    """The number of different clients that refuse a content, over all its incidents, by type, name and version."""
    if not rows:
        return {}
    refusing = IncidentClient.objects.filter(incident__in=rows, revision=F("incident__revision"))
    counted = refusing.order_by().values_list("incident__type", "incident__name", "incident__version")
    return {
        (word, name, version): clients
        for word, name, version, clients in counted.annotate(clients=Count("client", distinct=True))
    }


def _worst(rows: Collection[Incident], distinct: Mapping[tuple[str, str, str], int]) -> OpenRefusal | None:
    """The first of these incidents, which are about one resource, with the number of all clients that refuse the same
    content (`distinct`); None where there are no incidents.
    """
    first = next(iter(rows), None)
    if first is None:
        return None
    clients = max(first.nacked, distinct.get((first.type, first.name, first.version), 0))
    sent = max(row.sent for row in rows if row.version == first.version)
    return _value(first, clients, sent)


def _value(row: Incident, clients: int, sent: int = 0) -> OpenRefusal:
    # Whoever refused was sent it, whether or not that was recorded yet.
    return OpenRefusal(str(row.public_id), clients, max(sent, row.sent, clients), row.revision, row.first_at)
