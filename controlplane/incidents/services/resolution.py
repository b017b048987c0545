"""Keeps why an incident is over that nobody resolved by hand."""

from dataclasses import asdict, dataclass

from controlplane.accounts.principal import SYSTEM
from controlplane.incidents.models import Incident
from controlplane.journal.services import audit_record


@dataclass(frozen=True, slots=True)
class Resolution:
    """The reason why an incident was resolved, as its timeline tells it. `change` made it so; `incident` says more than
    this one.
    """

    because: str
    change: str = ""
    author: str = ""
    incident: str = ""


def resolution_record(incident: Incident, resolution: Resolution) -> None:
    """Record what resolved an incident, in the transaction in which it is resolved."""
    audit_record(
        actor=SYSTEM,
        verb="incident.resolved",
        subject=str(incident.public_id),
        environment=incident.environment.key,
        detail={"before": incident.state, **asdict(resolution)},
    )
