"""What `main` is given to reach everything outside the streams: how to open a store, and what an open one can do."""

from collections.abc import Callable, Mapping
from typing import Protocol

from adsserver.ports import ContentKeeper, Directory, Facts, FleetStatus


class StoreStatus(Protocol):
    """What the store says of itself."""

    @property
    def loaded(self) -> Mapping[str, tuple[str, int]]:
        """(lineage, epoch) of the snapshot that each environment is served from."""
        ...

    @property
    def database_ok(self) -> bool:
        """Whether the database answered when it was last asked."""
        ...

    @property
    def detail(self) -> str:
        """What is wrong, for people; empty when nothing is."""
        ...

    @property
    def unfit(self) -> tuple[str, ...]:
        """Why this process must not be sent clients, whatever it has loaded: its keys, or the tables."""
        ...


class Store(Protocol):
    """The door to everything outside the streams (`adsserver.store`)."""

    @property
    def contents(self) -> ContentKeeper:
        """Content bytes."""
        ...

    @property
    def facts(self) -> Facts:
        """Where facts go."""
        ...

    @property
    def fleet(self) -> FleetStatus:
        """What the clients of all servers were sent."""
        ...

    def start(self) -> None:
        """Begin to load."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Write what is left and end, within this time."""
        ...

    def status(self) -> StoreStatus:
        """How it is doing now."""
        ...


StoreOpener = Callable[[Callable[[Directory], None]], Store]
"""Opens a store that calls back, from a thread of its own, with every new directory. With several workers it is sent to
other processes: it must be a function of a module, or a `functools.partial` of one, and set up what it needs."""
