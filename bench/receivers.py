"""Very many clients that only receive: wildcard clusters, each on a channel of its own, bytes in and bytes out.

They live in processes of their own. A response is not parsed: only its nonce is looked for, where both servers write
it. What is kept of it is when it came, by the system's monotonic clock, which all processes share.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any, Final

import grpc
from envoy.service.discovery.v3 import discovery_pb2
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # grpc-stubs do not know it

from xdscore.resource_types import CLUSTER

_SERVICE: Final = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
SOTW: Final = _SERVICE + "StreamAggregatedResources"
DELTA: Final = _SERVICE + "DeltaAggregatedResources"

_EXIT_S = 10
_NONCE_TAG = 0x2A
_NONCE_CHARS_MAX = 60


class Receivers:
    """The clients, from the scenario's side."""

    def __init__(self, pipes: list[Connection]) -> None:
        self._pipes = pipes

    def next_response(self, *, within_s: float) -> list[float]:
        """When each client received its next response, once all have. Raises TimeoutError."""
        deadline = time.monotonic() + within_s
        times: list[float] = []
        for pipe in self._pipes:
            if not pipe.poll(max(0.0, deadline - time.monotonic())):
                raise TimeoutError("not every client received a response")
            times += pipe.recv()
        return times


@contextmanager
def receivers(address: str, *, clients: int, delta: bool, processes: int = 2) -> Iterator[Receivers]:
    """So many clients of the server at `address`; they connect at once."""
    spawn = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    with ExitStack() as stack:
        for part in range(processes):
            ours, theirs = spawn.Pipe()
            numbers = range(part, clients, processes)
            process = spawn.Process(target=_main, args=(theirs, address, numbers, delta), daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join, _EXIT_S)
            stack.callback(process.kill)
            pipes.append(ours)
        yield Receivers(pipes)


def _main(pipe: Connection, address: str, numbers: range, delta: bool) -> None:
    asyncio.run(_Clients(pipe, len(numbers)).run(address, numbers, delta=delta))


class _Clients:
    """The clients of one process. A round ends when each has received one more response than in the one before."""

    def __init__(self, pipe: Connection, count: int) -> None:
        self._pipe = pipe
        self._times: list[list[float]] = []
        self._count = count

    async def run(self, address: str, numbers: range, *, delta: bool) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        async with asyncio.TaskGroup() as clients:
            for number in numbers:
                channel = grpc.aio.insecure_channel(address, options=options)
                clients.create_task(self._client(number, channel, delta=delta))

    async def _client(self, number: int, channel: Any, *, delta: bool) -> None:
        call = channel.stream_stream(DELTA if delta else SOTW)()
        await call.write(_first(number, delta=delta))
        ack = _ack_before_nonce(delta=delta)
        round_ = 0
        while (data := await call.read()) is not cygrpc.EOF:
            self._received(round_)
            round_ += 1
            nonce = _nonce(data)
            await call.write(b"".join((ack, bytes((len(nonce),)), nonce)))
        raise ConnectionError(f"a stream ended: {await call.code()} {await call.details()}")

    def _received(self, round_: int) -> None:
        now = time.monotonic()
        if round_ == len(self._times):
            self._times.append([])
        times = self._times[round_]
        times.append(now)
        if len(times) == self._count:
            self._pipe.send(times)


def _first(number: int, *, delta: bool) -> bytes:
    if delta:
        request: Any = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER.url, resource_names_subscribe=["*"])
    else:
        request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url)
    request.node.id = f"receiver-{number:05}"
    request.node.cluster = "bench"
    encoded: bytes = request.SerializeToString()
    return encoded


def _ack_before_nonce(*, delta: bool) -> bytes:
    """An ACK up to its nonce's length: `response_nonce` is field 6 of a delta request and 5 of a SotW one."""
    if delta:
        encoded: bytes = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER.url).SerializeToString()
        return encoded + b"\x32"
    encoded = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, version_info="1").SerializeToString()
    return encoded + b"\x2a"


def _nonce(response: bytes) -> bytes:
    """The last field of a response is its nonce, as long as it tells of no removal and no error."""
    for length in range(1, _NONCE_CHARS_MAX):
        start = len(response) - length
        if response[start - 2] == _NONCE_TAG and response[start - 1] == length:
            return response[start:]
    raise ValueError("a response does not end with its nonce")
