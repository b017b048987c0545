"""What CSDS reads, in memory: `adsserver.ports.FleetStatus` for tests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from adsserver.ports import FleetClient, FleetUnavailableError, Reader, ResourceStatus


@dataclass
class MemoryFleet:
    """Readers by token, and the resources of each client; `away` says why nothing can be read."""

    readers: dict[str, Reader] = field(default_factory=dict)
    statuses: dict[FleetClient, tuple[ResourceStatus, ...]] = field(default_factory=dict)
    away: str = ""

    def reader(self, token: str) -> Reader | None:
        self._must_be_there()
        return self.readers.get(token)

    def clients(self) -> Sequence[FleetClient]:
        self._must_be_there()
        return tuple(self.statuses)

    def resources(
        self, clients: Sequence[FleetClient], *, contents: bool
    ) -> Iterator[tuple[FleetClient, tuple[ResourceStatus, ...]]]:
        self._must_be_there()
        for client in clients:
            yield client, tuple(each if contents else replace(each, config=b"") for each in self.statuses[client])

    def _must_be_there(self) -> None:
        if self.away:
            raise FleetUnavailableError(self.away)
