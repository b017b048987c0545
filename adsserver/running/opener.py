"""What `main` is given to reach everything outside the streams: how to open a store, and what an open one can do."""

from collections.abc import Callable, Mapping
from typing import Protocol

from adsserver.ports import ContentKeeper, Directory, Facts, FleetStatus


class StoreStatus(Protocol):
    """The status of the store, the door to the database: what it has loaded, and what is wrong with it."""

    @property
    def loaded(self) -> Mapping[str, tuple[str, int]]:
        """The snapshot that each environment is served from, as (lineage, epoch) by the environment's key."""
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
        """Why no clients must be sent to this process, whatever it has loaded: problems with its keys, or with the
        database's tables. Empty when there are none.
        """
        ...


class Store(Protocol):
    """The door to everything outside the streams, such as the database (`adsserver.store`)."""

    @property
    def contents(self) -> ContentKeeper:
        """The source of the bytes of contents."""
        ...

    @property
    def facts(self) -> Facts:
        """The receiver of facts about streams."""
        ...

    @property
    def fleet(self) -> FleetStatus:
        """The status of the clients of all ADS processes."""
        ...

    def start(self) -> None:
        """Start loading snapshots from the database."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Write the facts that wait and end, within `timeout_s` seconds."""
        ...

    def status(self) -> StoreStatus:
        """The status of the store at this moment."""
        ...


StoreOpener = Callable[[Callable[[Directory], None]], Store]
"""Opens a store that calls back, from a thread of its own, with every new directory. With several workers it is sent to
other processes: it must be a function of a module, or a `functools.partial` of one, and set up what it needs."""
