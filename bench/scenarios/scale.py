"""The coefficients of the model in docs/scale.md, and how far it is from what other sizes cost."""

import statistics
from collections.abc import Iterator

from bench.ads_process import ads_process
from bench.fan_outs import ANSWER_S, LIMITS, builder, one_change, product
from bench.filled import filled, put
from bench.receivers import Asks, receivers
from bench.registry import Measurement, Parameters, scenario
from bench.resources import endpoints
from bench.scale_model import Costs, Replica, change_s, fit, memory_mib, replicas

_BATCH = 2_000
_KIB_PER_MIB = 1024
_LARGE = 100_000


@scenario(
    "scale",
    "What a client, a resource and a change cost ADS, and whether the sum is right at other sizes",
    parameters={"clients": 2_000, "resources": 20_000, "changes": 3},
    by_name=True,
)
def scale(parameters: Parameters) -> Iterator[Measurement]:
    """Measure the costs of a process and fit a model to them. Issue 10: a model that is checked against at least three
    measured points.
    """
    clients, resources, changes = parameters["clients"], parameters["resources"], parameters["changes"]
    few, half = resources // 10, resources // 2
    with filled(few):
        builder()()
        least = (few, _idle_mib())
        _grow(few, half)
        base_mib, resource_mib = fit(least, (half, _idle_mib()))
        quarter = _point(clients // 4, changes)
        middle = _point(clients // 2, changes)
        _, stream_mib = fit((clients // 4, quarter[0]), (clients // 2, middle[0]))
        fixed_s, response_s = fit((clients // 4, quarter[1]), (clients // 2, middle[1]))
        costs = Costs(
            base_mib, resource_mib * _KIB_PER_MIB, stream_mib * _KIB_PER_MIB, fixed_s * 1000, response_s * 1000
        )
        yield Measurement("memory of a process without anything", "MiB", (costs.base_mib,))
        yield Measurement("memory of a resource", "KiB", (costs.resource_kib,))
        yield Measurement("memory of a stream", "KiB", (costs.stream_kib,), at_most=60)
        yield Measurement("processor time of a change itself", "ms", (costs.change_ms,))
        yield Measurement("processor time of a client's response", "ms", (costs.response_ms,))
        yield from _checked(costs, clients * 3 // 4, half, changes)
        yield from _checked(costs, clients, half, changes)
        _grow(half, resources)
        yield from _checked(costs, clients // 2, resources, changes)
    needed = replicas(costs, Replica(), clients=_LARGE, resources=_LARGE)
    yield Measurement(f"replicas for {_LARGE:,} clients and {_LARGE:,} resources", "", (needed,))


def _checked(costs: Costs, clients: int, resources: int, changes: int) -> Iterator[Measurement]:
    """Measure another size; each measurement is its ratio to what the model says."""
    resident_mib, took_s = _point(clients, changes)
    where = f"{clients:,} clients, {resources:,} resources, measured over model"
    said_mib = memory_mib(costs, clients=clients, resources=resources)
    yield Measurement(f"{where}: memory ({resident_mib:.0f} MiB)", "", (resident_mib / said_mib,))
    said_s = change_s(costs, clients=clients)
    yield Measurement(f"{where}: processor time of a change ({took_s:.2f} s)", "", (took_s / said_s,))


def _idle_mib() -> float:
    with ads_process() as ads:
        return ads.resident_mib()


def _point(clients: int, changes: int) -> tuple[float, float]:
    """Measure a process with this number of delta clients; returns (memory in MiB, processor time of a change in
    seconds).
    """
    asks = Asks(delta=True)
    with ads_process(**LIMITS) as ads, receivers(ads.address, clients=clients, asks=asks) as fleet:
        fleet.next_response(within_s=ANSWER_S)
        side = product(ads, asks)
        for _ in range(changes):
            one_change(side, fleet)
        return ads.resident_mib(), statistics.median(side.cpu_ms) / 1000


def _grow(have: int, want: int) -> None:
    """Add endpoints that no client here follows, until there are `want` instead of `have`."""
    for start in range(have, want, _BATCH):
        put([endpoints(number, extra=True) for number in range(start, min(start + _BATCH, want))])
    builder()()
