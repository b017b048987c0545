"""Answers which incidents there are, the most urgent first, and what happened to one. Values only, never rows.

For the pages: a list is ranked over the newest 2,000 incidents, of which at most 1,000 per environment are unresolved
refusals that are told apart (`incidents_per_environment`), and read by pages.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Q, QuerySet

from controlplane.catalog.contents import contents_of_revisions
from controlplane.catalog.manifests import manifest_of
from controlplane.catalog.selectors import revision_list
from controlplane.clients.clock import database_now
from controlplane.common.errors import NotFound
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.filtering import EVERY_INCIDENT, IncidentFilter
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import Impact, IncidentDetail, assignee_of, mute_of
from controlplane.incidents.urgency import urgency
from controlplane.incidents.values import CROWDED, UNRESOLVED, Assignee, IncidentCause, IncidentState, Mute
from controlplane.journal.models import AuditEvent
from controlplane.journal.selectors import audit_list
from xdscore.client_kinds import ClientFamily
from xdscore.resource_types import by_word
from xdscore.schema.differences import unified_text

_MAX_RANKED: Final = 2_000
_MAX_EVENTS: Final = 50
# By the word of an order: the columns, the last of which no two rows have in common.
INCIDENT_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name", "type", "pk"),
    "clients": ("nacked", "pk"),
    "state": ("state", "pk"),
    "first": ("first_at", "pk"),
    "last": ("last_at", "pk"),
}


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An incident in a list. `sentence`: the client's own words, with harmful characters escaped. For a loss it is a
    sentence of Parley's, and `impact` counts who lost something, of all that were connected.
    """

    id: str
    cause: IncidentCause
    environment: str
    type: str
    name: str
    state: IncidentState
    confidence: Confidence
    family: ClientFamily
    sentence: str
    impact: Impact
    change: str
    author: str
    assignee: Assignee | None
    mute: Mute | None
    revision: int
    opened_epoch: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between the last acknowledged revision and the refused one.

    `before`: the number of the acknowledged one; None where no client ever acknowledged one. `after`: of the refused
        one.
    `text`: a unified diff; empty where both are equal.
    `taken`: whether some clients acknowledged the refused revision.
    """

    before: int | None
    after: int
    text: str
    taken: bool = False


def incident_page(
    *,
    environment_keys: Collection[str],
    states: Collection[IncidentState] = UNRESOLVED,
    wanted: IncidentFilter = EVERY_INCIDENT,
    text: str = "",
    order: str = "",
    falls: bool = True,
    offset: int = 0,
    limit: int = 50,
) -> tuple[tuple[IncidentRow, ...], int]:
    """One page of the incidents of these environments, the most urgent first or in the order with this word in
    INCIDENT_ORDERS, and the number of incidents on all pages. Three queries at
    most.

    Only those in these `states` that meet the conditions `wanted` and contain `text` in their resource, words or id.
    """
    rows = Incident.objects.filter(
        environment__key__in=list(environment_keys), state__in=[state.value for state in states]
    )
    rows = wanted.applied(rows)
    if text:
        rows = rows.filter(_holding(text))
    if order:
        columns = [f"-{each}" if falls else each for each in INCIDENT_ORDERS[order]]
        count = rows.count()
        shown = list(rows.order_by(*columns).values_list("pk", flat=True)[offset : offset + limit])
    else:
        ranked = _ranked(rows)
        count, shown = len(ranked), ranked[offset : offset + limit]
    read = {row.pk: row for row in Incident.objects.select_related("environment").filter(pk__in=shown)}
    # One may have been deleted with its environment in between.
    return tuple(_row(read[pk]) for pk in shown if pk in read), count


def incident_state_counts(
    *, environment_keys: Collection[str], cause: IncidentCause | None = None
) -> Mapping[IncidentState, int]:
    """The number of incidents of these environments in each state. `cause`: only incidents with it; None: all."""
    rows = Incident.objects.filter(environment__key__in=list(environment_keys))
    rows = rows.filter(cause=cause.value) if cause is not None else rows
    counts = dict(rows.values_list("state").annotate(count=Count("pk")))
    return {state: counts.get(state.value, 0) for state in IncidentState}


def incident_difference(detail: IncidentDetail) -> Difference | None:
    """The difference between the last acknowledged revision and the refused one, where the catalogue knows both; None
    where no culprit is known.
    """
    if not detail.revision or not detail.incident.name:
        return None
    environment, kind, name = detail.incident.environment, by_word[detail.incident.type], detail.incident.name
    try:
        history = revision_list(environment_key=environment, kind=kind, name=name)
    except NotFound:
        return None
    proven = history.filter(number__lte=detail.revision, proof__isnull=False)
    good = [row.number for row in proven[:2]]
    before = next((number for number in good if number < detail.revision), None)
    numbers = [number for number in (before, detail.revision) if number is not None]
    found = contents_of_revisions(environment_key=environment, kind=kind, name=name, numbers=numbers)
    if detail.revision not in found:
        return None
    old = manifest_of(found[before]) if before is not None and before in found else None
    text = unified_text(name, old, manifest_of(found[detail.revision]))
    return Difference(before, detail.revision, text, taken=detail.revision in good)


def incident_events(detail: IncidentDetail) -> Sequence[AuditEvent]:
    """The audit entries about an incident, and those about its resource since the incident began; newest first, at most
    50.
    """
    incident = detail.incident
    subjects = [incident.id, f"{incident.type}/{incident.name}"] if incident.name else [incident.id]
    return audit_list(environments=[incident.environment], subjects=subjects, since=detail.first_at, limit=_MAX_EVENTS)


def _ranked(rows: QuerySet[Incident]) -> list[int]:
    """The ids of the newest of these rows, the most urgent first."""
    now = database_now()
    found = list(rows.order_by("-last_at").values_list("pk", "nacked", "sent", "last_at", "cause")[:_MAX_RANKED])
    found.sort(key=lambda row: (-_urgency(*row[1:], now=now), -row[0]))
    return [pk for pk, *_ in found]


def _urgency(nacked: int, sent: int, last_at: datetime, cause: str, *, now: datetime) -> float:
    return urgency(nacked=nacked, sent=sent, age=now - last_at, lost=cause == IncidentCause.LOSS)


def _holding(text: str) -> Q:
    return (
        Q(name__icontains=text)
        | Q(message__icontains=text)
        | Q(normalised__icontains=text)
        | Q(public_id__startswith=text[:36])
        | Q(assignee__icontains=text)
    )


def _row(row: Incident) -> IncidentRow:
    return IncidentRow(
        id=str(row.public_id),
        cause=IncidentCause(row.cause),
        environment=row.environment.key,
        type=row.type,
        name=row.name,
        state=IncidentState(row.state),
        confidence=Confidence(row.confidence),
        family=ClientFamily(row.family),
        # Those that are not told apart any more have no words in common.
        sentence=CROWDED if row.normalised == CROWDED else row.message or row.normalised,
        impact=Impact(row.nacked, row.sent),
        change=row.change,
        author=row.author,
        assignee=assignee_of(row),
        mute=mute_of(row),
        revision=row.revision,
        opened_epoch=row.opened_epoch,
        first_at=row.first_at,
        last_at=row.last_at,
    )
