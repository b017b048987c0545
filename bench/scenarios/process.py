"""One ADS process at its edges: without clients, killed under clients, and under a publication of many megabytes."""

import time
from collections.abc import Iterator, Mapping

from bench.ads_process import ads_process
from bench.fan_outs import LIMITS, builder
from bench.filled import filled, put
from bench.receivers import Asks, receivers
from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster, route
from xdscore.resource_types import ROUTE

_ANSWER_S = 120.0
_MIB = 1024 * 1024
_LAG = "parley_ads_loop_lag_seconds_bucket"
_CHANGE_BYTES = 2 * _MIB  # all of it is published at once; a request may not be so large


@scenario("idle-memory", "An ADS process without clients", parameters={"resources": 10_000})
def idle_memory(parameters: Parameters) -> Iterator[Measurement]:
    """Measure an ADS process without clients. performance.md: at most 120 MiB with 10,000 resources."""
    with filled(parameters["resources"]):
        builder()()
        began = time.monotonic()
        with ads_process() as ads:
            took = time.monotonic() - began
            resident = ads.resident_mib()
    yield Measurement("memory", "MiB", (resident,), at_most=120)
    yield Measurement("from its start until it is ready", "s", (took,))


@scenario(
    "restart", "Clients of a process that is killed and started again", parameters={"clients": 1_000, "repeat": 3}
)
def restart(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how long clients wait after a kill. performance.md: all served again within 5 s of the kill."""
    clients, from_kill, from_ready = parameters["clients"], [], []
    with filled(6_000):
        builder()()
        with (
            ads_process() as ads,
            receivers(ads.address, clients=clients, asks=Asks(delta=True), stays=True) as fleet,
        ):
            fleet.next_response(within_s=_ANSWER_S)
            for _ in range(parameters["repeat"]):
                killed = time.monotonic()
                ads.kill()
                ads.start()
                ready = time.monotonic()
                last = max(fleet.next_response(within_s=_ANSWER_S))
                from_kill.append(last - killed)
                from_ready.append(last - ready)
    yield Measurement("from the kill until the last client is served", "s", tuple(from_kill), at_most=5)
    yield Measurement("of it, after the process is ready", "s", tuple(from_ready))


@scenario(
    "large-publication",
    "Many megabytes change at once under many streams: how late the event loop is",
    parameters={"clients": 5_000, "mib": 20, "resources": 1_000},
)
def large_publication(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how long a large publication delays the event loop. performance.md: at most 250 ms late. Every resource
    changes, and each client follows one of them.
    """
    clients, resources = parameters["clients"], parameters["resources"]
    size = parameters["mib"] * _MIB // resources
    asks = Asks(delta=True, type_url=ROUTE.url, each=1, of=resources)
    with filled(0):
        put([cluster(0)])
        _put_routes(resources, "a" * size)
        builder()()
        with ads_process(**LIMITS) as ads, receivers(ads.address, clients=clients, asks=asks) as fleet:
            fleet.next_response(within_s=_ANSWER_S)
            _put_routes(resources, "b" * size)
            before = ads.metrics()
            used_s = ads.cpu_s()
            builder()()
            times = fleet.next_response(within_s=_ANSWER_S)
            after = ads.metrics()
            used_s = ads.cpu_s() - used_s
    yield Measurement("the event loop was late, at most", "ms", (_worst_s(before, after) * 1000,), at_most=250)
    yield Measurement("first client to last", "s", (max(times) - min(times),))
    yield Measurement("processor time of ADS", "s", (used_s,))


def _put_routes(count: int, padding: str) -> None:
    """Write this number of route configurations, each made large by `padding` in the metadata of its virtual host's
    route.
    """
    batch = max(1, _CHANGE_BYTES // len(padding))
    for start in range(0, count, batch):
        put([_padded(number, padding) for number in range(start, min(start + batch, count))])


def _padded(number: int, padding: str) -> dict[str, object]:
    manifest = route(number, 0, (0, 0))
    host = {"name": "all", "domains": ["*"], "routes": [_route(padding)]}
    return manifest | {"virtual_hosts": [host]}


def _route(padding: str) -> dict[str, object]:
    metadata = {"filter_metadata": {"bench": {"padding": padding}}}
    return {"match": {"prefix": "/"}, "route": {"cluster": cluster(0)["name"]}, "metadata": metadata}


def _worst_s(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """The upper bound, in seconds, of the highest histogram bucket that got a sample between the two readings; a sample
    is taken every 50 ms.
    """
    buckets = sorted((float(name.split('"')[1]), name) for name in after if name.startswith(_LAG))
    samples = after[buckets[-1][1]] - before[buckets[-1][1]]
    return next(bound for bound, name in buckets if after[name] - before[name] >= samples)
