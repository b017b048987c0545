"""What callers make a server keep for them while they are open or wait, and that it lets go of it (threat 10)."""

import asyncio
import gc
import tracemalloc
from collections.abc import Coroutine

import grpc
import pytest
from envoy.config.core.v3 import base_pb2

from adsserver.limits.budgets import Budgets
from tests.services.ads.test_budgets import MIB, as_identity, requests
from tests.services.ads.test_paces import GOOD, Clock, two_callers
from tests.support.ads import config, running
from tests.support.ads_client import NODE, cluster, connect, until
from xdscore.auth_modes import AuthMode
from xdscore.callers import CallerKey
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT

HEALTH = "/grpc.health.v1.Health/Check"


async def test_stream__what_its_node_says_of_itself__counts_like_names() -> None:
    async with running(config(limits=Limits(name_bytes_per_stream=64 * 1024))) as run:
        run.publish(cluster("a"))
        client = connect(run)
        node = base_pb2.Node(id="n")
        node.metadata.update({f"{number:03}": "\N{GRINNING FACE}" * 256 for number in range(64)})

        await client.ask(node=node, type_url=CLUSTER.url)

        code, details, _ = await client.ended()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "what its node says of itself" in details
        await until(lambda: run.server.idle)


async def test_stream__that_was_read__keeps_nothing_of_the_bytes_of_its_last_request() -> None:
    async with running(config()) as run:
        run.publish(cluster("a"))
        clients = [connect(run) for _ in range(4)]
        for client in clients:
            await client.ask(node=NODE, type_url=CLUSTER.url)
            await client.answer()
        large = {"type_url": ENDPOINT.url, "resource_names": ["e"], "version_info": "v" * 8 * MIB}
        gc.collect()
        tracemalloc.start()
        try:
            for client in clients:
                await client.ask(**large)
            await until(lambda: requests(run, "endpoint") == 4)
            for client in clients:
                await client.answer()
            del large
            gc.collect()

            # All four wait for their next request.
            assert tracemalloc.get_traced_memory()[0] < 8 * MIB
        finally:
            tracemalloc.stop()


async def test_calls__that_take_no_place_of_the_server__are_no_more_than_streams_may_be() -> None:
    async with running(config(auth=AuthMode.TOKEN, limits=Limits(streams_per_replica=2))) as run:
        held = [as_identity(run, f"caller-{number}", HEALTH) for number in range(5)]
        await until(lambda: sum(client.call.done() for client in held) == 3, longest_s=2.0)
        ends = [(await client.call.code(), await client.call.details()) for client in held if client.call.done()]
        for client in held:
            client.call.cancel()
        await until(lambda: run.server.idle)
        later = as_identity(run, "later", HEALTH)
        await later._send(b"")

        assert await later._read(5)
        assert set(ends) == {
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "This server answers 2 calls, as many as it may; try again later.")
        }


async def waits(call: Coroutine[object, object, object]) -> bool:
    """Whether this does not end at once; cancelled if so."""
    try:
        await asyncio.wait_for(call, 0.01)
    except TimeoutError:
        return True
    return False


def owing(budgets: Budgets, number: int) -> CallerKey:
    """A caller that is here and must wait for whatever comes next."""
    key = CallerKey(identity=f"bad-{number}")
    budgets.enter(key).spend(10.0)
    return key


async def test_turned_away__callers_without_end__no_more_wait_than_streams_may_be() -> None:
    budgets, _, _ = two_callers(Clock(), streams_per_replica=2)
    keys = [owing(budgets, number) for number in range(3)]

    waiting = [asyncio.create_task(budgets.turned_away(key)) for key in keys[:2]]
    await asyncio.sleep(0)
    beyond = await waits(budgets.turned_away(keys[2]))
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)

    assert not beyond
    assert await waits(budgets.turned_away(keys[2]))


@pytest.mark.parametrize("short", [False, True])
async def test_turned_away__while_memory_is_short__nobody_waits(short: bool) -> None:
    budgets = Budgets(Limits(), Clock(), lambda: short)
    budgets.enter(GOOD)
    budgets.loop_time.spend(3600.0, 0.0)

    assert await waits(budgets.turned_away(owing(budgets, 1))) is not short
