"""What a client counts (gRFC A78), and where it tells it. A prometheus adapter is in `xdsclient.prometheus`."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ResourceLabels:
    """The labels by which `grpc.xds_client.resources` counts resources."""

    target: str
    authority: str
    cache_state: str
    resource_type: str


class Metrics(Protocol):
    """The counters that a client calls when something happens. A gauge of its resources is not among them: read
    `XdsClient.resource_counts`.
    """

    def connected(self, *, target: str, server: str, value: bool) -> None:
        """`grpc.xds_client.connected`: the client gained or lost a working stream to the server."""

    def server_failure(self, *, target: str, server: str) -> None:
        """`grpc.xds_client.server_failure`: a server could not be reached, or a stream ended without a response."""

    def updates(self, *, target: str, server: str, resource_type: str, valid: int, invalid: int) -> None:
        """`grpc.xds_client.resource_updates_valid` and `…_invalid`: a response with these numbers of resources was
        read.
        """


class _Nobody:
    """Metrics that count nothing."""

    def connected(self, *, target: str, server: str, value: bool) -> None:
        pass

    def server_failure(self, *, target: str, server: str) -> None:
        pass

    def updates(self, *, target: str, server: str, resource_type: str, valid: int, invalid: int) -> None:
        pass


NO_METRICS: Metrics = _Nobody()
