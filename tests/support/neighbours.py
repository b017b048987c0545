"""Good clients whose waiting is measured, and one bad one at full speed: each in a process of its own.

Good clients follow all clusters, half in SotW and half in delta, each under a token of its own. A cluster named TICK
carries a number, and the time at which each client reads a number is kept; clusters whose name begins with REFUSED they
refuse, as a whole fleet does. Newcomers come all the time, and one polls over REST. The bad one has one token, and does
one thing as fast as it is let (`ATTACKS`). Its process is nicer than all others: what is measured is what Parley spends
on it, not what it spends itself on a machine it shares.
"""

import asyncio
import multiprocessing
import os
import random
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from string import ascii_lowercase
from typing import Any, Final, NamedTuple

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2
from envoy.service.status.v3 import csds_pb2
from google.rpc import status_pb2

from tests.support.poller import poller
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET

TICK: Final = "tick"
REFUSED: Final = "refused-"
WORDS: Final = "This cluster cannot be."

_ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
_SOTW, _DELTA = _ADS + "StreamAggregatedResources", _ADS + "DeltaAggregatedResources"
_CSDS = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"
_PER_CHANNEL = 20
_NEWCOMER_EVERY_S = 0.25
_POLL_EVERY_S = 0.25
_REPORT, _LEAVE = "report", "leave"
_EXIT_S = 10
# The bad one gives way to everything that is measured.
_NICE = 15
_NAME_BYTES = 1_024
_READ_S = 0.1
_INVALID_ARGUMENT = 3
_POLLED = (200, 304)


class Ports(NamedTuple):
    """Where one ADS process serves streams, and polls over REST."""

    streams: int
    polls: int


class EndedError(Exception):
    """The server ended the stream; the text is the name of the gRPC status."""


Call = Any
"""A stream of bytes: grpc-stubs ask for serialisers, and there are none."""


@dataclass
class Seen:
    """What the good clients observed since the last report."""

    ticks: dict[int, list[float]] = field(default_factory=dict)
    newcomers_s: list[float] = field(default_factory=list)
    polls_s: list[float] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    connected: int = 0


class Fleet:
    """The good clients in their process, from the test's side."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def seen(self) -> Seen:
        """What the good clients observed since the last report."""
        self._pipe.send(_REPORT)
        told: Seen = self._pipe.recv()
        return told


@contextmanager
def good_fleet(ports: Ports, tokens: Sequence[str]) -> Iterator[Fleet]:
    """Run one client for each token, newcomers, and one that polls, until the block ends."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_fleet_main, args=(theirs, ports, tuple(tokens)), daemon=True)
    process.start()
    try:
        yield Fleet(ours)
        ours.send(_LEAVE)
        process.join(_EXIT_S)
    finally:
        process.kill()
        process.join()


@contextmanager
def bad_neighbour(attack: str, ports: Ports, token: str) -> Iterator[Callable[[], Mapping[str, int]]]:
    """Run a caller that does this attack until the block ends. Yields a function that tells how often it did, and how
    it was answered.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_bad_main, args=(theirs, attack, ports, token), daemon=True)
    process.start()

    def done() -> Mapping[str, int]:
        ours.send(_REPORT)
        told: Mapping[str, int] = ours.recv()
        return told

    try:
        yield done
    finally:
        process.kill()
        process.join()


def _opened(channel: grpc.aio.Channel, method: str, token: str) -> Call:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    open_stream: Any = channel.stream_stream
    return open_stream(method)(metadata=metadata)


def _channel(port: int) -> grpc.aio.Channel:
    # A connection of its own: the server admits a hundred streams on each.
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=(("grpc.use_local_subchannel_pool", 1),))


# The good


def _fleet_main(pipe: Connection, ports: Ports, tokens: tuple[str, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_GoodFleet(ports, tokens).run(pipe))


class _GoodFleet:
    def __init__(self, ports: Ports, tokens: tuple[str, ...]) -> None:
        self._port = ports.streams
        self._polls_port = ports.polls
        self._tokens = tokens
        self._seen = Seen()
        self._connected: set[int] = set()

    async def run(self, pipe: Connection) -> None:
        channels = [_channel(self._port) for _ in range(0, len(self._tokens), _PER_CHANNEL)]
        tasks = [
            asyncio.create_task(self._follow(number, channels[number // _PER_CHANNEL], token))
            for number, token in enumerate(self._tokens)
        ]
        tasks += [asyncio.create_task(self._newcomers()), asyncio.create_task(self._poll())]
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, pipe.recv) != _LEAVE:
            self._seen.connected = len(self._connected)
            told, self._seen = self._seen, Seen()
            pipe.send(told)
        for task in tasks:
            task.cancel()

    async def _follow(self, number: int, channel: grpc.aio.Channel, token: str) -> None:
        while True:
            call = _opened(channel, _DELTA if number % 2 else _SOTW, token)
            try:
                await call.write(_first(f"good-{number}", delta=number % 2 == 1))
                while isinstance(data := await call.read(), bytes):
                    self._connected.add(number)
                    await call.write(self._answer(data, delta=number % 2 == 1))
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                pass
            self._connected.discard(number)
            self._seen.ends[(await call.code()).name] += 1
            await asyncio.sleep(random.uniform(0.2, 0.5))  # noqa: S311 - spreads load, keeps no secret

    def _answer(self, data: bytes, *, delta: bool) -> bytes:
        """The request with which the client answers a response; when it read the number in the response is kept."""
        now = time.monotonic()
        response: Any
        if delta:
            response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
            contents = [each.resource.value for each in response.resources]
            request: Any = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER.url, response_nonce=response.nonce)
        else:
            response = discovery_pb2.DiscoveryResponse.FromString(data)
            contents = [each.value for each in response.resources]
            request = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, response_nonce=response.nonce)
        refused = ""
        for content in contents:
            found = cluster_pb2.Cluster.FromString(content)
            if found.name == TICK:
                self._seen.ticks.setdefault(found.per_connection_buffer_limit_bytes.value, []).append(now)
            elif found.name.startswith(REFUSED):
                refused = found.name
        if refused:
            text = f"Error adding/updating cluster(s) {refused}: {WORDS}"
            request.error_detail.CopyFrom(status_pb2.Status(code=_INVALID_ARGUMENT, message=text))
        elif not delta:
            request.version_info = response.version_info
        answer: bytes = request.SerializeToString()
        return answer

    async def _newcomers(self) -> None:
        """Connect a new client each moment, with a connection of its own, and measure how long the first answer
        takes.
        """
        number = 0
        while True:
            number += 1
            began = time.monotonic()
            async with _channel(self._port) as channel:
                call = _opened(channel, _SOTW, self._tokens[number % len(self._tokens)])
                try:
                    await call.write(_first(f"newcomer-{number % len(self._tokens)}", delta=False))
                    served = isinstance(await call.read(), bytes)
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    served = False
                if served:
                    self._seen.newcomers_s.append(time.monotonic() - began)
                else:
                    self._seen.ends[f"newcomer {(await call.code()).name}"] += 1
                call.cancel()
            await asyncio.sleep(_NEWCOMER_EVERY_S)

    async def _poll(self) -> None:
        """Poll as an Envoy does, again and again on one connection; the numbers are for the others to read."""
        bearer = {"Authorization": f"Bearer {self._tokens[0]}"}
        while True:
            try:
                async with poller(self._polls_port) as client:
                    while True:
                        began = time.monotonic()
                        got = await client.ask("listeners", headers=bearer, node={"id": "polls"})
                        if got.status in _POLLED:
                            self._seen.polls_s.append(time.monotonic() - began)
                        else:
                            self._seen.ends[f"poll {got.status}"] += 1
                        await asyncio.sleep(_POLL_EVERY_S)
            except (OSError, EOFError) as error:
                self._seen.ends[f"poll {type(error).__name__}"] += 1
                await asyncio.sleep(_POLL_EVERY_S)


def _first(node_id: str, *, delta: bool, kind: str = CLUSTER.url) -> bytes:
    request: Any
    if delta:
        request = discovery_pb2.DeltaDiscoveryRequest(type_url=kind, resource_names_subscribe=["*"])
    else:
        request = discovery_pb2.DiscoveryRequest(type_url=kind)
    request.node.id = node_id
    data: bytes = request.SerializeToString()
    return data


# The bad


def _bad_main(pipe: Connection, attack: str, ports: Ports, token: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    asyncio.run(_Bad(ports, token).run(pipe, ATTACKS[attack]))


class _Bad:
    """A bad caller with one token, and as many connections as it likes."""

    def __init__(self, ports: Ports, token: str) -> None:
        self._port = ports.streams
        self.polls_port = ports.polls
        self._channels: dict[int, grpc.aio.Channel] = {}
        self.token = token
        self.done: Counter[str] = Counter()

    async def run(self, pipe: Connection, attack: "Attack") -> None:
        tasks = [asyncio.create_task(self._again(attack, number)) for number in range(attack.at_once)]
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, pipe.recv):
            pipe.send(dict(self.done))
        for task in tasks:
            task.cancel()

    async def _again(self, attack: "Attack", number: int) -> None:
        """Do the attack again and again, on a connection that `per_channel` tasks share."""
        shared = number // attack.per_channel
        if shared not in self._channels:
            self._channels[shared] = _channel(self._port)
        channel = self._channels[shared]
        while True:
            try:
                await attack.once(self, channel)
            except EndedError as error:
                self.done[str(error)] += 1
            except grpc.aio.AioRpcError as error:
                self.done[error.code().name] += 1
            except (asyncio.InvalidStateError, OSError, EOFError):
                self.done["ended"] += 1
            else:
                self.done["done"] += 1
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to be a bad caller, `against` these rows of the table of budgets. `at_once` tasks do `once` again and
    again; `per_channel` of them share a connection.
    """

    against: tuple[str, ...]
    once: Callable[["_Bad", grpc.aio.Channel], Coroutine[Any, Any, None]]
    at_once: int
    per_channel: int = 50


def _node() -> str:
    return f"bad-{secrets.token_hex(6)}"


def _names(count: int, size: int) -> list[str]:
    start = secrets.token_hex(8)
    return [f"{start}-{number:06}-".ljust(size, "x") for number in range(count)]


def _subscribe(kind: str, names: Sequence[str], *, node: str = "", drop: Sequence[str] = ()) -> bytes:
    request = discovery_pb2.DeltaDiscoveryRequest(
        type_url=kind, resource_names_subscribe=names, resource_names_unsubscribe=drop
    )
    if node:
        request.node.id = node
    data: bytes = request.SerializeToString()
    return data


async def _until_ended(call: Call) -> None:
    while isinstance(await call.read(), bytes):
        pass
    raise EndedError((await call.code()).name)


async def _silent(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Open a stream without a first request, and hold it until it is ended."""
    await _until_ended(_opened(channel, _SOTW, bad.token))


async def _flapping(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Connect, subscribe, read, drop: a new node each time."""
    call = _opened(channel, _SOTW, bad.token)
    try:
        await call.write(_first(_node(), delta=False))
        if not isinstance(await call.read(), bytes):
            await _until_ended(call)
    finally:
        call.cancel()


async def _requests(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Subscribe to a thousand names and unsubscribe, without a pause."""
    call = _opened(channel, _DELTA, bad.token)
    names = _names(1_000, 40)
    try:
        await call.write(_subscribe(ENDPOINT.url, (), node=_node()))
        reading = asyncio.ensure_future(_until_ended(call))
        while not reading.done():
            await call.write(_subscribe(ENDPOINT.url, names))
            await call.write(_subscribe(ENDPOINT.url, (), drop=names))
            bad.done["requests"] += 2
        await reading
    finally:
        call.cancel()


async def _large(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Send requests of nine megabytes, one after the other."""
    call = _opened(channel, _DELTA, bad.token)
    names = _names(9_000, _NAME_BYTES)
    try:
        await call.write(_subscribe(ENDPOINT.url, (), node=_node()))
        reading = asyncio.ensure_future(_until_ended(call))
        while not reading.done():
            await call.write(_subscribe(ENDPOINT.url, names))
            bad.done["requests"] += 1
        await reading
    finally:
        call.cancel()


async def _many_names(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Subscribe to as many names as a stream may have, as long as they may be, and hold them."""
    call = _opened(channel, _DELTA, bad.token)
    try:
        node = _node()
        for kind in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
            await call.write(_subscribe(kind.url, _names(10_000, _NAME_BYTES), node=node))
        await _until_ended(call)
    finally:
        call.cancel()


async def _refusing(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Refuse every response, as a new node each time, in new words that blame a victim."""
    call = _opened(channel, _SOTW, bad.token)
    try:
        await call.write(_first(_node(), delta=False))
        data = await call.read()
        if not isinstance(data, bytes):
            await _until_ended(call)
        response = discovery_pb2.DiscoveryResponse.FromString(data)
        names = [cluster_pb2.Cluster.FromString(each.value).name for each in response.resources]
        refusal = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, response_nonce=response.nonce)
        words = " ".join("".join(random.choices(ascii_lowercase, k=8)) for _ in range(8))  # noqa: S311
        victim = random.choice(names)  # noqa: S311 - keeps no secret
        text = f"Error adding/updating cluster(s) {victim}: {words}"
        refusal.error_detail.CopyFrom(status_pb2.Status(code=_INVALID_ARGUMENT, message=text))
        await call.write(refusal.SerializeToString())
        bad.done["refusals"] += 1
        # What was refused is sent otherwise, or not at all; long enough for the refusal to be read.
        await asyncio.wait({asyncio.ensure_future(call.read())}, timeout=_READ_S)
    finally:
        call.cancel()


async def _guessing(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Ask for ten thousand secrets that may exist, as a new node each time."""
    call = _opened(channel, _DELTA, bad.token)
    try:
        await call.write(_subscribe(SECRET.url, _names(10_000, 30), node=_node()))
        if not isinstance(await call.read(), bytes):
            await _until_ended(call)
    finally:
        call.cancel()


async def _status(bad: _Bad, channel: grpc.aio.Channel) -> None:
    """Ask for the status of all clients with a token that may not."""
    ask: Any = channel.unary_unary
    metadata = (("authorization", f"Bearer {bad.token}"),)
    await ask(_CSDS)(csds_pb2.ClientStatusRequest().SerializeToString(), metadata=metadata)


async def _polling(bad: _Bad, _: grpc.aio.Channel) -> None:
    """Poll as a new node each time, on a connection that then waits for news as long as it may."""
    bearer, node = {"Authorization": f"Bearer {bad.token}"}, {"id": _node()}
    async with poller(bad.polls_port) as client:
        for headers in (bearer, {**bearer, "Prefer": "wait=60"}):
            got = await client.ask("clusters", headers=headers, node=node)
            bad.done[f"poll {got.status}"] += 1
            if got.status not in _POLLED:
                return


ATTACKS: Final[Mapping[str, Attack]] = {
    "silent streams": Attack(("places",), _silent, at_once=3_000, per_channel=100),
    "flapping": Attack(("places", "facts"), _flapping, at_once=100, per_channel=10),
    "requests": Attack(("requests",), _requests, at_once=100, per_channel=10),
    "bytes": Attack(("bytes",), _large, at_once=20, per_channel=2),
    "names": Attack(("names",), _many_names, at_once=50, per_channel=5),
    "refusals": Attack(("facts", "incidents", "messages"), _refusing, at_once=50, per_channel=10),
    "guesses": Attack(("guesses",), _guessing, at_once=30, per_channel=5),
    "status": Attack(("status",), _status, at_once=100, per_channel=50),
    "polls": Attack(("polls", "connections of polls"), _polling, at_once=2_500, per_channel=2_500),
}
