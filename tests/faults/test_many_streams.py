"""What streams leave behind, and how many there may be: a client that flaps, memory that runs short (F20, F32).

The server has a process of its own, whose memory, files and tasks are looked at.
"""

import asyncio
import sys
from collections import Counter
from contextlib import AsyncExitStack, suppress

import grpc
import pytest
from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2

from tests.support.ads import config, raw_call
from tests.support.ads_apart import Held, Inside, ads_apart, held
from tests.support.ads_client import ADS, Client, cluster
from tests.support.figures import measured
from tests.support.waiting import eventually
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("large"),
    pytest.mark.skipif(sys.platform != "linux", reason="memory and files are read as Linux tells them"),
]

CYCLES, WARM_UP, AT_ONCE = 20_000, 2_000, 10
SLOPE_BYTES = 300
MEMORY_MIB = 160
_STREAMS_OF_A_CHANNEL = 100
_ALONE = [("grpc.use_local_subchannel_pool", 1)]


def publish(inside: Inside, timeout_s: int) -> None:
    """A cluster."""
    inside.publish([cluster("a", timeout_s)])


async def flap(address: str, cycles: int) -> None:
    """Connect, subscribe, read the answer and drop the connection, so many times, a few clients at once."""
    left = iter(range(cycles))

    async def client(number: int) -> None:
        for _ in left:
            async with grpc.aio.insecure_channel(address, options=_ALONE) as channel:
                call = raw_call(channel, ADS + "StreamAggregatedResources")
                node = base_pb2.Node(id=f"flapping-{number}")
                await Client(call, channel, delta=False).ask(node=node, type_url=CLUSTER.url)
                assert isinstance(await call.read(), bytes)

    async with asyncio.TaskGroup() as clients:
        for number in range(AT_ONCE):
            clients.create_task(client(number))


def test_f20__client_flaps_20_000_times__nothing_of_it_stays() -> None:
    with ads_apart() as server:
        server.do(publish, 1)
        start = server.do(held)

        def at_rest() -> Held:
            return eventually(
                lambda: server.do(held),
                lambda now: now.idle and (now.tasks, now.files) == (start.tasks, start.files),
                within_s=90,  # a dropped connection that said no goodbye is noticed by a ping
            )

        asyncio.run(flap(server.address, WARM_UP))
        before = at_rest()

        asyncio.run(flap(server.address, CYCLES - WARM_UP))

        slope = (at_rest().resident_bytes - before.resident_bytes) / (CYCLES - WARM_UP)
        measured(bytes_per_cycle=slope)
        assert slope <= SLOPE_BYTES


class Crowd:
    """Streams that stay open, a channel for each hundred."""

    def __init__(self, address: str, stack: AsyncExitStack) -> None:
        self._address = address
        self._stack = stack
        self.served: list[grpc.aio.StreamStreamCall[bytes, bytes]] = []
        self.refused: Counter[tuple[grpc.StatusCode, str]] = Counter()

    async def grow(self) -> None:
        """A hundred more."""
        channel = await self._stack.enter_async_context(grpc.aio.insecure_channel(self._address, options=_ALONE))
        number = len(self.served) + self.refused.total()
        await asyncio.gather(*(self._open(channel, f"n{number + each}") for each in range(_STREAMS_OF_A_CHANNEL)))

    async def _open(self, channel: grpc.aio.Channel, node: str) -> None:
        call = raw_call(channel, ADS + "StreamAggregatedResources")
        client = Client(call, channel, delta=False)
        await client.ask(node=base_pb2.Node(id=node), type_url=CLUSTER.url)
        with suppress(grpc.aio.AioRpcError):
            data = await call.read()
            if isinstance(data, bytes):
                first = discovery_pb2.DiscoveryResponse.FromString(data)
                await client.ask(type_url=CLUSTER.url, response_nonce=first.nonce)
                self.served.append(call)
                return
        self.refused[await call.code(), await call.details()] += 1

    async def are_served_on(self) -> bool:
        """Whether each of those that were admitted receives something more."""
        async with asyncio.timeout(60):
            received = await asyncio.gather(*(call.read() for call in self.served))
        return all(isinstance(data, bytes) for data in received)


async def test_f32__twice_the_streams_that_memory_allows__are_refused_and_the_others_are_served_on() -> None:
    with ads_apart(config(limits=Limits(memory_mib=MEMORY_MIB))) as server:
        server.do(publish, 1)
        async with AsyncExitStack() as stack:
            crowd = Crowd(server.address, stack)
            while not crowd.refused:
                await crowd.grow()
            allowed = len(crowd.served)
            while len(crowd.served) + crowd.refused.total() < 2 * allowed:
                await crowd.grow()
            now = server.do(held)

            server.do(publish, 2)

            assert await crowd.are_served_on()
            measured(streams=allowed, resident_mib=now.resident_bytes >> 20)
            text = "This server is short of memory; try another one, or later."
            assert set(crowd.refused) == {(grpc.StatusCode.RESOURCE_EXHAUSTED, text)}
            assert now.resident_bytes < MEMORY_MIB * 1024 * 1024
