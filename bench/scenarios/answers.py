"""How soon one client hears something: of a change, with everything at its defaults, and of a name it cannot have."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from bench.ads_process import ads_process
from bench.fan_outs import builder, rules
from bench.filled import filled
from bench.installation import installation
from bench.receivers import DELTA, OPTIONS, SOTW, Asks, receivers
from bench.registry import Measurement, Parameters, percentile, scenario
from bench.resources import cluster, fleet
from bench.whole import Whole, whole
from xdscore.resource_types import LISTENER

_ANSWER_S = 60.0
_BATCH = 5_000
_RULES = 1_000
_FORBIDDEN = "forbidden-7-"  # what the rules of this number deny
_PER_STREAM = 100  # so many questions a stream may ask without a pause
_NOT_FOUND, _PERMISSION_DENIED = 5, 7


@scenario("change-to-client", "From a REST answer to the client's last byte", parameters={"changes": 100})
def change_to_client(parameters: Parameters) -> Iterator[Measurement]:
    """Measure the time from a write to the client. performance.md: with 1,000 resources p50 250 ms and p99 600 ms, with
    10,000 p50 500 ms; default quiet time.
    """
    for resources, p50_ms, p99_ms in ((1_000, 250, 600), (10_000, 500, None)):
        with installation() as home, whole(home) as parley:
            _fill(parley, resources)
            with receivers(parley.ads_address, clients=1, asks=Asks(delta=True), processes=1) as client:
                client.next_response(within_s=_ANSWER_S)
                took = []
                for number in range(parameters["changes"]):
                    manifest = cluster(0, timeout_s=2 + number)
                    parley.put("cluster", str(manifest["name"]), manifest)
                    answered = time.monotonic()
                    took.append((max(client.next_response(within_s=_ANSWER_S)) - answered) * 1000)
        what = f"{resources:,} resources"
        yield Measurement(f"{what}, p50", "ms", tuple(took), at_most=p50_ms)
        yield Measurement(f"{what}, p99", "ms", (percentile(took, 99),), at_most=p99_ms)


def _fill(parley: Whole, resources: int) -> None:
    manifests = list(fleet(resources))
    for start in range(0, resources, _BATCH):
        parley.published(parley.apply(manifests[start : start + _BATCH]))


@scenario(
    "missing-names",
    "The answer for a name that is missing or denied, at so many streams",
    parameters={"clients": 1_000, "questions": 1_000},
)
def missing_names(parameters: Parameters) -> Iterator[Measurement]:
    """Measure the time to the error for a name that is missing. performance.md (TP3): p99 20 ms."""
    with filled(6_000):
        rules(_RULES)
        builder()()
        with ads_process() as ads, receivers(ads.address, clients=parameters["clients"], asks=Asks(delta=True)) as all_:
            all_.next_response(within_s=_ANSWER_S)
            for what, delta in (("SotW", False), ("delta", True)):
                took = asyncio.run(_questions(ads.address, parameters["questions"], delta=delta))
                yield Measurement(f"{what}, p50", "ms", tuple(took))
                yield Measurement(f"{what}, p99", "ms", (percentile(took, 99),), at_most=20)


async def _questions(address: str, count: int, *, delta: bool) -> list[float]:
    """The time of each of `count` answers, in milliseconds; in turn for a name that nobody has and for one that is
    denied.
    """
    took: list[float] = []
    for start in range(0, count, _PER_STREAM):
        async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
            open_stream: Any = channel.stream_stream  # grpc-stubs ask for serialisers
            call = open_stream(DELTA if delta else SOTW)()
            async with asyncio.timeout(_ANSWER_S):
                numbers = range(start, min(start + _PER_STREAM, count))
                took += [await _question(call, each, first=each == start, delta=delta) for each in numbers]
            call.cancel()
    return took


async def _question(call: Any, number: int, *, first: bool, delta: bool) -> float:
    name, code = (f"{_FORBIDDEN}{number}", _PERMISSION_DENIED) if number % 2 else (f"nobody-{number}", _NOT_FOUND)
    request: Any
    if delta:
        request = discovery_pb2.DeltaDiscoveryRequest(type_url=LISTENER.url, resource_names_subscribe=[name])
    else:
        request = discovery_pb2.DiscoveryRequest(type_url=LISTENER.url, resource_names=[name])
    if first:
        request.node.id = f"asker-{number}"
    began = time.monotonic()
    await call.write(request.SerializeToString())
    data = await call.read()
    took = (time.monotonic() - began) * 1000
    kind: Any = discovery_pb2.DeltaDiscoveryResponse if delta else discovery_pb2.DiscoveryResponse
    response = kind.FromString(data)
    told = [(each.resource_name.name, each.error_detail.code) for each in response.resource_errors]
    if told != [(name, code)]:
        raise RuntimeError(f"asked for {name}, told {told}")
    answer: Any = type(request)(type_url=LISTENER.url, response_nonce=response.nonce)
    if not delta:
        answer.version_info = response.version_info
        answer.resource_names.append(name)
    await call.write(answer.SerializeToString())
    return took
