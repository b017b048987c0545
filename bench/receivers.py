"""Very many clients that only receive, each on a channel of its own, bytes in and bytes out.

They live in processes of their own. A response is not parsed where that can be avoided: only its nonce and version are
looked for, where the server wrote those before. What is kept of it is when it came, by the system's monotonic clock,
which all processes share.
"""

import asyncio
import multiprocessing
import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # grpc-stubs do not know it

from bench.light_clients import LightClient, run
from bench.resources import cluster_name, route_name
from xdscore.resource_types import CLUSTER, ROUTE

_SERVICE: Final = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
SOTW: Final = _SERVICE + "StreamAggregatedResources"
DELTA: Final = _SERVICE + "DeltaAggregatedResources"
# Each client has a connection of its own, also to a server that another client of the process talks to.
OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)

_EXIT_S = 10
_POLL_S = 0.01
_PAUSE_S = 0.1
_SPARE_FILES = 500
_NONCE_TAG = 0x2A
_VERSION_TAG = 0x0A
_ONE_BYTE = 0x7F  # what the length of a field is at most, if it is said in one byte
_IN_FRONT_BYTES = 16
_STRIDE = 7  # from one client's names to the next one's: no two of them ask for the same

# Words between the processes.
_COUNT, _TAKE, _SEEN = "count", "take", "seen"


@dataclass(frozen=True, slots=True)
class Asks:
    """What the clients of a scenario ask for, and the nodes that they send.

    `each`, `of`: each client asks for `each` names out of `of`, different ones; with `each` 0 for everything of the
        type and for the names in `also`.
    `workloads`: the values of node.cluster, which the clients have in turn.
    `errors`: whether they want to be told why they do not have a resource.
    `reads`: whether they read the clusters that they receive, which costs them time.
    """

    delta: bool = False
    type_url: str = CLUSTER.url  # not the type itself: that is one object in each process
    each: int = 0
    of: int = 1
    also: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ("bench",)
    errors: bool = True
    reads: bool = False

    def wants(self, client: int, number: int) -> bool:
        """Whether the client with this number subscribes by name to the resource with that number."""
        return (number - client * _STRIDE) % self.of < self.each

    def first(self, client: int) -> bytes:
        """The bytes of the first request of the client with this number."""
        names = self._names(client)
        request: Any
        if self.delta:
            request = discovery_pb2.DeltaDiscoveryRequest(type_url=self.type_url, resource_names_subscribe=names)
        else:
            request = discovery_pb2.DiscoveryRequest(type_url=self.type_url, resource_names=names)
        request.node.id = f"receiver-{client:05}"
        request.node.cluster = self.workloads[client % len(self.workloads)]
        if not self.errors:
            request.node.metadata["parley.resource_errors"] = "off"
        encoded: bytes = request.SerializeToString()
        return encoded

    def ack(self, client: int) -> bytes:
        """The bytes of an ACK of the client with this number, but for what it repeats of the response (`repeated`)."""
        request: Any
        if self.delta:
            request = discovery_pb2.DeltaDiscoveryRequest(type_url=self.type_url)
        else:  # which says with every request what it asks for
            request = discovery_pb2.DiscoveryRequest(type_url=self.type_url, resource_names=self._names(client))
        encoded: bytes = request.SerializeToString()
        return encoded

    def _names(self, client: int) -> list[str]:
        if self.each:
            first = client * _STRIDE
            return [_name(self.type_url, number % self.of) for number in range(first, first + self.each)]
        return ["*", *self.also] if self.delta or self.also else []


@dataclass(frozen=True, slots=True)
class Received:
    """What clients received since this was last asked. `times`: for each client that received something, when it last
    did;
    `responses`: how many responses there were in all.
    """

    times: tuple[float, ...]
    responses: int


class Receivers:
    """Controls receiving clients that run in other processes."""

    def __init__(self, pipes: list[Connection], count: int) -> None:
        self._pipes = pipes
        self._count = count

    def next_response(self, *, within_s: float, by: int | None = None) -> list[float]:
        """Wait until all clients, or `by` of them, have received a response; returns the times at which they did.
        Raises TimeoutError after `within_s` seconds.
        """
        want = self._count if by is None else by
        deadline = time.monotonic() + within_s
        while (have := sum(self._ask(_COUNT))) < want:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{have} of {want} clients received a response within {within_s:g} s")
            time.sleep(_POLL_S)
        return list(self.take().times)

    def take(self) -> Received:
        """What clients received since the last call of this or of `next_response`."""
        parts: list[Received] = self._ask(_TAKE)
        times = tuple(moment for part in parts for moment in part.times)
        return Received(times, sum(part.responses for part in parts))

    def seen(self) -> list[tuple[int, str, int, float]]:
        """The clusters that clients which read them received since the last call, each as (number of the client, name,
        connect timeout in seconds, time).
        """
        return [each for part in self._ask(_SEEN) for each in part]

    def _ask(self, word: str) -> list[Any]:
        for pipe in self._pipes:
            pipe.send(word)
        return [pipe.recv() for pipe in self._pipes]


@contextmanager
def receivers(
    address: str,
    *,
    clients: int,
    asks: Asks,
    processes: int = 2,
    per_s: int = 0,
    stays: bool = False,
    light: bool = False,
) -> Iterator[Receivers]:
    """Connect `clients` clients to the server at `address`, all at once or `per_s` of them each second, until the end
    of the block.

    `stays`: a client whose stream ends connects again; otherwise that is a failure. `light`: the clients are those of
        `bench.light_clients` in place of gRPC's; these never stay. Raises RuntimeError when the operating system lets a
        process open too few files.
    """
    needed, hard = -(-clients // processes) + _SPARE_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise RuntimeError(
            f"{needed} open files are needed and {hard} allowed: raise `ulimit -Hn`, or use fewer clients"
        )
    spawn = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    with ExitStack() as stack:
        for part in range(processes):
            ours, theirs = spawn.Pipe()
            fleet = _Fleet(address, range(part, clients, processes), asks, per_s, stays, light)
            process = spawn.Process(target=_main, args=(theirs, fleet), daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join, _EXIT_S)
            stack.callback(process.kill)
            pipes.append(ours)
        yield Receivers(pipes, clients)


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The clients that run in one process, out of all clients of a scenario; `numbers` are the numbers of these."""

    address: str
    numbers: range
    asks: Asks
    per_s: int
    stays: bool
    light: bool


def _main(pipe: Connection, fleet: _Fleet) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = _Clients(pipe, fleet)
    if fleet.light:
        clients.run_light()
    else:
        asyncio.run(clients.run())


class _Clients:
    def __init__(self, pipe: Connection, fleet: _Fleet) -> None:
        self._pipe = pipe
        self._fleet = fleet
        self._repeats = Repeats(delta=fleet.asks.delta)
        self._came: dict[int, float] = {}
        self._responses = 0
        self._seen: list[tuple[int, str, int, float]] = []

    def run_light(self) -> None:
        """Run the clients of `bench.light_clients` until the scenario is gone."""
        asks, address, per_s = self._fleet.asks, self._fleet.address, self._fleet.per_s

        def connect(number: int) -> LightClient:
            ack = asks.ack(number)

            def answer(response: bytes) -> bytes:
                self._came[number] = time.monotonic()
                self._responses += 1
                if asks.reads:
                    self._read(number, response, self._came[number])
                return ack + self._repeats.of(response)

            return LightClient(address, DELTA if asks.delta else SOTW, asks.first(number), answer)

        start = ((number / per_s if per_s else 0.0, partial(connect, number)) for number in self._fleet.numbers)
        run(start, self._pipe.fileno(), self._told)

    async def run(self) -> None:
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._heard)
        async with asyncio.TaskGroup() as clients:
            for number in self._fleet.numbers:
                clients.create_task(self._client(number))

    def _heard(self) -> None:
        if not self._told():
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())

    def _told(self) -> bool:
        """Answer what the scenario asks; returns whether it is still there. When it is gone it ends this process."""
        try:
            word = self._pipe.recv()
        except EOFError:
            return False
        if word == _COUNT:
            self._pipe.send(len(self._came))
        elif word == _SEEN:
            self._pipe.send(self._seen)
            self._seen = []
        else:
            self._pipe.send(Received(tuple(self._came.values()), self._responses))
            self._came, self._responses = {}, 0
        return True

    async def _client(self, number: int) -> None:
        if self._fleet.per_s:
            await asyncio.sleep(number / self._fleet.per_s)
        channel = grpc.aio.insecure_channel(self._fleet.address, options=OPTIONS)
        while True:
            try:
                how = await self._stream(channel, number)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
                how = str(error)
            if not self._fleet.stays:
                raise ConnectionError(f"a stream ended: {how}")
            await asyncio.sleep(_PAUSE_S)

    def _read(self, client: int, data: bytes, at: float) -> None:
        kind: Any = discovery_pb2.DeltaDiscoveryResponse if self._fleet.asks.delta else discovery_pb2.DiscoveryResponse
        for each in kind.FromString(data).resources:
            packed = each.resource if self._fleet.asks.delta else each
            made = cluster_pb2.Cluster.FromString(packed.value)
            self._seen.append((client, made.name, made.connect_timeout.seconds, at))

    async def _stream(self, channel: Any, number: int) -> str:
        """Open one stream and answer its responses until it ends; returns how it ended."""
        asks = self._fleet.asks
        call = channel.stream_stream(DELTA if asks.delta else SOTW)()
        await call.write(asks.first(number))
        ack = asks.ack(number)
        while (data := await call.read()) is not cygrpc.EOF:
            self._came[number] = time.monotonic()
            self._responses += 1
            if asks.reads:
                self._read(number, data, self._came[number])
            await call.write(ack + self._repeats.of(data))
        return f"{await call.code()} {await call.details()}"


def _name(type_url: str, number: int) -> str:
    """The name of the resource with this number. An endpoint assignment has the name of its cluster."""
    return route_name(number, 0) if type_url == ROUTE.url else cluster_name(number)


def repeated(nonce: bytes, version: bytes, *, delta: bool) -> bytes:
    """The bytes of a request that repeat the nonce of a response and, in SotW, its version. `response_nonce` is field 6
    of a delta request and field 5 of a SotW one, whose `version_info` is field 1. Neither has more than 127 bytes.
    """
    if delta:
        return b"".join((b"\x32", bytes((len(nonce),)), nonce))
    return b"".join((b"\x0a", bytes((len(version),)), version, b"\x2a", bytes((len(nonce),)), nonce))


class Repeats:
    """Finds what an ACK repeats of each response of one server without parsing the response.

    A server writes the same bytes in front of every nonce, and the version before all else; so the first response is
    parsed, and others only where that does not hold. To parse all would cost the clients more than the responses cost
    the server, which shares their processors.
    """

    def __init__(self, *, delta: bool) -> None:
        self._delta = delta
        self._kind = discovery_pb2.DeltaDiscoveryResponse if delta else discovery_pb2.DiscoveryResponse
        self._in_front = b""

    def of(self, response: bytes) -> bytes:
        """The bytes of the ACK of this response that repeat something of it."""
        at = response.rfind(self._in_front) if self._in_front else -1
        if at < 0 or (not self._delta and not self._begins_with_version(response)):
            return self._parsed(response)
        start = at + len(self._in_front) + 1
        nonce = response[start : start + response[start - 1]]
        return repeated(nonce, b"" if self._delta else response[2 : 2 + response[1]], delta=self._delta)

    def _begins_with_version(self, response: bytes) -> bool:
        return response[0] == _VERSION_TAG and response[1] <= _ONE_BYTE

    def _parsed(self, response: bytes) -> bytes:
        parsed: Any = self._kind.FromString(response)
        nonce = str(parsed.nonce).encode()
        at = response.rfind(bytes((_NONCE_TAG, len(nonce))) + nonce)
        # With the tag, and without the length.
        self._in_front = response[max(0, at - _IN_FRONT_BYTES) : at + 1]
        return repeated(nonce, b"" if self._delta else str(parsed.version_info).encode(), delta=self._delta)
