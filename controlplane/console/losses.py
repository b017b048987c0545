"""What connected clients lose by a change, as pages tell it."""

from dataclasses import dataclass

from controlplane.catalog.guarding import Loss
from controlplane.incidents.loss_words import clients_lost, kinds_told, names_count
from controlplane.incidents.selectors import IncidentValue
from controlplane.incidents.values import UNRESOLVED

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Lost:
    """A loss by a change, and its incident, which exists once the change is published."""

    loss: Loss
    incident: IncidentValue | None

    @property
    def is_over(self) -> bool:
        """Whether the loss was taken back, or somebody said that it is meant."""
        return self.incident is not None and self.incident.state not in UNRESOLVED

    @property
    def tone(self) -> str:
        """The CSS class of the box: red for an open incident, yellow without one, none when the loss is over."""
        return "" if self.is_over else "alert-danger" if self.incident is not None else "alert-warning"

    @property
    def clients(self) -> str:
        """The words for how many clients lost something."""
        return clients_lost(self.loss)

    @property
    def names(self) -> str:
        """The words for how many names were lost."""
        return names_count(self.loss)

    @property
    def kinds(self) -> str:
        """The kinds of software of the clients that lost something, in words."""
        return kinds_told(self.loss)

    @property
    def more_who(self) -> int:
        """The number of clients that are not named."""
        return self.loss.clients - len(self.loss.who[:_SHOWN])
