"""Answers what clients refuse, and what they lost by a change. Values only, never rows.

For the REST API (interfaces.md sections 4 and 7): `GET /incidents` is `incident_list`, each an `IncidentValue` whose
fields are the body's, to the letter; `GET /incidents/{id}` is `incident_get`, which adds what the page of an incident
shows; a change's `"incidents"` is `incidents_of_change`. Lists are limited to environments the caller may read.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q

from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.guarding import Loss, loss_from_json
from controlplane.catalog.links import LinkedName, used_by
from controlplane.catalog.selectors import is_quarantined
from controlplane.clients.selectors import NackView, nacks_get
from controlplane.common.errors import NotFound
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.filtering import EVERY_INCIDENT, IncidentFilter
from controlplane.incidents.models import Incident, IncidentClient, IncidentNack
from controlplane.incidents.values import UNRESOLVED, Assignee, IncidentCause, IncidentState, Mute
from controlplane.incidents.verdict import Outcome
from xdscore.client_kinds import ClientFamily
from xdscore.codes import shown
from xdscore.resource_types import by_word

_MAX_CLIENTS = 100
_MAX_OF_NAME = 100
_MAX_OF_CHANGE = 100
_REFUSED_AND_LOST = (IncidentCause.NACK, IncidentCause.LOSS)
_MAX_WORDS = 5


@dataclass(frozen=True, slots=True)
class Impact:
    """How many clients refuse a revision (`nacked`), of how many that were sent it; for a loss, how many lost
    something, of how many that were connected.
    """

    nacked: int
    sent: int


@dataclass(frozen=True, slots=True)
class IncidentValue:
    """An incident, with the members of interfaces.md section 7.

    `name`: the culprit, empty where none is known; for a loss, what most clients lost.
    `change`: the change that is the suspect, empty where none is known.
    `message`: the client's own words, with harmful characters escaped; for a loss, a sentence of Parley's.
    `loss`: all that is stored of a loss; None for refusals.
    `assignee`: who is to look after it; None: nobody. `mute`: None while it is not muted.
    """

    id: str
    cause: IncidentCause
    environment: str
    type: str
    name: str
    state: IncidentState
    confidence: Confidence
    change: str
    message: str
    clients: Impact
    first_at: datetime
    loss: Loss | None = None
    assignee: Assignee | None = None
    mute: Mute | None = None


@dataclass(frozen=True, slots=True)
class RefusingClient:
    """A client that refused a revision. `revision`: the newest that it refused; `now`: what it has since then, in
    words;
    `count`: how often it refused.
    """

    id: str
    identity: str
    node_id: str
    revision: int
    now: str
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class VerdictView:
    """The verdict on the refusals of an incident. `suggested`: whether an operator is to decide, because the policy
    says so or because clients' answers cannot decide.
    """

    outcome: Outcome
    reason: str
    suggested: bool


@dataclass(frozen=True, slots=True)
class IncidentDetail:
    """Everything that is known of one incident. A loss has none of the following; see `incident.loss`.

    `number`: its primary key.
    `suspects`: their names, where no culprit is known.
    `quarantined`: whether the refused revision is quarantined now.
    `verdict`: what the refusals mean for all clients; None until they were judged.
    `mended_by`: who said that the next revision mends it; empty where nobody did.
    `used_by`: resources that refer to the refused one, and so get an older revision of it, or nothing.
    `refusing`: the clients that refused last, at most 100; `samples`: the first NACKs, newest first.
    `now`: what clients that refuse the revision have instead, in words, and how many of them.
    """

    incident: IncidentValue
    number: int
    algorithm: str
    fingerprint: str
    normalised: str
    family: ClientFamily
    author: str
    mended_by: str
    revision: int
    quarantined: bool
    verdict: VerdictView | None
    suspects: tuple[str, ...]
    used_by: tuple[LinkedName, ...]
    last_at: datetime
    opened_epoch: int
    resolved_epoch: int | None
    now: tuple[tuple[str, int], ...]
    refusing: tuple[RefusingClient, ...]
    samples: tuple[NackView, ...]

    @property
    def first_at(self) -> datetime:
        """The time of the first refusal, or of the loss."""
        return self.incident.first_at


def incident_list(
    *,
    environment_keys: Collection[str],
    states: Collection[IncidentState] = (),
    wanted: IncidentFilter = EVERY_INCIDENT,
    after: str = "",
    limit: int = 100,
) -> tuple[IncidentValue, ...]:
    """Incidents of these environments that meet the conditions `wanted`, the one with the latest refusal first,
    beginning after the id `after`. `states`: only these; empty: all.
    """
    rows = Incident.objects.filter(environment__key__in=list(environment_keys)).select_related("environment")
    rows = wanted.applied(rows)
    if states:
        rows = rows.filter(state__in=[state.value for state in states])
    last = Incident.objects.filter(public_id=public_key(after)).values_list("last_at", "pk").first() if after else None
    if last is not None:
        rows = rows.filter(Q(last_at__lt=last[0]) | Q(last_at=last[0], pk__lt=last[1]))
    return tuple(_value(row) for row in rows.order_by("-last_at", "-pk")[:limit])


def incident_get(*, public_id: str) -> IncidentDetail:
    """Everything that is known of the incident with this public id. Raises NotFound."""
    row = Incident.objects.select_related("environment").filter(public_id=public_key(public_id)).first()
    if row is None:
        raise NotFound(f"There is no incident '{shown(public_id, 64)}'.")
    clients = IncidentClient.objects.filter(incident=row, incident__cause=IncidentCause.NACK.value)
    refusing = tuple(clients.order_by("-last_at")[:_MAX_CLIENTS])
    samples = IncidentNack.objects.filter(incident=row).values_list("nack_id", flat=True)
    return IncidentDetail(
        incident=_value(row),
        number=row.pk,
        algorithm=row.algorithm,
        fingerprint=row.fingerprint,
        normalised=row.normalised,
        family=ClientFamily(row.family),
        author=row.author,
        mended_by=row.mended_by,
        revision=row.revision,
        quarantined=_quarantined(row),
        verdict=_verdict(row),
        suspects=tuple(str(name) for name, _ in row.suspects),
        used_by=_used_by(row),
        last_at=row.last_at,
        opened_epoch=row.opened_epoch,
        resolved_epoch=row.resolved_epoch,
        now=_now_of(refusing, row.revision) if len(refusing) < _MAX_CLIENTS else clients_now(row),
        refusing=tuple(
            RefusingClient(
                each.client,
                each.identity,
                each.node_id,
                each.revision,
                each.now,
                each.count,
                each.first_at,
                each.last_at,
            )
            for each in refusing
        ),
        samples=nacks_get(ids=list(samples)),
    )


def incident_place(*, public_id: str) -> tuple[str, int]:
    """The key of the environment of an incident, and its primary key. Raises NotFound."""
    rows = Incident.objects.filter(public_id=public_key(public_id)).values_list("environment__key", "pk")
    found = rows.first()
    if found is None:
        raise NotFound(f"There is no incident '{shown(public_id, 64)}'.")
    return found


def assignee_of(row: Incident) -> Assignee | None:
    """Who is to look after the incident of this row; None: nobody."""
    if not row.assignee:
        return None
    return Assignee(row.assignee, row.assigned_to, team=row.assigned_team, gone=row.assignee_gone)


def mute_of(row: Incident) -> Mute | None:
    """The mute of the incident of this row; None while it is not muted."""
    return Mute(row.muted_until, row.muted_by, row.muted_reason) if row.muted_until is not None else None


def clients_now(incident: Incident) -> tuple[tuple[str, int], ...]:
    """What the clients that refuse the incident's revision have instead, in words, and how many have it; the most
    frequent first.
    """
    rows = IncidentClient.objects.filter(incident=incident, revision=incident.revision).exclude(now="")
    counted = rows.values_list("now").annotate(clients=Count("client")).order_by("-clients", "now")
    return tuple((words, clients) for words, clients in counted[:_MAX_WORDS])


def _now_of(refusing: Collection[IncidentClient], revision: int) -> tuple[tuple[str, int], ...]:
    """The result of `clients_now` for an incident whose refusing clients are exactly these rows, without a query."""
    counted = Counter(each.now for each in refusing if each.now and each.revision == revision)
    return tuple(sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:_MAX_WORDS])


def _used_by(row: Incident) -> tuple[LinkedName, ...]:
    if not row.name:
        return ()
    return used_by(environment_key=row.environment.key, kind=by_word[row.type], name=row.name)


def _verdict(row: Incident) -> VerdictView | None:
    if not row.verdict:
        return None
    outcome = Outcome(row.verdict)
    # What clients do not decide, or have decided both ways, is a person's to decide also where the policy is automatic.
    asked = row.environment.quarantine != QuarantinePolicy.OFF.value and (outcome is Outcome.FAIL or row.verdict_asks)
    waits = asked and row.revision > 0 and IncidentState(row.state) in UNRESOLVED
    return VerdictView(outcome, row.verdict_reason, suggested=waits and not _quarantined(row))


def incidents_of_change(*, change_id: str) -> tuple[IncidentValue, ...]:
    """The incidents of which this change is the suspect, or by which clients lost something, at most 100."""
    rows = Incident.objects.filter(change=change_id).select_related("environment").order_by("-last_at")
    return tuple(_value(row) for row in rows[:_MAX_OF_CHANGE])


def refused_and_lost(*, change_ids: Collection[str]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """For each of these changes, by the unresolved incidents of which it is the suspect: how many clients refuse what
    it wrote, and how many lost something by it. A client may be in several, so the largest count of one incident is
    taken. One query.
    """
    rows = Incident.objects.filter(change__in=list(change_ids), state__in=[state.value for state in UNRESOLVED])
    found: dict[str, dict[str, int]] = {each.value: {} for each in IncidentCause}
    for change, cause, count in rows.order_by().values_list("change", "cause").annotate(counted=Max("nacked")):
        found[cause][change] = count
    return found[IncidentCause.NACK.value], found[IncidentCause.LOSS.value]


def counted_in(incidents: Sequence[IncidentValue], *, change_id: str) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """What `refused_and_lost` returns of one change, by its incidents as `incidents_of_change` returned them. No query,
    unless there are more than it returns.
    """
    if len(incidents) >= _MAX_OF_CHANGE:
        return refused_and_lost(change_ids=[change_id])
    found: dict[IncidentCause, list[int]] = {each: [] for each in IncidentCause}
    for each in incidents:
        if each.state in UNRESOLVED:
            found[each.cause].append(each.clients.nacked)
    refused, lost = ({change_id: max(found[cause])} if found[cause] else {} for cause in _REFUSED_AND_LOST)
    return refused, lost


def incidents_of_name(
    *, environment_key: str, word: str, name: str, states: Collection[IncidentState] = UNRESOLVED
) -> tuple[IncidentValue, ...]:
    """The incidents about one resource in these states: losses first, newest first, at most 100 of each sort. Only the
    newest 100 losses are looked at, because each names many resources.
    """
    rows = Incident.objects.filter(environment__key=environment_key, state__in=[state.value for state in states])
    newest = rows.order_by("-last_at").values("pk")
    refusals = newest.filter(cause=IncidentCause.NACK.value, type=word, name=name)[:_MAX_OF_NAME]
    losses = newest.filter(cause=IncidentCause.LOSS.value)[:_MAX_OF_NAME]
    found = Incident.objects.filter(Q(pk__in=refusals) | Q(pk__in=losses)).select_related("environment")
    values = [_value(row) for row in found.order_by("-last_at")]
    return (
        *(each for each in values if each.loss is not None and _is_of(each.loss, word, name)),
        *(each for each in values if each.cause is IncidentCause.NACK),
    )


def _is_of(loss: Loss, word: str, name: str) -> bool:
    return any((each.type, each.name) == (word, name) for each in loss.names)


def public_key(public_id: str) -> uuid.UUID:
    """The UUID for a public id in a URL. Raises NotFound for a text that is no UUID."""
    try:
        return uuid.UUID(public_id)
    except ValueError:
        raise NotFound(f"There is no incident '{shown(public_id, 64)}'.") from None


def _value(row: Incident) -> IncidentValue:
    return IncidentValue(
        id=str(row.public_id),
        cause=IncidentCause(row.cause),
        environment=row.environment.key,
        type=row.type,
        name=row.name,
        state=IncidentState(row.state),
        confidence=Confidence(row.confidence),
        change=row.change,
        message=row.message,
        clients=Impact(row.nacked, row.sent),
        first_at=row.first_at,
        loss=loss_from_json(row.loss) if row.loss is not None else None,
        assignee=assignee_of(row),
        mute=mute_of(row),
    )


def _quarantined(row: Incident) -> bool:
    return row.revision > 0 and is_quarantined(
        environment_key=row.environment.key, kind=by_word[row.type], name=row.name, number=row.revision
    )
