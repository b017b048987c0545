"""One cluster changes, and every client of a large fleet receives it: the product beside the floor."""

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, cast

import psutil

from bench.ads_process import ads_process
from bench.filled import filled, put
from bench.receivers import Receivers, receivers
from bench.registry import Measurement, Parameters, ratio, scenario
from bench.resources import cluster

# A cluster has five other resources in this fleet.
_PER_CLUSTER = 6
_ANSWER_S = 120.0
_POLL_MS = "200"
_MIB = 1024 * 1024


@dataclass
class Costs:
    """What one server took: seconds to the last and to the middle client, processor time, memory."""

    first_sync_s: list[float] = field(default_factory=list)
    first_cpu_s: list[float] = field(default_factory=list)
    last_s: list[float] = field(default_factory=list)
    middle_s: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    stream_kib: list[float] = field(default_factory=list)


@scenario(
    "fan-out",
    "One of many clusters changes under many clients (delta=1: delta), beside the floor",
    parameters={"clients": 1_000, "clusters": 1_000, "changes": 10, "rules": 1_000, "delta": 0},
)
def fan_out(parameters: Parameters) -> Iterator[Measurement]:
    """performance.md, "Targets". A fan-out is from the first client that has the change to the last one: how long a
    change takes to become a snapshot is another scenario's.
    """
    clients, changes, delta = parameters["clients"], parameters["changes"], bool(parameters["delta"])
    product, floor = Costs(), Costs()
    with filled(parameters["clusters"] * _PER_CLUSTER):
        from django.db import connections  # noqa: PLC0415

        _rules(parameters["rules"])
        build = _builder()
        build()
        with ads_process(PARLEY_LIMIT_RECONCILE_POLL_MS=_POLL_MS) as ads:

            def change(number: int) -> None:
                put([cluster(0, timeout_s=2 + number)])
                build()

            _measure(product, ads.address, ads.process, change, clients=clients, changes=changes, delta=delta)
        connections.close_all()
    with _floor(parameters["clusters"]) as (address, process, change_floor):
        _measure(floor, address, process, change_floor, clients=clients, changes=changes, delta=delta)
    limit = 1.5 if delta else 1.25
    for name, unit, ours, least, at_most in (
        ("all clients connect and have everything", "s", product.first_sync_s, floor.first_sync_s, 1.3),
        ("processor time of that", "s", product.first_cpu_s, floor.first_cpu_s, None),
        ("a change, first client to last", "s", product.last_s, floor.last_s, limit),
        ("a change, first client to the middle one", "s", product.middle_s, floor.middle_s, limit),
        ("processor time of a change", "ms", product.cpu_ms, floor.cpu_ms, limit),
    ):
        mine, theirs = Measurement(name, unit, tuple(ours)), Measurement(f"floor: {name}", unit, tuple(least))
        yield from (mine, theirs, ratio(f"{name}, over the floor", mine, theirs, at_most=at_most))
    yield Measurement("memory of a stream", "KiB", tuple(product.stream_kib), at_most=60)
    yield Measurement("floor: memory of a stream", "KiB", tuple(floor.stream_kib))


def _measure(
    costs: Costs,
    address: str,
    process: psutil.Process,
    change: Callable[[int], None],
    *,
    clients: int,
    changes: int,
    delta: bool,
) -> None:
    before, cpu_s = process.memory_info().rss, _cpu_s(process)
    with receivers(address, clients=clients, delta=delta) as fleet:
        times = fleet.next_response(within_s=_ANSWER_S)
        costs.first_sync_s.append(max(times) - min(times))
        costs.first_cpu_s.append(_cpu_s(process) - cpu_s)
        costs.stream_kib.append((process.memory_info().rss - before) / clients / 1024)
        for number in range(changes):
            _one(costs, fleet, process, change, number)


def _one(costs: Costs, fleet: Receivers, process: psutil.Process, change: Callable[[int], None], number: int) -> None:
    cpu_s = _cpu_s(process)
    change(number)
    times = fleet.next_response(within_s=_ANSWER_S)
    costs.last_s.append(max(times) - min(times))
    costs.middle_s.append(statistics.median(times) - min(times))
    costs.cpu_ms.append((_cpu_s(process) - cpu_s) * 1000)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def _floor(clusters: int) -> Iterator[tuple[str, psutil.Process, Callable[[int], None]]]:
    """A floor server: its address, its process, and what changes a cluster there."""
    command = [sys.executable, "-m", "bench.floor", str(clusters)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        commands, port = cast(IO[str], process.stdin), cast(IO[str], process.stdout).readline().strip()

        def change(_number: int) -> None:
            commands.write("\n")
            commands.flush()

        try:
            yield f"127.0.0.1:{port}", psutil.Process(process.pid), change
        finally:
            process.kill()


def _builder() -> Callable[[], None]:
    from controlplane.builder.services import build  # noqa: PLC0415
    from controlplane.catalog.selectors import environment_get  # noqa: PLC0415

    environment = environment_get(key="default").id
    return lambda: build(environment_id=environment)


def _rules(count: int) -> None:
    """Access rules that are asked about every name and decide none of those that are there."""
    from controlplane.access.services import rule_create  # noqa: PLC0415
    from controlplane.access.values import RuleDraft  # noqa: PLC0415
    from controlplane.accounts.principal import SYSTEM  # noqa: PLC0415
    from xdscore.access import Effect  # noqa: PLC0415

    for number in range(count):
        rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, f"forbidden-{number}-*"), actor=SYSTEM)
