"""Many clients that cost little: wildcard clusters over SotW, every response refused from a word on.

They have a process of their own, so that what they cost is nobody else's. Bytes in and bytes out; nothing is kept of a
response but its nonce.
"""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import grpc
from envoy.service.discovery.v3 import discovery_pb2
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # grpc-stubs do not know it

from xdscore.resource_types import CLUSTER

_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
# A server admits so many streams on one connection, and so many connections of one address.
_STREAMS_PER_CHANNEL = 50
_EXIT_S = 10

# Words between the processes.
_REFUSE, _COUNT, _LEAVE = "refuse", "count", "leave"


class Refusers:
    """A fleet of clients that refuse responses, as the scenario controls it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def accepted(self, *, within_s: float) -> None:
        """Return once each client has accepted a first response. Raises TimeoutError."""
        if not self._pipe.poll(within_s):
            raise TimeoutError("the clients were not served")
        self._pipe.recv()

    def refuse(self) -> None:
        """Let every client refuse every response from now on."""
        self._pipe.send(_REFUSE)
        self._pipe.recv()

    def refused(self) -> Counter[int]:
        """The number of responses that each client has refused, by the client's number."""
        self._pipe.send(_COUNT)
        counted: Counter[int] = self._pipe.recv()
        return counted


@contextmanager
def refusers(address: str, *, clients: int, text: str) -> Iterator[Refusers]:
    """Connected clients of the server at `address`, for as long as the block runs; `text` is the text of
    their NACKs.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_main, args=(theirs, address, clients, text), daemon=True)
    process.start()
    try:
        yield Refusers(ours)
        ours.send(_LEAVE)
        process.join(_EXIT_S)
    finally:
        process.kill()
        process.join()


def _main(pipe: Connection, address: str, clients: int, text: str) -> None:
    asyncio.run(_Clients(pipe, address, clients, text).run())


class _Clients:
    """The refusing clients, in the process that runs them."""

    def __init__(self, pipe: Connection, address: str, clients: int, text: str) -> None:
        self._pipe = pipe
        self._address = address
        self._clients = clients
        self._text = text
        self._refusing = False
        self._waiting = clients
        self._refused: Counter[int] = Counter()
        self._left = asyncio.Event()

    async def run(self) -> None:
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._told)
        count = -(-self._clients // _STREAMS_PER_CHANNEL)
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.aio.insecure_channel(self._address, options=options) for _ in range(count)]
        tasks = [asyncio.create_task(self._client(number, channels[number % count])) for number in range(self._clients)]
        leaving = asyncio.create_task(self._left.wait())
        done, _ = await asyncio.wait((*tasks, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # a stream that ended is a failure, which this process then ends with
        for channel in channels:
            await channel.close(grace=None)

    def _told(self) -> None:
        try:
            word = self._pipe.recv()
        except EOFError:  # the scenario is gone
            word = _LEAVE
        if word == _LEAVE:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._left.set()
            return
        self._refusing = self._refusing or word == _REFUSE
        self._pipe.send(self._refused)

    async def _client(self, number: int, channel: Any) -> None:
        call = channel.stream_stream(_METHOD)()
        request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url)
        request.node.id = f"refuser-{number:05}"
        request.node.cluster = "storm"
        request.node.user_agent_name = "envoy"
        await call.write(request.SerializeToString())
        accepted = ""
        while (data := await call.read()) is not cygrpc.EOF:
            response = discovery_pb2.DiscoveryResponse.FromString(data)
            answer = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, response_nonce=response.nonce)
            if self._refusing:
                self._refused[number] += 1
                answer.error_detail.code = 13
                answer.error_detail.message = self._text
            else:
                accepted = response.version_info
            answer.version_info = accepted
            await call.write(answer.SerializeToString())
            if not accepted or self._refusing:
                continue
            self._waiting -= 1
            if self._waiting == 0:
                self._pipe.send(True)
        raise ConnectionError(f"a stream ended: {await call.code()} {await call.details()}")
