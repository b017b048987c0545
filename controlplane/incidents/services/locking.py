"""Locks one incident for what people do about it."""

from controlplane.common.errors import NotFound
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import public_key


def incident_locked(public_id: str) -> Incident:
    """The row of this incident, with its environment, locked until the transaction ends. Raises NotFound."""
    rows = Incident.objects.select_for_update(of=("self",)).select_related("environment")
    incident = rows.filter(public_id=public_key(public_id)).first()
    if incident is None:
        raise NotFound(f"There is no incident '{public_id[:64]}'.")
    return incident
