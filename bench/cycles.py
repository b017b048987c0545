"""Clients that come and go: each connects, is told what it may have and what not, accepts or refuses it, and leaves.

They have a process of their own.
"""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.synchronize import Event
from typing import Any, Final, Protocol

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from bench.receivers import DELTA, OPTIONS, SOTW, Asks, repeated
from bench.resources import cluster_name

# So many different clients there are, so that the fleet is one and not a new one every second.
_CLIENTS: Final = 500
_REFUSES_EACH = 5
_TEXT: Final = f"Error adding/updating cluster(s) {cluster_name(0)}: not today"
_ANSWER_S = 60.0
_EXIT_S = 90.0


class Counted(Protocol):
    """How many clients have come and gone so far (`value`)."""

    value: int


@contextmanager
def cycles(address: str, *, at_once: int, also: tuple[str, ...]) -> Iterator[Counted]:
    """Let clients connect to the server at `address`, ask for everything and for the names in `also`, and leave;
    `at_once` of them at a time, until the end of the block. Then the last ones leave. Raises RuntimeError when one was
    not served.
    """
    spawn = multiprocessing.get_context("spawn")
    done, leave = spawn.Value("L", 0), spawn.Event()
    process = spawn.Process(target=_main, args=(address, at_once, also, done, leave), daemon=True)
    process.start()
    try:
        yield done
        leave.set()
        process.join(_EXIT_S)
        if process.exitcode != 0:
            raise RuntimeError(f"a client was not served: their process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _main(address: str, at_once: int, also: tuple[str, ...], done: Any, leave: Event) -> None:
    asyncio.run(_run(address, at_once, also, done, leave))


async def _run(address: str, at_once: int, also: tuple[str, ...], done: Any, leave: Event) -> None:
    numbers = count()

    async def one_after_the_other() -> None:
        while not leave.is_set():
            async with asyncio.timeout(_ANSWER_S):
                await _cycle(address, next(numbers), also)
            done.value += 1

    async with asyncio.TaskGroup() as clients:
        for _ in range(at_once):
            clients.create_task(one_after_the_other())


async def _cycle(address: str, number: int, also: tuple[str, ...]) -> None:
    """Let one client connect, receive and leave. Raises ConnectionError when it does not receive what it must."""
    delta = number % 2 == 0
    asks = Asks(delta=delta, also=also)
    kind: Any = discovery_pb2.DeltaDiscoveryResponse if delta else discovery_pb2.DiscoveryResponse
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        open_stream: Any = channel.stream_stream  # grpc-stubs ask for serialisers
        call = open_stream(DELTA if delta else SOTW)()
        await call.write(asks.first(number % _CLIENTS))
        data = await call.read()
        if not isinstance(data, bytes):
            raise ConnectionError(f"a stream ended: {await call.code()} {await call.details()}")
        response = kind.FromString(data)
        if {each.resource_name.name for each in response.resource_errors} != set(also):
            raise ConnectionError(f"told of {response.resource_errors}, not of {also}")
        version = b"" if delta else response.version_info.encode()
        answer = asks.ack(number) + repeated(response.nonce.encode(), version, delta=delta)
        if number % _REFUSES_EACH == 0:
            request: Any = (discovery_pb2.DeltaDiscoveryRequest if delta else discovery_pb2.DiscoveryRequest)()
            request.error_detail.code = 13
            request.error_detail.message = _TEXT
            answer += request.SerializeToString()
        await call.write(answer)
        await call.done_writing()
        while isinstance(await call.read(), bytes):  # the server has read the answer when it ends the stream
            pass
