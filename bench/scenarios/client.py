"""What many watches on one `xdsclient` cost: memory for each, and processor time while nothing happens."""

import asyncio
import gc
import multiprocessing
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster
from xdsclient import CLUSTERS, Bootstrap, DataErrorHandling, Node, Server, Status, Variant, XdsClient
from xdscore.resource_types import CLUSTER
from xdscore.schema import Manifest, ParsedResource, parse

_SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
_IDLE_S = 10.0
_ANSWER_S = 60.0
_KIB = 1024


@scenario("client-watches", "Many watches on one client: memory of each, cost when idle", parameters={"watches": 1_000})
def client_watches(parameters: Parameters) -> Iterator[Measurement]:
    """Measure the client library. Its own goal: at most 20 KiB a watch, and at most 1 % of a core while nothing
    changes.
    """
    with _server(parameters["watches"] + 1) as address:
        for variant in Variant:
            yield from asyncio.run(_measure(address, variant, parameters["watches"]))


class _Watcher:
    """A watcher that counts the news it is told."""

    def __init__(self) -> None:
        self.told = 0

    def on_resource_changed(self, resource: object) -> None:
        if isinstance(resource, Status):
            raise TypeError(f"the floor server has every cluster: {resource}")
        self.told += 1

    def on_ambient_error(self, error: Status) -> None:
        raise TypeError(f"nothing goes wrong here: {error}")


async def _measure(address: str, variant: Variant, watches: int) -> list[Measurement]:
    bootstrap = Bootstrap((Server(address),), Node("bench"))
    watcher = _Watcher()
    async with XdsClient(bootstrap, variant=variant, data_errors=DataErrorHandling.ON) as client:
        # The first one loads the descriptors and opens the stream; neither belongs to a watch.
        client.watch(CLUSTERS, _name(watches), watcher)
        await _told(watcher, 1)
        gc.collect()
        before = _resident_bytes()
        began = time.perf_counter()
        for number in range(watches):
            client.watch(CLUSTERS, _name(number), watcher)
        await _told(watcher, watches + 1)
        took = time.perf_counter() - began
        each_kib = (_resident_bytes() - before) / watches / _KIB
        await asyncio.sleep(1)
        cpu = time.process_time()
        await asyncio.sleep(_IDLE_S)
        idle_percent = (time.process_time() - cpu) * 100 / _IDLE_S
    what = f"{watches:,} watches, {variant.value}"
    return [
        Measurement(f"{what}: memory of one", "KiB", (each_kib,), at_most=20),
        Measurement(f"{what}: processor while idle", "%", (idle_percent,), at_most=1),
        Measurement(f"{what}: from the first call to the last answer", "s", (took,)),
    ]


async def _told(watcher: _Watcher, times: int) -> None:
    async with asyncio.timeout(_ANSWER_S):
        while watcher.told < times:  # noqa: ASYNC110 - counting is all that happens
            await asyncio.sleep(0.005)


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * _KIB
    raise RuntimeError("/proc/self/status names no VmRSS")


def _name(number: int) -> str:
    return str(cluster(number)["name"])


# The floor server: it has every cluster that is asked for, and nothing else happens. In a process of its own.


@contextmanager
def _server(clusters: int) -> Iterator[str]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, clusters), daemon=True)
    process.start()
    try:
        yield f"127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def _serve(connection: Connection, clusters: int) -> None:
    packed = {_name(number): _any_bytes(number) for number in range(clusters)}
    make: Any = grpc.stream_stream_rpc_method_handler
    methods = {
        "StreamAggregatedResources": make(lambda requests, _: _sotw(requests, packed)),
        "DeltaAggregatedResources": make(lambda requests, _: _delta(requests, packed)),
    }
    options = [("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(4), options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, methods),))
    connection.send(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    server.wait_for_termination()


def _any_bytes(number: int) -> bytes:
    tree: Any = cluster(number)
    parsed = parse(Manifest(tree))
    if not isinstance(parsed, ParsedResource):
        raise TypeError(f"the benchmark's own cluster is refused: {parsed.findings}")
    return parsed.any_bytes


def _sotw(requests: Iterator[bytes], packed: dict[str, bytes]) -> Iterator[bytes]:
    told: tuple[str, ...] = ()
    for nonce in count(1):
        request = discovery_pb2.DiscoveryRequest.FromString(next(requests))
        names = tuple(request.resource_names)
        if names == told:
            continue
        told = names
        response = discovery_pb2.DiscoveryResponse(type_url=CLUSTER.url, version_info=str(nonce), nonce=str(nonce))
        for name in names:
            response.resources.add().MergeFromString(packed[name])
        yield response.SerializeToString()


def _delta(requests: Iterator[bytes], packed: dict[str, bytes]) -> Iterator[bytes]:
    for nonce in count(1):
        request = discovery_pb2.DeltaDiscoveryRequest.FromString(next(requests))
        if not request.resource_names_subscribe:
            continue
        response = discovery_pb2.DeltaDiscoveryResponse(type_url=CLUSTER.url, nonce=str(nonce))
        for name in request.resource_names_subscribe:
            response.resources.add(name=name, version="1").resource.MergeFromString(packed[name])
        yield response.SerializeToString()
