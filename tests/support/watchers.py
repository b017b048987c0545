"""Many clients that believe what they are told: the oracle of the fault tests (reliability (d)).

Half speak SotW and half delta. Each follows all clusters and some listeners by name, applies what it receives,
acknowledges it, and connects again when its stream ends, to the next server of its list. They have a process of their
own. What they remember is compared with what the decisions were: which clusters each has, which ever vanished, which
errors came, how streams ended, how long a client was without one, and what each listener is to it.
"""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.service.discovery.v3 import discovery_pb2

from tests.support.waiting import eventually
from xdscore.resource_types import CLUSTER, LISTENER

_SERVICE = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
_PER_CHANNEL = 20
_EXIT_S = 10
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0

View = frozenset[tuple[str, bytes]]
"""The name and bytes of every cluster that a client has."""

Answers = frozenset[tuple[str, int]]
"""The state of each listener that a client asks for: HAS, UNANSWERED, or the code of the error it was told last."""

HAS, UNANSWERED = 0, -1

CUT_WHILE_WRITING = "CUT_WHILE_WRITING"
"""The end of a stream whose client was writing just then: grpc.aio does not tell what the server said."""

# The text of the INTERNAL that grpc.aio puts in its place (`_AioCall.set_internal_error`); a server has other texts.
_MASKED = "Internal error from Core"

# Words between the processes.
_REPORT, _RECONNECT, _LEAVE = "report", "reconnect", "leave"


@dataclass
class Report:
    """The observations of all clients together."""

    views: Counter[View] = field(default_factory=Counter)
    answers: Counter[Answers] = field(default_factory=Counter)
    connected: int = 0
    vanished: Counter[str] = field(default_factory=Counter)
    errors: Counter[tuple[str, int]] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    without_s: float = 0.0
    responses: int = 0

    def names(self) -> set[frozenset[str]]:
        """The different sets of clusters that clients have: one set, once they agree."""
        return {frozenset(name for name, _ in view) for view in self.views}

    def add(self, later: "Report") -> None:
        """Add a later report: the clusters that clients have are those of the later one, what happened to them is
        summed.
        """
        self.views, self.answers, self.connected = later.views, later.answers, later.connected
        self.vanished += later.vanished
        self.errors += later.errors
        self.ends += later.ends
        self.without_s = max(self.without_s, later.without_s)
        self.responses += later.responses


class Watchers:
    """The clients in their process, from the test's side."""

    def __init__(self, pipe: Connection, pid: int) -> None:
        self._pipe = pipe
        self._pid = pid

    def freeze(self) -> None:
        """Stop the clients' process: they neither read nor answer; their connections stay."""
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the stopped clients go on."""
        os.kill(self._pid, signal.SIGCONT)

    def reconnect(self) -> None:
        """Let every client end its stream and come again."""
        self._pipe.send(_RECONNECT)

    def report(self) -> Report:
        """The observations since the last report; the clusters that clients have are those of now."""
        self._pipe.send(_REPORT)
        told: Report = self._pipe.recv()
        return told

    def agree(self, *names: str, within_s: float) -> Report:
        """Wait until every client has exactly these clusters, with the same bytes; the sum of the reports until
        then.
        """
        summed = Report()
        self.until(
            lambda told: len(told.views) == 1 and told.names() == {frozenset(names)}, within_s=within_s, into=summed
        )
        return summed

    def until(self, want: Callable[[Report], bool], *, within_s: float, into: Report) -> None:
        """Wait for a report that is wanted. All of them are added to `into`, also when it does not come in time."""

        def look() -> Report:
            told = self.report()
            into.add(told)
            return told

        eventually(look, want, within_s=within_s)


@contextmanager
def watchers(ads_ports: Sequence[int], *, count: int, listeners: Sequence[str] = ()) -> Iterator[Watchers]:
    """Run so many clients of these servers, spread over them, until the block ends; `listeners` are asked for by
    name.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    arguments = (theirs, tuple(ads_ports), count, tuple(listeners))
    process = spawn.Process(target=_main, args=arguments, daemon=True)
    process.start()
    assert process.pid is not None
    try:
        yield Watchers(ours, process.pid)
        ours.send(_LEAVE)
        process.join(_EXIT_S)
    finally:
        process.kill()
        process.join()


def _main(pipe: Connection, ads_ports: tuple[int, ...], count: int, listeners: tuple[str, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that watches; it ends this one
    asyncio.run(_Fleet(pipe, ads_ports, count, listeners).run())


class _Fleet:
    def __init__(self, pipe: Connection, ads_ports: tuple[int, ...], count: int, listeners: tuple[str, ...]) -> None:
        self._pipe = pipe
        self._ports = ads_ports
        self._listeners = listeners
        self._channels: dict[tuple[int, int], grpc.aio.Channel] = {}
        self.report = Report()
        self._clients = [_Client(self, number, delta=number % 2 == 0) for number in range(count)]

    async def run(self) -> None:
        tasks = [asyncio.create_task(client.run()) for client in self._clients]
        loop = asyncio.get_running_loop()
        while (word := await loop.run_in_executor(None, self._pipe.recv)) != _LEAVE:
            if word == _RECONNECT:
                for client in self._clients:
                    client.end_stream()
                continue
            now = time.monotonic()
            for client in self._clients:
                client.tell(now)
            told, self.report = self.report, Report()
            self._pipe.send(told)
        for task in tasks:
            task.cancel()

    def channel(self, number: int, attempt: int) -> grpc.aio.Channel:
        """The connection of a client. Clients share connections, as the workloads of a node do."""
        port = self._ports[(number + attempt) % len(self._ports)]
        key = (port, number // _PER_CHANNEL)
        if key not in self._channels:
            options = (
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
                # A connection of its own: the server admits a hundred streams on each.
                ("grpc.use_local_subchannel_pool", 1),
            )
            self._channels[key] = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)
        return self._channels[key]

    @property
    def listeners(self) -> tuple[str, ...]:
        return self._listeners


class _Client:
    """One client; `has` outlives its streams, as it does in a real one."""

    def __init__(self, fleet: _Fleet, number: int, *, delta: bool) -> None:
        self._fleet = fleet
        self._number = number
        self._delta = delta
        self._has: dict[str, bytes] = {}
        self._versions: dict[str, dict[str, str]] = {CLUSTER.url: {}, LISTENER.url: {}}
        self._answers = dict.fromkeys(fleet.listeners, UNANSWERED)
        self._call: grpc.aio.StreamStreamCall[bytes, bytes] | None = None
        self._ending = False
        self._since: float | None = time.monotonic()

    def end_stream(self) -> None:
        """End the client's stream; it comes again by itself."""
        if self._call is not None:
            self._ending = True
            self._call.cancel()

    def tell(self, now: float) -> None:
        report = self._fleet.report
        report.views[frozenset(self._has.items())] += 1
        report.answers[frozenset(self._answers.items())] += 1
        report.connected += self._since is None
        if self._since is not None:
            report.without_s = max(report.without_s, now - self._since)

    async def run(self) -> None:
        attempt, pause_s = 0, _FIRST_PAUSE_S
        while True:
            served = await self._stream(self._fleet.channel(self._number, attempt))
            attempt += 1
            pause_s = _FIRST_PAUSE_S if served else min(2 * pause_s, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, keeps no secret

    async def _stream(self, channel: grpc.aio.Channel) -> bool:
        """Run one stream until its end; whether it was served."""
        method = "DeltaAggregatedResources" if self._delta else "StreamAggregatedResources"
        # grpc-stubs ask for serialisers; without them bytes go as they are.
        open_stream: Any = channel.stream_stream
        call: grpc.aio.StreamStreamCall[bytes, bytes] = open_stream(_SERVICE + method)()
        self._call, self._ending = call, False
        served = False
        try:
            for request in self._first():
                await call.write(request.SerializeToString())
            async for data in _read(call):
                if not served and self._since is not None:
                    self._fleet.report.without_s = max(self._fleet.report.without_s, time.monotonic() - self._since)
                    self._since = None
                served = True
                await call.write(self._take(data).SerializeToString())
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        except asyncio.CancelledError:
            # What waits on a call that `end_stream` cancelled is told so; anything else cancels this client.
            if not self._ending:
                raise
        if served:
            masked = await call.details() == _MASKED
            self._fleet.report.ends[CUT_WHILE_WRITING if masked else (await call.code()).name] += 1
            self._since = time.monotonic()
        return served

    def _first(self) -> Iterator[Any]:
        if self._delta:
            clusters = discovery_pb2.DeltaDiscoveryRequest(
                type_url=CLUSTER.url,
                resource_names_subscribe=["*"],
                initial_resource_versions=self._versions[CLUSTER.url],
            )
            named = discovery_pb2.DeltaDiscoveryRequest(
                type_url=LISTENER.url,
                resource_names_subscribe=self._fleet.listeners,
                initial_resource_versions=self._versions[LISTENER.url],
            )
        else:
            clusters = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url)
            named = discovery_pb2.DiscoveryRequest(type_url=LISTENER.url, resource_names=self._fleet.listeners)
        clusters.node.id = f"watcher-{self._number}"
        yield clusters
        if self._fleet.listeners:
            yield named

    def _take(self, data: bytes) -> Any:
        """Apply a response to what the client has; the ACK to send."""
        self._fleet.report.responses += 1
        return self._take_delta(data) if self._delta else self._take_full(data)

    def _take_delta(self, data: bytes) -> discovery_pb2.DeltaDiscoveryRequest:
        delta = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
        versions = self._versions[delta.type_url]
        for resource in delta.resources:
            versions[resource.name] = resource.version
        for name in delta.removed_resources:
            versions.pop(name, None)
        if delta.type_url == CLUSTER.url:
            self._has |= {resource.name: resource.resource.value for resource in delta.resources}
            for name in delta.removed_resources:
                if self._has.pop(name, None) is not None:
                    self._fleet.report.vanished[name] += 1
        else:
            self._answers |= dict.fromkeys(delta.removed_resources, UNANSWERED)
            self._answers |= {resource.name: HAS for resource in delta.resources}
        self._hear(delta)
        return discovery_pb2.DeltaDiscoveryRequest(type_url=delta.type_url, response_nonce=delta.nonce)

    def _take_full(self, data: bytes) -> discovery_pb2.DiscoveryRequest:
        full = discovery_pb2.DiscoveryResponse.FromString(data)
        if full.type_url == CLUSTER.url:
            now = {_name(resource.value): resource.value for resource in full.resources}
            self._fleet.report.vanished.update(self._has.keys() - now.keys())
            self._has = now
        else:
            # The whole state: a listener that is neither in it nor among its errors is gone without a word.
            self._answers = dict.fromkeys(self._answers, UNANSWERED)
            self._answers |= {listener_pb2.Listener.FromString(each.value).name: HAS for each in full.resources}
        self._hear(full)
        ack = discovery_pb2.DiscoveryRequest(
            type_url=full.type_url, response_nonce=full.nonce, version_info=full.version_info
        )
        if full.type_url == LISTENER.url:
            ack.resource_names.extend(self._fleet.listeners)
        return ack

    def _hear(self, response: "discovery_pb2.DiscoveryResponse | discovery_pb2.DeltaDiscoveryResponse") -> None:
        for error in response.resource_errors:
            name, code = error.resource_name.name, error.error_detail.code
            self._fleet.report.errors[name, code] += 1
            if name in self._answers:
                self._answers[name] = code


async def _read(call: "grpc.aio.StreamStreamCall[bytes, bytes]") -> AsyncIterator[bytes]:
    while isinstance(data := await call.read(), bytes):
        yield data


def _name(cluster: bytes) -> str:
    return str(cluster_pb2.Cluster.FromString(cluster).name)
