"""What connected clients ask for, as values: for whoever judges what a change would mean to a fleet. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from xdscore.environment_choice import ClientFacts


@dataclass(frozen=True, slots=True)
class Asks:
    """The subscription of an open stream to one type. `name_set` stands for the names it asks for: equal for equal
    names.
    """

    client: str
    word: str
    wildcard: bool
    name_set: str


@dataclass(frozen=True, slots=True)
class FleetAsks:
    """The connected clients by id, their subscriptions, and the names of each name set. Metadata of clients is not
    kept.
    """

    clients: Mapping[str, ClientFacts]
    asks: tuple[Asks, ...]
    names: Mapping[str, tuple[str, ...]]
