"""What connected clients ask for, as values: for whoever judges what a change would mean to a fleet. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from xdscore.environment_choice import ClientFacts


@dataclass(frozen=True, slots=True)
class Asks:
    """The subscription of an open stream to one type (`word`). `client`: the id of the client; `name_set`: the id of
    the set of names it asks for, the same for equal sets.
    """

    client: str
    word: str
    wildcard: bool
    name_set: str


@dataclass(frozen=True, slots=True)
class FleetAsks:
    """The connected clients by id (without their metadata), their subscriptions, and the names in each name set, by its
    id.
    """

    clients: Mapping[str, ClientFacts]
    asks: tuple[Asks, ...]
    names: Mapping[str, tuple[str, ...]]
