"""A client of ADS spoken by hand: one stream, request by request."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import base_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.service.discovery.v3 import discovery_pb2
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # grpc-stubs do not know it

from tests.support.ads import Running, raw_call

ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
NODE = base_pb2.Node(id="client-1", cluster="fleet")


@dataclass
class Client:
    """One ADS stream whose requests a test writes itself."""

    call: "grpc.aio.StreamStreamCall[bytes, bytes]"
    channel: grpc.aio.Channel
    delta: bool
    reading: asyncio.Future[object] | None = None

    async def ask(self, **fields: object) -> None:
        message = discovery_pb2.DeltaDiscoveryRequest if self.delta else discovery_pb2.DiscoveryRequest
        await self._send(message(**fields).SerializeToString())

    async def _send(self, data: bytes) -> None:
        """Write a request; nothing happens where the call has ended: `ended` says how it did.

        Not by `write`: where a refusal overtakes a request, that puts its own failure in place of the server's status.
        """
        call: Any = self.call
        await call._metadata_sent.wait()
        with suppress(cygrpc.InternalError):
            await call._cython_call.send_serialized_message(data)

    async def answer(self) -> discovery_pb2.DiscoveryResponse:
        message = discovery_pb2.DeltaDiscoveryResponse if self.delta else discovery_pb2.DiscoveryResponse
        data = await self._read(5)
        assert isinstance(data, bytes), f"no answer: {data}"
        return message.FromString(data)

    async def silent(self, for_s: float = 0.15) -> bool:
        return await self._read(for_s) is None

    async def ended(self) -> tuple[grpc.StatusCode, str, int]:
        """Read to the end of the stream; its status, text and the number of responses that came before."""
        responses = 0
        while isinstance(await self._read(5), bytes):
            responses += 1
        async with asyncio.timeout(5):
            return await self.call.code(), await self.call.details(), responses

    async def _read(self, longest_s: float) -> object:
        """Read the next response, for at most so many seconds: its bytes, gRPC's mark for the end of the stream, or
        None for nothing. A cancelled read would cancel the call.
        """
        if self.reading is None:
            self.reading = asyncio.ensure_future(self.call.read())
        done, _ = await asyncio.wait({self.reading}, timeout=longest_s)
        if not done:
            return None
        read, self.reading = self.reading, None
        return read.exception() or read.result()


def connect(run: Running, method: str = ADS + "StreamAggregatedResources") -> Client:
    channel = grpc.aio.insecure_channel(run.address, options=[("grpc.use_local_subchannel_pool", 1)])
    return Client(raw_call(channel, method), channel, "/Delta" in method)


async def until(condition: object, longest_s: float = 5.0) -> None:
    async with asyncio.timeout(longest_s):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110 - nothing tells a test
            await asyncio.sleep(0.01)


def cluster(name: str, connect_timeout_s: int = 1) -> cluster_pb2.Cluster:
    made = cluster_pb2.Cluster(name=name)
    made.connect_timeout.seconds = connect_timeout_s
    return made


def endpoints(name: str) -> endpoint_pb2.ClusterLoadAssignment:
    return endpoint_pb2.ClusterLoadAssignment(cluster_name=name)
