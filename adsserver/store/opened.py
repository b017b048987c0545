"""A stream as the facts know it: whose it is, and who is accountable for what it brings."""

from dataclasses import dataclass
from functools import cached_property

from adsserver.ports import StreamInfo
from controlplane.clients.identity import client_id
from xdscore.shares import accountable


@dataclass(frozen=True)
class Opened:
    """A stream that is open since the time `at`, of a clock that only goes forward."""

    stream: StreamInfo
    at: float

    @cached_property
    def client(self) -> str:
        """The id of the stream's client. Computed when facts are written, to spare the event loop the hash."""
        stream = self.stream
        return client_id(environment=stream.environment, identity=stream.identity, node_id=stream.node_id)

    @cached_property
    def accountable(self) -> str:
        """The key of the caller (identity or address) against whose share of room the facts of this stream count."""
        return accountable(identity=self.stream.identity, peer=self.stream.peer)
