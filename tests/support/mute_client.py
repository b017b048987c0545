"""A client that asks and never answers what it is sent, or not for long."""

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
    """An open stream on which names are asked for. `responses`: those that came, of which it acknowledges the first
    `acknowledges` ones.
    """

    def __init__(self, channel: grpc.Channel, node: str, variant: Variant, acknowledges: int) -> None:
        self._node = node
        self._variant = variant
        self._acknowledges = acknowledges
        self._names: dict[str, tuple[str, ...]] = {}
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
        self._names[kind.url] = names
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
            for data in self._stream:
                if len(self.responses) < self._acknowledges:
                    self._requests.put(self._ack(data))
                self.responses.append(data)
        except grpc.RpcError:
            return

    def _ack(self, data: bytes) -> bytes:
        request: Any
        if self._variant is Variant.DELTA:
            delta = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
            request = discovery_pb2.DeltaDiscoveryRequest(type_url=delta.type_url, response_nonce=delta.nonce)
        else:
            sotw = discovery_pb2.DiscoveryResponse.FromString(data)
            request = discovery_pb2.DiscoveryRequest(
                type_url=sotw.type_url,
                resource_names=self._names[sotw.type_url],
                version_info=sotw.version_info,
                response_nonce=sotw.nonce,
            )
        return bytes(request.SerializeToString())

    def end(self) -> None:
        """End the stream."""
        self._requests.put(None)
        self._stream.cancel()
        self._reader.join(5)


@contextmanager
def mute_client(address: str, node: str, variant: Variant, *, acknowledges: int = 0) -> Iterator[MuteClient]:
    """A client that answers nothing but the first `acknowledges` responses, until the block ends."""
    with grpc.insecure_channel(address) as channel:
        client = MuteClient(channel, node, variant, acknowledges)
        try:
            yield client
        finally:
            client.end()
