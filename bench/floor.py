"""The least that a fan-out costs in Python: a server without identity, access, errors, ledger or facts.

Plain `grpc.aio`; bytes that were encoded once are handed to the transport. Every stream is sent everything at first,
and on a change the whole state (SotW) or what changed (delta). Started as a program of its own: it prints its port, and
each line on its standard input is a change.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import any_pb2, json_format

from bench.receivers import DELTA, SOTW
from bench.resources import cluster, cluster_name
from xdscore.resource_types import CLUSTER

# As many streams as a driver wants on one connection.
_OPTIONS = (("grpc.max_concurrent_streams", 10_000), ("grpc.server.max_pending_requests", 10_000))


class Floor:
    """The least server: the responses that streams are sent, prepared once, and an event that sends them."""

    def __init__(self, resources: int) -> None:
        self._clusters = [_any(number, 1) for number in range(resources)]
        self._version = 1
        self._changed = asyncio.Event()
        self._encode()

    def change(self) -> None:
        """Change the first cluster and wake every stream."""
        self._version += 1
        self._clusters[0] = _any(0, self._version)
        self._encode()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def sotw(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        """Serve a SotW stream: yields the bytes of each response."""
        async for nonce in self._wakes(requests):
            yield self._whole + nonce

    async def delta(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        """Serve a delta stream: yields the bytes of each response."""
        first = True
        async for nonce in self._wakes(requests):
            yield (self._all if first else self._difference) + nonce
            first = False

    async def _wakes(self, requests: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the encoded nonce of each response, when it is time to send it."""
        await anext(requests)
        reading = asyncio.create_task(_drain(requests))
        number = 0
        try:
            while True:
                changed = self._changed
                number += 1
                nonce = str(number).encode()
                yield b"".join((b"\x2a", bytes((len(nonce),)), nonce))
                await changed.wait()
        finally:
            reading.cancel()

    def _encode(self) -> None:
        version = str(self._version)
        whole = discovery_pb2.DiscoveryResponse(version_info=version, resources=self._clusters, type_url=CLUSTER.url)
        self._whole = whole.SerializeToString()
        named = [
            discovery_pb2.Resource(name=cluster_name(number), version=version, resource=each)
            for number, each in enumerate(self._clusters)
        ]
        self._all = discovery_pb2.DeltaDiscoveryResponse(resources=named, type_url=CLUSTER.url).SerializeToString()
        changed = discovery_pb2.DeltaDiscoveryResponse(resources=named[:1], type_url=CLUSTER.url)
        self._difference = changed.SerializeToString()


def _any(number: int, version: int) -> any_pb2.Any:
    manifest = cluster(number, timeout_s=version)
    message = cluster_pb2.Cluster()
    json_format.ParseDict({name: value for name, value in manifest.items() if name != "@type"}, message)
    return any_pb2.Any(type_url=CLUSTER.url, value=message.SerializeToString())


async def _drain(requests: AsyncIterator[bytes]) -> None:
    async for _ in requests:
        pass


async def _main(resources: int) -> None:
    floor = Floor(resources)
    methods = {
        SOTW.rpartition("/")[2]: grpc.stream_stream_rpc_method_handler(floor.sotw),
        DELTA.rpartition("/")[2]: grpc.stream_stream_rpc_method_handler(floor.delta),
    }
    server = grpc.aio.server(options=_OPTIONS)
    service = SOTW.split("/")[1]
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    changes = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(changes), sys.stdin)
    while await changes.readline():
        floor.change()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
