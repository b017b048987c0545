"""One cluster changes, and every client of a large fleet receives it: the product beside the floor."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.ads_process import ads_process
from bench.fan_outs import LIMITS, PER_CLUSTER, Side, builder, floor, measure_in_turn, product, rules
from bench.filled import filled
from bench.floor_process import floor_process
from bench.receivers import Asks
from bench.registry import Measurement, Parameters, over_the_floor, scenario

# `light`: 1 for clients that cost the machine less than those of gRPC (bench.light_clients).
_FLEET = {"clients": 1_000, "clusters": 1_000, "rounds": 6, "changes": 4, "rules": 1_000, "light": 0}
_KINDS = {"SotW": False, "delta": True}


@scenario("fan-out", "One of many clusters changes under many SotW clients, beside the floor", parameters=_FLEET)
def fan_out(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how long a change takes to reach SotW clients. performance.md: to the median and to the last client at
    most 1.25 times as long as with the floor server, which does the least work.
    """
    yield from _beside_the_floor(parameters, delta=False, at_most=1.25)


@scenario("fan-out-delta", "The same with delta clients", parameters=_FLEET)
def fan_out_delta(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how long a change takes to reach delta clients. performance.md: at most 1.5 times as long as with the
    floor server, which does the least work.
    """
    yield from _beside_the_floor(parameters, delta=True, at_most=1.5)


@scenario(
    "fan-out-large",
    "The same with 5,000 delta clients",
    parameters={**_FLEET, "clients": 5_000, "rounds": 3},
)
def fan_out_large(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how long a change takes to reach 5,000 delta clients. performance.md: that, and their first sync, at most
    1.3 times as long as with the floor server, which does the least work; 60 KiB a stream.
    """
    yield from _beside_the_floor(parameters, delta=True, at_most=1.5)


@scenario(
    "latency",
    "A change to the last client, over the number of clients; SotW and delta, beside the floor; draws a picture",
    parameters={"most": 2_000, "clusters": 1_000, "rounds": 1, "changes": 4, "rules": 1_000},
)
def latency(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how long a change takes to reach an eighth, a quarter, a half and all of the clients, and draw
    `bench/out/latency.svg` of it.
    """
    with _product_and_floor(parameters, Asks()) as sides:
        for kind, delta in _KINDS.items():
            for clients in (parameters["most"] // part for part in (8, 4, 2, 1)):
                for side in sides:
                    side.asks = Asks(delta=delta)
                    side.last_s.clear()
                measure_in_turn(sides, rounds=parameters["rounds"], clients=clients, changes=parameters["changes"])
                for side in sides:
                    line = f"{side.name or 'product'}, {kind}"
                    name = f"{line}: {clients} clients"
                    yield Measurement(name, "s", tuple(side.last_s), line=line, x=clients)


def _beside_the_floor(parameters: Parameters, *, delta: bool, at_most: float) -> Iterator[Measurement]:
    with _product_and_floor(parameters, Asks(delta=delta)) as (ours, least):
        ours.light = least.light = bool(parameters["light"])
        measure_in_turn(
            (ours, least),
            rounds=parameters["rounds"],
            clients=parameters["clients"],
            changes=parameters["changes"],
        )
    quantities: tuple[tuple[str, str, Callable[[Side], list[float]], float | None], ...] = (
        ("all clients connect and have everything", "s", lambda side: side.first_sync_s, 1.3),
        ("processor time of that", "s", lambda side: side.first_cpu_s, None),
        ("a change, first client to last", "s", lambda side: side.last_s, at_most),
        ("a change, first client to the middle one", "s", lambda side: side.middle_s, at_most),
        ("processor time of a change", "ms", lambda side: side.cpu_ms, None),
    )
    for name, unit, took, limit in quantities:
        mine, theirs = (side.measurement(name, unit, took(side)) for side in (ours, least))
        yield from (mine, theirs, over_the_floor(mine, theirs, at_most=limit))
    yield ours.measurement("memory of a stream", "KiB", ours.stream_kib, at_most=60)
    yield least.measurement("memory of a stream", "KiB", least.stream_kib)


@contextmanager
def _product_and_floor(parameters: Parameters, asks: Asks) -> Iterator[tuple[Side, Side]]:
    clusters = parameters["clusters"]
    with filled(clusters * PER_CLUSTER):
        rules(parameters["rules"])
        builder()()
        with ads_process(**LIMITS) as ads, floor_process(clusters) as least:
            yield product(ads, asks), floor(least, asks)
