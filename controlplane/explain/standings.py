"""Says how clients stand, in the one word that REST, `xdsctl ps`, the list of clients, a client's page and search have
for each: its standing, and of those that are connected and well, who asks for what is not there.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from controlplane.clients.browsing import Standing, client_standings
from controlplane.clients.selectors import ClientSummary
from controlplane.clients.told import ToldCounts, told_of


class ClientStatus(StrEnum):
    """The status of a client in one word; where several apply, the first in this order. Counts and filters do not know
    `ASKS_IN_VAIN`: for them such a client is connected.
    """

    REFUSING = "refusing"
    SILENT = "silent"
    DENIED = "denied"
    ASKS_IN_VAIN = "asks_in_vain"  # it asks by name for what is not there, hidden or withheld, and is told so
    CONNECTED = "connected"
    GONE = "gone"


def client_status(standing: Standing, told: ToldCounts) -> ClientStatus:
    """The status of a client. `told`: how many names it asks for and cannot have; a client that acknowledges such
    errors does not count as well.
    """
    if standing is Standing.CONNECTED and told.names:
        return ClientStatus.ASKS_IN_VAIN
    return ClientStatus(standing.value)


def client_statuses(*, clients: Collection[ClientSummary]) -> Mapping[str, ClientStatus]:
    """The status of each of these clients, by client id. As many queries as `troubles_of` and `told_of` make."""
    if not clients:
        return {}
    standings, told = client_standings(clients=clients), told_of(clients=clients)
    return {each.id: client_status(standings[each.id], told[each.id]) for each in clients}
