"""What operators do about an incident."""

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.services import quarantine_open, quarantine_release
from controlplane.catalog.values import ChangeMade
from controlplane.common.errors import Conflict, NotFound
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import public_key
from controlplane.incidents.services.answering import refused_by
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import TRANSITIONS, IncidentCause, IncidentState
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

    Whoever acknowledges an incident becomes its assignee; opening it again leaves it without one.
    """
    incident = Incident.objects.select_for_update().filter(public_id=public_key(public_id)).first()
    if incident is None:
        raise NotFound(f"There is no incident '{public_id[:64]}'.")
    current = IncidentState(incident.state)
    assignee = _assignee(state, incident.assignee, actor)
    if state is current and assignee == incident.assignee:
        return
    if state is not current and state not in TRANSITIONS[current]:
        allowed = " or ".join(sorted(TRANSITIONS[current]))
        raise Conflict(f"An incident that is {current.value} cannot become {state.value}, only {allowed}.")
    before = {"before": current.value, "assignee": incident.assignee}
    incident.state = state.value
    incident.assignee = assignee
    incident.resolved_epoch = incident.environment.epoch if state is IncidentState.RESOLVED else None
    incident.save(update_fields=["state", "assignee", "resolved_epoch"])
    if state in _OVER and current not in _OVER:
        incident_told("incident.resolved", incident, by=actor.name)
    audit_record(
        actor=actor,
        verb=f"incident.{state.value}",
        subject=str(incident.public_id),
        environment=incident.environment.key,
        request_id=request_id,
        detail=before,
    )


def _assignee(state: IncidentState, before: str, actor: Principal) -> str:
    match state:
        case IncidentState.ACKNOWLEDGED:
            return actor.name
        case IncidentState.OPEN:
            return ""
        case IncidentState.RESOLVED | IncidentState.IGNORED:
            return before


def _with_revision(public_id: str) -> Incident:
    incident = Incident.objects.select_related("environment").filter(public_id=public_key(public_id)).first()
    if incident is None:
        raise NotFound(f"There is no incident '{public_id[:64]}'.")
    if incident.cause == IncidentCause.LOSS:
        raise Conflict(
            f"Clients lost something by change '{incident.change}' and refuse nothing, so no revision can be "
            "quarantined or released: take that change back."
        )
    if not incident.revision:
        raise Conflict(
            "This incident names no single revision of a resource: quarantine the one you hold responsible by its name."
        )
    return incident
