"""A client that asks and never answers what it is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread
from typing import Any

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from xdsclient import Variant
from xdscore.resource_types import ResourceType

_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/{}AggregatedResources"


class MuteClient:
    """An open stream on which names are asked for. `responses`: those that came, of which it acknowledges none."""

    def __init__(self, channel: grpc.Channel, node: str, variant: Variant) -> None:
        self._node = node
        self._variant = variant
        self._requests: Queue[bytes | None] = Queue()
        self.responses: list[bytes] = []
        open_stream: Any = channel.stream_stream(
            _METHOD.format("Delta" if variant is Variant.DELTA else "Stream"), None, None
        )
        self._stream = open_stream(iter(self._requests.get, None))
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, kind: ResourceType, *names: str) -> None:
        """Subscribe to these names of a type."""
        if self._variant is Variant.DELTA:
            delta = discovery_pb2.DeltaDiscoveryRequest(type_url=kind.url, resource_names_subscribe=names)
            delta.node.id = self._node
            self._requests.put(delta.SerializeToString())
        else:
            sotw = discovery_pb2.DiscoveryRequest(type_url=kind.url, resource_names=names)
            sotw.node.id = self._node
            self._requests.put(sotw.SerializeToString())

    def _read(self) -> None:
        try:
            self.responses.extend(self._stream)
        except grpc.RpcError:
            return

    def end(self) -> None:
        """End the stream."""
        self._requests.put(None)
        self._stream.cancel()
        self._reader.join(5)


@contextmanager
def mute_client(address: str, node: str, variant: Variant) -> Iterator[MuteClient]:
    """A client that answers nothing, until the block ends."""
    with grpc.insecure_channel(address) as channel:
        client = MuteClient(channel, node, variant)
        try:
            yield client
        finally:
            client.end()
