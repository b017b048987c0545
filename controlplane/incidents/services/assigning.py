"""Says who is to look after an incident: a person, or a team, which is an owner of resources."""

from typing import Final

from django.db import transaction

from controlplane.accounts.principal import Principal, Role
from controlplane.accounts.selectors import person_or_token, rights_granted, user_named
from controlplane.catalog.owners import owner_exists
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.common.principal_ids import principal_id_of
from controlplane.incidents.models import Incident
from controlplane.incidents.services.locking import incident_locked
from controlplane.incidents.services.telling import incident_told
from controlplane.incidents.values import UNRESOLVED, Assignee
from controlplane.journal.services import audit_record
from xdscore.codes import shown

# How many different people one run looks at; those after them have their turn once some are gone.
_AT_ONCE: Final = 500


@transaction.atomic(durable=True)
def incident_assign(*, public_id: str, person: str = "", team: str = "", actor: Principal, request_id: str) -> None:
    """Assign an incident to the person with this login, or to a team; without either, to nobody. Its state stays. Does
    nothing where it is so already.

    Raises NotFound; Conflict for an incident that is over; InputInvalid for somebody who may not see the environment,
    with the same text for a login that does not exist, and for a team that owns none of its resources.
    """
    incident = incident_locked(public_id)
    if incident.state not in UNRESOLVED:
        raise Conflict(f"This incident is {incident.state}: open it again first. Nothing was changed.")
    found = _person(person, incident.environment.key) if person else _team(team, incident.environment.key)
    if (incident.assignee, incident.assigned_to, incident.assigned_team) == (found.name, found.id, found.team):
        return
    before = incident.assignee
    assignee_set(incident, found)
    incident.save(update_fields=ASSIGNEE_FIELDS)
    if found.name and found.id != str(person_or_token(actor)):
        incident_told("incident.assigned", incident, by=actor.name)
    audit_record(
        actor=actor,
        verb="incident.assigned",
        subject=str(incident.public_id),
        environment=incident.environment.key,
        request_id=request_id,
        detail={"before": before, "assignee": found.name, "team": found.team},
    )


ASSIGNEE_FIELDS: Final = ["assignee", "assigned_to", "assigned_team", "assignee_gone"]


def assignee_set(incident: Incident, assignee: Assignee) -> None:
    """Set who is to look after an incident, without saving it."""
    incident.assignee, incident.assigned_to, incident.assigned_team = assignee.name, assignee.id, assignee.team
    incident.assignee_gone = False


def assignees_check() -> None:
    """Note of every unresolved incident whether the person to whom it is assigned may still see it."""
    rows = Incident.objects.filter(state__in=[each.value for each in UNRESOLVED]).exclude(assigned_to="")
    assigned = rows.order_by("assigned_to", "environment").values_list("assigned_to", "environment__key").distinct()
    for who, environment in assigned[:_AT_ONCE]:
        principal = principal_id_of(who)
        rights = rights_granted(principal) if principal is not None else None
        gone = rights is None or not rights.may(Role.VIEWER, environment)
        theirs = Incident.objects.filter(assigned_to=who, environment__key=environment, assignee_gone=not gone)
        theirs.update(assignee_gone=gone)


def _person(login: str, environment: str) -> Assignee:
    found = user_named(login)
    rights = rights_granted(found) if found is not None else None
    if rights is None or not rights.may(Role.VIEWER, environment):
        said = shown(login, 150)
        raise InputInvalid(f"Nobody with the login '{said}' may see '{environment}'. Nothing was changed.")
    return Assignee(rights.name, str(rights.id))


def _team(team: str, environment: str) -> Assignee:
    if team and not owner_exists(environment_key=environment, owner=team):
        raise InputInvalid(
            f"No resource of '{environment}' has the owner '{shown(team, 150)}', so that it is no team here. "
            "Nothing was changed."
        )
    return Assignee(team, team=bool(team))
