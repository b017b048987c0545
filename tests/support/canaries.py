"""Many clients of several kinds, some of which refuse what has a certain word in it; and what each was ever sent.

Half speak SotW and half delta. Each follows all clusters, takes what it can take and refuses the rest resource by
resource, as gRPC does, and connects again when its stream ends. They have a process of their own, and remember by the
clock of the machine: whether a client ever had something is no word of the server's.
"""

import asyncio
import multiprocessing
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2

from xdscore.resource_types import CLUSTER

_SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
_PER_CHANNEL = 20
_EXIT_S = 10
_PAUSE_S = 0.3
_INVALID_ARGUMENT = 3
_REPORT, _LEAVE = "report", "leave"


@dataclass(frozen=True)
class Kind:
    """So many clients of one software. `refuses`: the word that a cluster must not have in it; empty: none."""

    agent: str
    version: str
    count: int
    refuses: str = ""


@dataclass
class Canary:
    """What one client remembers. `has`: the bytes of every cluster that it took. `sent`: of each cluster, when it was
    sent which bytes, oldest first; times are those of the machine's clock.
    """

    node_id: str
    kind: Kind
    has: dict[str, bytes] = field(default_factory=dict)
    sent: dict[str, list[tuple[float, bytes]]] = field(default_factory=dict)
    connected: bool = False

    def heard(self, name: str, word: str) -> bool:
        """Whether the client was ever sent this cluster with this word in it."""
        return any(word.encode() in data for _, data in self.sent.get(name, ()))

    def back_at(self, name: str, word: str) -> float | None:
        """When the client was sent another content of this cluster after one with this word; None: it was not."""
        after = None
        for at, data in self.sent.get(name, ()):
            if word.encode() in data:
                after = None
            elif after is None:
                after = at
        return after


class Canaries:
    """The clients in their process, from the test's side."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def report(self) -> Sequence[Canary]:
        """What each client remembers."""
        self._pipe.send(_REPORT)
        told: Sequence[Canary] = self._pipe.recv()
        return told


@contextmanager
def canaries(ads_port: int, *kinds: Kind) -> Iterator[Canaries]:
    """Run clients of these kinds until the block ends."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_main, args=(theirs, ads_port, kinds), daemon=True)
    process.start()
    try:
        yield Canaries(ours)
        ours.send(_LEAVE)
        process.join(_EXIT_S)
    finally:
        process.kill()
        process.join()


def _main(pipe: Connection, ads_port: int, kinds: Sequence[Kind]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that watches; it ends this one
    asyncio.run(_run(pipe, ads_port, kinds))


async def _run(pipe: Connection, ads_port: int, kinds: Sequence[Kind]) -> None:
    clients: list[_Client] = []
    channel = None
    for kind in kinds:
        for number in range(kind.count):
            if len(clients) % _PER_CHANNEL == 0:
                channel = _channel(ads_port)
            assert channel is not None
            node_id = f"{kind.agent.split()[-1]}-{number}"
            clients.append(_Client(channel, Canary(node_id, kind), delta=len(clients) % 2 == 0))
    tasks = [asyncio.create_task(client.run()) for client in clients]
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, pipe.recv) != _LEAVE:
        pipe.send([client.canary for client in clients])
    for task in tasks:
        task.cancel()


def _channel(port: int) -> grpc.aio.Channel:
    options = (
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # A connection of its own: the server admits a hundred streams on each.
        ("grpc.use_local_subchannel_pool", 1),
    )
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)


class _Client:
    """One client; what it has outlives its streams, as it does in a real one."""

    def __init__(self, channel: grpc.aio.Channel, canary: Canary, *, delta: bool) -> None:
        self.canary = canary
        self._channel = channel
        self._delta = delta
        self._versions: dict[str, str] = {}
        self._accepted = ""

    async def run(self) -> None:
        while True:
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self._stream()
            self.canary.connected = False
            await asyncio.sleep(_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, keeps no secret

    async def _stream(self) -> None:
        method = "DeltaAggregatedResources" if self._delta else "StreamAggregatedResources"
        # grpc-stubs ask for serialisers; without them bytes go as they are.
        open_stream: Any = self._channel.stream_stream
        call: grpc.aio.StreamStreamCall[bytes, bytes] = open_stream(_SERVICE + method)()
        await call.write(self._first().SerializeToString())
        while isinstance(data := await call.read(), bytes):
            self.canary.connected = True
            answer = self._take_delta(data) if self._delta else self._take_full(data)
            await call.write(answer.SerializeToString())

    def _first(self) -> Any:
        request: Any
        if self._delta:
            request = discovery_pb2.DeltaDiscoveryRequest(
                type_url=CLUSTER.url, resource_names_subscribe=["*"], initial_resource_versions=self._versions
            )
        else:
            request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, version_info=self._accepted)
        request.node.id = self.canary.node_id
        request.node.user_agent_name = self.canary.kind.agent
        request.node.user_agent_version = self.canary.kind.version
        return request

    def _take_delta(self, data: bytes) -> discovery_pb2.DeltaDiscoveryRequest:
        response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
        refused = []
        for index, each in enumerate(response.resources):
            if self._takes(each.name, each.resource.value):
                self._versions[each.name] = each.version
            else:
                refused.append((index, each.name))
        for name in response.removed_resources:
            self._versions.pop(name, None)
            self.canary.has.pop(name, None)
        answer = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER.url, response_nonce=response.nonce)
        self._complain(answer, refused)
        return answer

    def _take_full(self, data: bytes) -> discovery_pb2.DiscoveryRequest:
        response = discovery_pb2.DiscoveryResponse.FromString(data)
        refused, names = [], set()
        for index, each in enumerate(response.resources):
            name = cluster_pb2.Cluster.FromString(each.value).name
            names.add(name)
            if not self._takes(name, each.value):
                refused.append((index, name))
        for name in self.canary.has.keys() - names:
            del self.canary.has[name]
        if not refused:
            self._accepted = response.version_info
        answer = discovery_pb2.DiscoveryRequest(
            type_url=CLUSTER.url, response_nonce=response.nonce, version_info=self._accepted
        )
        self._complain(answer, refused)
        return answer

    def _takes(self, name: str, data: bytes) -> bool:
        """Remember what was sent, and take it unless it is refused; whether it was taken."""
        sent = self.canary.sent.setdefault(name, [])
        if not sent or sent[-1][1] != data:
            sent.append((time.time(), data))
        word = self.canary.kind.refuses
        if word and word.encode() in data:
            return False
        self.canary.has[name] = data
        return True

    def _complain(self, answer: Any, refused: Sequence[tuple[int, str]]) -> None:
        if refused:
            told = [f"resource index {index}: {name}: INVALID_ARGUMENT: not supported" for index, name in refused]
            answer.error_detail.code = _INVALID_ARGUMENT
            answer.error_detail.message = f"xDS response validation errors: [{'; '.join(told)}]"
