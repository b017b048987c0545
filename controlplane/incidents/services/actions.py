"""What operators do about an incident."""

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.accounts.selectors import person_or_token
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.services import quarantine_open, quarantine_release
from controlplane.catalog.values import ChangeMade
from controlplane.common.errors import Conflict, NotFound
from controlplane.incidents.filtering import NOBODY
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import assignee_of, public_key
from controlplane.incidents.services.answering import refused_by
from controlplane.incidents.services.assigning import ASSIGNEE_FIELDS, assignee_set
from controlplane.incidents.services.locking import incident_locked
from controlplane.incidents.services.muting import UNMUTED
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import TRANSITIONS, UNRESOLVED, Assignee, IncidentCause, IncidentState
from controlplane.journal.services import audit_record

# Nobody has to look at an incident in such a state.
_OVER = frozenset({IncidentState.RESOLVED, IncidentState.IGNORED})


def incident_quarantine(
    *, public_id: str, reason: str, actor: Principal, request_id: str, consent: Consent = NO_CONSENT
) -> ChangeMade:
    """Quarantine the refused revision, so that the builder publishes the last acknowledged one instead. Does nothing
    where it is quarantined already.

    Raises NotFound; Conflict when no culprit is known or there is a newer revision; and LossRefused.
    """
    incident = _with_revision(public_id)
    made = quarantine_open(
        environment_key=incident.environment.key,
        word=incident.type,
        name=incident.name,
        revision=incident.revision,
        cause=QuarantineCause.OPERATOR,
        reason=reason,
        actor=actor,
        incident=str(incident.public_id),
        request_id=request_id,
        refused_by=refused_by(incident),
        consent=consent,
    )
    Incident.objects.filter(pk=incident.pk).update(quarantined_revision=incident.revision)
    return made


def incident_release(*, public_id: str, reason: str, actor: Principal, request_id: str) -> ChangeMade:
    """Release the refused revision from quarantine although clients refuse it. It is not quarantined automatically
    again (U21). Does nothing where it is not quarantined.

    Raises NotFound, and Conflict when no culprit is known.
    """
    incident = _with_revision(public_id)
    # First, so that no digest can come between the release and the mark.
    Incident.objects.filter(pk=incident.pk).update(forced_revision=incident.revision)
    return quarantine_release(
        environment_key=incident.environment.key,
        word=incident.type,
        name=incident.name,
        revision=incident.revision,
        reason=reason,
        actor=actor,
        request_id=request_id,
    )


@transaction.atomic(durable=True)
def incident_set_state(*, public_id: str, state: IncidentState, actor: Principal, request_id: str) -> None:
    """Set the state of an incident; does nothing where it has that state. Raises NotFound, and Conflict for a state
    that cannot follow the present one.

    Whoever acknowledges an incident becomes its assignee; opening it again leaves it without one. An incident that is
    over is not muted any more. Nobody's word on the next revision holds afterwards.
    """
    incident = incident_locked(public_id)
    current = IncidentState(incident.state)
    assignee = _assignee(state, incident, actor)
    if state is current and assignee == assignee_of(incident) and not incident.mended_by:
        return
    if state is not current and state not in TRANSITIONS[current]:
        allowed = " or ".join(sorted(TRANSITIONS[current]))
        raise Conflict(f"An incident that is {current.value} cannot become {state.value}, only {allowed}.")
    before = {"before": current.value, "assignee": incident.assignee}
    incident.state = state.value
    incident.mended_by = ""
    assignee_set(incident, assignee or NOBODY)
    incident.resolved_epoch = incident.environment.epoch if state is IncidentState.RESOLVED else None
    incident.save(update_fields=["state", "mended_by", "resolved_epoch", *ASSIGNEE_FIELDS])
    if state in _OVER and current not in _OVER:
        incident_told("incident.resolved", incident, by=actor.name)
    if state in _OVER:
        Incident.objects.filter(pk=incident.pk).update(**UNMUTED)
    audit_record(
        actor=actor,
        verb=f"incident.{state.value}",
        subject=str(incident.public_id),
        environment=incident.environment.key,
        request_id=request_id,
        detail=before,
    )


@transaction.atomic(durable=True)
def incident_mended_next(*, public_id: str, actor: Principal, request_id: str) -> None:
    """Say that the next revision of the resource mends what an incident is about: it is resolved once a newer revision
    than the refused one is published, and opens again if clients refuse that for the same reason. Who says so looks
    after it until then. Does nothing where it was said.

    Raises NotFound; Conflict where no culprit is known, and for an incident that is over.
    """
    incident = incident_locked(public_id)
    _require_revision(incident)
    if incident.state not in UNRESOLVED:
        raise Conflict(f"This incident is {incident.state}: open it again first. Nothing was changed.")
    if incident.mended_by == actor.name:
        return
    before = {"before": incident.state, "assignee": incident.assignee, "revision": incident.revision}
    incident.state, incident.mended_by = IncidentState.ACKNOWLEDGED.value, actor.name
    # So that the next run asks whether one is published already.
    incident.checked_generation = 0
    assignee_set(incident, _myself(actor))
    incident.save(update_fields=["state", "mended_by", "checked_generation", *ASSIGNEE_FIELDS])
    audit_record(
        actor=actor,
        verb="incident.promised",
        subject=str(incident.public_id),
        environment=incident.environment.key,
        request_id=request_id,
        detail=before,
    )


def _assignee(state: IncidentState, incident: Incident, actor: Principal) -> Assignee | None:
    match state:
        case IncidentState.ACKNOWLEDGED:
            return _myself(actor)
        case IncidentState.OPEN:
            return None
        case IncidentState.RESOLVED | IncidentState.IGNORED:
            return assignee_of(incident)


def _myself(actor: Principal) -> Assignee:
    return Assignee(actor.name, str(person_or_token(actor)))


def _with_revision(public_id: str) -> Incident:
    incident = Incident.objects.select_related("environment").filter(public_id=public_key(public_id)).first()
    if incident is None:
        raise NotFound(f"There is no incident '{public_id[:64]}'.")
    _require_revision(incident)
    return incident


def _require_revision(incident: Incident) -> None:
    if incident.cause == IncidentCause.LOSS:
        raise Conflict(
            f"Clients lost something by change '{incident.change}' and refuse nothing, so no revision can be "
            "quarantined, released or mended: take that change back."
        )
    if not incident.revision:
        raise Conflict(
            "This incident names no single revision of a resource: quarantine the one you hold responsible by its name."
        )
