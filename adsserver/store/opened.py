"""A stream as the facts know it: whose it is, and who is accountable for what it brings."""

from dataclasses import dataclass
from functools import cached_property

from adsserver.ports import StreamInfo
from controlplane.clients.identity import client_id
from xdscore.shares import accountable


@dataclass(frozen=True)
class Opened:
    """A stream that is open since `at`."""

    stream: StreamInfo
    at: float

    @cached_property
    def client(self) -> str:
        """The id of its client. Found where it is written: the event loop has better to do than to hash."""
        stream = self.stream
        return client_id(environment=stream.environment, identity=stream.identity, node_id=stream.node_id)

    @cached_property
    def accountable(self) -> str:
        """On whose share counts what it brings."""
        return accountable(identity=self.stream.identity, peer=self.stream.peer)
