"""What connected clients lose by a change, as pages tell it."""

from dataclasses import dataclass

from controlplane.catalog.guarding import Loss
from controlplane.incidents.loss_words import clients_lost, kinds_told, names_count
from controlplane.incidents.selectors import IncidentValue
from controlplane.incidents.values import UNRESOLVED

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Lost:
    """A loss and its incident, which is there once the change is published."""

    loss: Loss
    incident: IncidentValue | None

    @property
    def is_over(self) -> bool:
        """Whether it was taken back, or somebody said that it is meant."""
        return self.incident is not None and self.incident.state not in UNRESOLVED

    @property
    def tone(self) -> str:
        """How loud the box is."""
        return "" if self.is_over else "alert-danger" if self.incident is not None else "alert-warning"

    @property
    def clients(self) -> str:
        """Who, as a number."""
        return clients_lost(self.loss)

    @property
    def names(self) -> str:
        """What, as a number."""
        return names_count(self.loss)

    @property
    def kinds(self) -> str:
        """The kinds of those clients."""
        return kinds_told(self.loss)

    @property
    def more_who(self) -> int:
        """How many clients are not told one by one."""
        return self.loss.clients - len(self.loss.who[:_SHOWN])
