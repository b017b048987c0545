"""What CSDS reads, in memory: `adsserver.ports.FleetStatus` for tests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from adsserver.ports import FleetClient, FleetUnavailableError, Reader, ResourceStatus


def _set() -> Event:
    event = Event()
    event.set()
    return event


@dataclass
class MemoryFleet:
    """An ADS store's fleet in memory: readers by token, and the resources of each client; `away` says why nothing can
    be read. `asked` are the tokens that the database was asked for, in order; it answers as soon as `answers` is set.
    """

    readers: dict[str, Reader] = field(default_factory=dict)
    statuses: dict[FleetClient, tuple[ResourceStatus, ...]] = field(default_factory=dict)
    away: str = ""
    asked: list[str] = field(default_factory=list)
    answers: Event = field(default_factory=_set)

    def knows(self, token: str) -> bool:
        return token in self.readers

    def reader(self, token: str) -> Reader | None:
        self.asked.append(token)
        assert self.answers.wait(10)
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
