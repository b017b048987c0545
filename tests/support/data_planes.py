"""Data planes that stay connected to a running Parley while a test looks: `xdsclient` on an event loop of its own
thread, so that the test itself can ask REST and wait.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import Message

from xdsclient import (
    Bootstrap,
    CacheEntry,
    ClientType,
    DataErrorHandling,
    Node,
    Server,
    ServerFeature,
    Status,
    Variant,
    Watch,
    XdsClient,
)
from xdscore.resource_types import ResourceType
from xdsctl.dataplane import refusing

T = TypeVar("T")

_FEATURES = frozenset({ServerFeature.FAIL_ON_DATA_ERRORS})
_CALL_S = 20.0


class _Deaf:
    """A watcher that ignores every event: how a watch stands is read from the client's cache."""

    def on_resource_changed(self, resource: Message | Status) -> None:
        """Ignore the event."""

    def on_ambient_error(self, error: Status) -> None:
        """Ignore the error."""


@dataclass(frozen=True)
class Held:
    """The state of one name at a data plane: the label of its cache state (A78), and the server's or its own words."""

    state: str
    text: str


class DataPlane:
    """One xDS client with its watches; `refuses` are names that it refuses, with the words it says then."""

    def __init__(
        self,
        planes: "DataPlanes",
        node: Node,
        kinds: tuple[ResourceType, ...],
        refuses: Mapping[str, str],
        variant: Variant,
        reads: Iterable[ClientType[Message]],
    ) -> None:
        self._planes = planes
        self._kinds: dict[ResourceType, ClientType[Message]] = {kind: refusing(kind, refuses) for kind in kinds}
        self._kinds |= {each.kind: each for each in reads}
        self._watches: dict[tuple[ResourceType, str], Watch] = {}
        bootstrap = Bootstrap((Server(planes.address, features=_FEATURES),), node)
        self._client = XdsClient(
            bootstrap, types=list(self._kinds.values()), variant=variant, data_errors=DataErrorHandling.ON
        )
        planes.wait(self._client.__aenter__())

    def ask(self, kind: ResourceType, *names: str) -> None:
        """Subscribe to these names of a type from now on."""

        async def watch() -> None:
            for name in names:
                self._watches[kind, name] = self._client.watch(self._kinds[kind], name, _Deaf())

        self._planes.wait(watch())

    def leave_off(self, kind: ResourceType, name: str) -> None:
        """Ask for this name of a type no longer."""

        async def cancel() -> None:
            self._watches.pop((kind, name)).cancel()

        self._planes.wait(cancel())

    def held(self) -> dict[tuple[str, str], Held]:
        """The state of every name that the data plane asks for, by type word and name."""

        async def cache() -> tuple[CacheEntry, ...]:
            return self._client.cache()

        return {
            (entry.key.kind.word, entry.key.name): Held(entry.label, entry.error.message)
            for entry in self._planes.wait(cache())
        }

    def leave(self) -> None:
        """End every stream of the data plane."""
        self._planes.wait(self._client.__aexit__(None, None, None))


class DataPlanes:
    """Makes data planes, all of the server at `address`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._planes: list[DataPlane] = []

    def start(
        self,
        node: str,
        *kinds: ResourceType,
        metadata: Mapping[str, object] | None = None,
        refuses: Mapping[str, str] | None = None,
        variant: Variant = Variant.SOTW,
        reads: Iterable[ClientType[Message]] = (),
    ) -> DataPlane:
        """Start a data plane that may ask for these types, and for those that it `reads` in a way of its own."""
        plane = DataPlane(self, Node(node, metadata=metadata or {}), kinds, refuses or {}, variant, reads)
        self._planes.append(plane)
        return plane

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, run on the data planes' event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_S)

    def end(self) -> None:
        """End every data plane and the event loop."""
        for plane in self._planes:
            plane.leave()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_S)
        self._loop.close()


@contextmanager
def data_planes(address: str) -> Iterator[DataPlanes]:
    """Make data planes of this server possible until the block ends, which ends them all."""
    planes = DataPlanes(address)
    try:
        yield planes
    finally:
        planes.end()
