"""What connected clients ask for, as values: for whoever judges what a change would mean to a fleet. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdscore.environment_choice import ClientFacts
from xdscore.names import XDSTP, canonical
from xdscore.xdstp import glob_of


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


def names_covered(asked: Iterable[str], *, wildcard: bool, wanted: Iterable[str]) -> frozenset[str]:
    """The names among `wanted`, which are canonical, that a subscription asks for: by name (`asked`), by wildcard, or
    by a collection with a star (protocol.md H3).
    """
    # Only names with an authority are written in several ways, and collect others.
    names = set(asked)
    ours = {canonical(name) for name in names if name.startswith(XDSTP)}
    names |= ours
    globs = [glob for name in ours if (glob := glob_of(name)) is not None]
    if not wildcard and not globs:
        return frozenset(names.intersection(wanted))
    return frozenset(
        name
        for name in wanted
        if (wildcard and not name.startswith(XDSTP)) or name in names or any(glob.contains(name) for glob in globs)
    )
