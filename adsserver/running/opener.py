"""What `main` is given to reach everything outside the streams: how to open a store, and what an open one can do."""

from collections.abc import Callable, Mapping
from typing import Protocol

from adsserver.ports import ContentKeeper, Directory, Facts, FleetStatus


class StoreStatus(Protocol):
    """The status of the store: what it has loaded, and what is wrong with it."""

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
        """What is wrong with the store, as text for people; empty when nothing is."""
        ...

    @property
    def unfit(self) -> tuple[str, ...]:
        """Why this process must not be sent clients, whatever it has loaded: problems with its keys, or with the
        tables.
        """
        ...


class Store(Protocol):
    """The door to everything outside the streams (`adsserver.store`)."""

    @property
    def contents(self) -> ContentKeeper:
        """The bytes of contents, by address."""
        ...

    @property
    def facts(self) -> Facts:
        """The receiver of facts about streams."""
        ...

    @property
    def fleet(self) -> FleetStatus:
        """The status of the clients of all servers."""
        ...

    def start(self) -> None:
        """Start loading snapshots."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Write the facts that are left and end, within `timeout_s` seconds."""
        ...

    def status(self) -> StoreStatus:
        """The status of the store at this moment."""
        ...


StoreOpener = Callable[[Callable[[Directory], None]], Store]
"""Opens a store that calls back, from a thread of its own, with every new directory. With several workers it is sent to
other processes: it must be a function of a module, or a `functools.partial` of one, and set up what it needs."""
