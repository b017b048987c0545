"""Keeps why an incident is over that nobody resolved by hand."""

from dataclasses import asdict, dataclass

from controlplane.accounts.principal import SYSTEM
from controlplane.incidents.models import Incident
from controlplane.journal.services import audit_record


@dataclass(frozen=True, slots=True)
class Resolution:
    """The reason why an incident was resolved, for its timeline. `change`, `author`: of the change that resolved it;
    `incident`: another one in which there is more to read.
    """

    because: str
    change: str = ""
    author: str = ""
    incident: str = ""


def resolution_record(incident: Incident, resolution: Resolution) -> None:
    """Store why an incident was resolved, in the transaction that resolves it."""
    audit_record(
        actor=SYSTEM,
        verb="incident.resolved",
        subject=str(incident.public_id),
        environment=incident.environment.key,
        detail={"before": incident.state, **asdict(resolution)},
    )
