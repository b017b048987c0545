"""What writing costs, and how soon clients have what is written while others write, too."""

import time
from collections.abc import Iterator, Sequence
from typing import Final

from bench.installation import installation
from bench.receivers import Asks, Receivers, receivers
from bench.registry import Measurement, Parameters, percentile, scenario
from bench.resources import cluster, endpoints
from bench.whole import Whole, whole
from bench.writers import Writers, Written, latencies_ms

_BATCH: Final = 500
_ANSWER_S: Final = 120.0
_EACH: Final = 5
# Requests a second, clusters in each, and the targets of issue 2.6: p50 and p99 in milliseconds.
_LOADS: Final = (
    ("one change a second", 1, 1, 40, 80),
    ("5 changes a second", 5, 1, 60, 150),
    ("20 changes a second", 20, 1, 80, 250),
    ("50 changes a second", 50, 1, 120, 400),
    ("5 batches of 50 a second", 5, 50, 150, 500),
)


@scenario(
    "churn-latency",
    "From the answer to a write to each client that has it, under steady writing; draws a picture",
    parameters={"clients": 1_000, "clusters": 1_000, "seconds": 20},
)
def churn_latency(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how soon delta clients that ask for five clusters each have what is written, at so many writes a second.
    A whole installation with default settings, and all clients on the same machine.
    """
    clients, clusters = parameters["clients"], parameters["clusters"]
    asks = Asks(delta=True, each=_EACH, of=clusters, reads=True)
    with installation() as home, whole(home) as parley:
        _fill(parley, clusters)
        writers = Writers(parley, clusters=clusters)
        with receivers(parley.ads_address, clients=clients, asks=asks) as fleet:
            fleet.next_response(within_s=_ANSWER_S)
            for what, per_s, batch, p50_ms, p99_ms in _LOADS:
                fleet.seen()
                written = writers.steadily(per_s=per_s, seconds=parameters["seconds"], batch=batch)
                took = _latencies(fleet, written, asks, clients)
                reached = len(written) / (written[-1].answered - written[0].answered + 1 / per_s)
                changes = per_s * batch
                yield Measurement(f"{what}: p50", "ms", (percentile(took, 50),), p50_ms, "p50", changes)
                yield Measurement(f"{what}: p99", "ms", (percentile(took, 99),), p99_ms, "p99", changes)
                yield Measurement(f"{what}: last", "ms", (max(took),))
                yield Measurement(f"{what}: written in a second", "", (reached,))
                yield Measurement(f"{what}: a request", "ms", tuple(each.took_s * 1000 for each in written))


@scenario(
    "writes",
    "PUTs a second over REST, of one writer and of eight",
    parameters={"clusters": 1_000, "seconds": 20},
)
def writes(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how many PUTs of a cluster one web process answers in a second, while the worker builds what was
    written.
    """
    with installation() as home, whole(home) as parley:
        _fill(parley, parameters["clusters"])
        writers = Writers(parley, clusters=parameters["clusters"])
        for count in (1, 8):
            began = time.monotonic()
            written = writers.flat_out(writers=count, seconds=parameters["seconds"])
            each_ms = (time.monotonic() - began) * 1000 / len(written)
            what = "one writer" if count == 1 else f"{count} writers"
            yield Measurement(f"{what}: time for a PUT, of all writers together", "ms", (each_ms,), at_most=1000 / 120)
            yield Measurement(f"{what}: a PUT", "ms", tuple(each.took_s * 1000 for each in written))


def _fill(parley: Whole, clusters: int) -> None:
    for start in range(0, clusters, _BATCH):
        numbers = range(start, min(start + _BATCH, clusters))
        parley.published(parley.apply([make(number) for number in numbers for make in (cluster, endpoints)]))


def _latencies(fleet: Receivers, written: Sequence[Written], asks: Asks, clients: int) -> list[float]:
    """How long after each write its clients had it, once they all do."""
    who: dict[int, list[int]] = {}
    for number in {each.number for each in written}:
        who[number] = [client for client in range(clients) if asks.wants(client, number)]
    seen: list[tuple[int, str, int, float]] = []
    until = time.monotonic() + _ANSWER_S
    while True:
        seen += fleet.seen()
        try:
            return latencies_ms(written, seen, who.__getitem__)
        except RuntimeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
