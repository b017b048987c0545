"""What a deployment needs, from what one process costs (docs/scale.md). Pure arithmetic.

Memory of an ADS process and its processor time for a change grow with straight lines; `bench.scenarios.scale` measures
their coefficients and how far the lines are from other points.
"""

import math
from dataclasses import dataclass
from typing import Final

_KIB_PER_MIB: Final = 1024
_MS_PER_S: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one ADS process: memory when empty (MiB), of a resource and of a stream (KiB); processor time of a
    change itself and of one client's response to it (ms).
    """

    base_mib: float
    resource_kib: float
    stream_kib: float
    change_ms: float
    response_ms: float


@dataclass(frozen=True, slots=True)
class Replica:
    """The bounds of one replica: streams (PARLEY_LIMIT_STREAMS_PER_REPLICA), memory (MiB), and the seconds of one core
    in which a change should have reached its last client.
    """

    streams: int = 5_000
    memory_mib: float = 1_024
    change_s: float = 3.0


def memory_mib(costs: Costs, *, clients: float, resources: float) -> float:
    """The memory in MiB of a process with this number of clients in an environment of this number of resources."""
    return costs.base_mib + (resources * costs.resource_kib + clients * costs.stream_kib) / _KIB_PER_MIB


def change_s(costs: Costs, *, clients: float) -> float:
    """The processor time in seconds until a change has reached this number of clients of one process."""
    return (costs.change_ms + clients * costs.response_ms) / _MS_PER_S


def replicas(costs: Costs, replica: Replica, *, clients: int, resources: int) -> int:
    """The number of processes that keep all three bounds. Raises ValueError when the resources alone need more memory,
    or a change without clients more time, than one may take.
    """
    free_mib = replica.memory_mib - memory_mib(costs, clients=0, resources=resources)
    free_s = replica.change_s - change_s(costs, clients=0)
    if free_mib <= 0 or free_s <= 0:
        raise ValueError("a replica without a client needs more than it may take")
    each = min(
        replica.streams,
        free_mib * _KIB_PER_MIB / costs.stream_kib,
        free_s * _MS_PER_S / costs.response_ms,
    )
    return math.ceil(clients / each)


def fit(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """The line through two points, as (value at 0, slope)."""
    slope = (second[1] - first[1]) / (second[0] - first[0])
    return first[1] - first[0] * slope, slope
