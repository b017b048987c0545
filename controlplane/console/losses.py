"""What connected clients lose by a change, as pages tell it."""

from dataclasses import dataclass

from controlplane.catalog.guarding import Loss
from controlplane.incidents.loss_words import clients_lost, kinds_told, names_count
from controlplane.incidents.selectors import IncidentValue
from controlplane.incidents.values import UNRESOLVED

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Lost:
    """What clients lost by a change, with its incident; None until the change is published."""

    loss: Loss
    incident: IncidentValue | None

    @property
    def is_over(self) -> bool:
        """Whether nobody needs to look after the loss any more: it was taken back, or somebody said that it is
        intended.
        """
        return self.incident is not None and self.incident.state not in UNRESOLVED

    @property
    def tone(self) -> str:
        """The CSS class of the box that shows the loss: red for an unresolved incident, yellow while there is none,
        empty when the loss is over.
        """
        return "" if self.is_over else "alert-danger" if self.incident is not None else "alert-warning"

    @property
    def clients(self) -> str:
        """How many clients lost something, in words."""
        return clients_lost(self.loss)

    @property
    def names(self) -> str:
        """How many names were lost, in words."""
        return names_count(self.loss)

    @property
    def kinds(self) -> str:
        """The kinds of the clients that lost something, in words."""
        return kinds_told(self.loss)

    @property
    def more_who(self) -> int:
        """How many clients lost something and are not shown by name."""
        return self.loss.clients - len(self.loss.who[:_SHOWN])
