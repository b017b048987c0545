"""Which fault comes next: a function of the seed and of nothing else.

The faults come in cycles: each cycle has every kind once, in an order of its own. In the first cycles everything may be
hit. After them the elders, which are the first of each pair and the web process, are left alone, so that what their
memory does over a long life can be told.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import count

FULL_CYCLES = 2
_SHORTEST_S, _LONGEST_S = 2.0, 8.0


class Kind(Enum):
    """What goes wrong, or happens at a bad moment."""

    WORKER_KILLED = "a worker is killed"
    WORKER_FROZEN = "a worker is frozen"
    WORKERS_KILLED = "both workers are killed"
    REPLICA_KILLED = "an ADS replica is killed"
    REPLICA_TERMINATED = "an ADS replica is told to leave"
    REPLICA_FROZEN = "an ADS replica is frozen"
    REPLICAS_KILLED = "both ADS replicas are killed"
    REPLICA_RESET = "a replica's connections to both stores are reset and refused"
    REPLICA_SILENCED = "a replica's connections to both stores carry nothing"
    WEB_RESTARTED = "the web process is told to leave"
    REDIS_KILLED = "Redis is killed and comes back empty"
    REDIS_FROZEN = "Redis is frozen"
    DATABASE_STOPPED = "PostgreSQL is stopped at once"
    DATABASE_KILLED = "PostgreSQL is killed"
    DATABASE_FROZEN = "PostgreSQL is frozen"
    HINTS_FORGED = "hints are forged"
    BURST = "changes come in a burst"
    REFUSAL = "a client refuses a revision, which is put into quarantine and released"
    CLIENTS_RECONNECT = "all clients connect again at once"
    CLIENTS_FROZEN = "all clients are frozen"
    EVERYTHING_RESTARTED = "every process is stopped and started"


ENDS_ELDERS = frozenset({Kind.WORKERS_KILLED, Kind.REPLICAS_KILLED, Kind.WEB_RESTARTED, Kind.EVERYTHING_RESTARTED})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: which of a pair it hits, and how long it lasts before it is undone."""

    kind: Kind
    victim: int
    held_s: float


def draw(seed: int) -> Iterator[Fault]:
    """The faults of a run, without end."""
    chance = random.Random(seed)  # noqa: S311 - a run that can be repeated, no secret
    for cycle in count():
        full = cycle < FULL_CYCLES
        kinds = [kind for kind in Kind if full or kind not in ENDS_ELDERS]
        chance.shuffle(kinds)
        for kind in kinds:
            victim = chance.randrange(2)
            yield Fault(kind, victim if full else 1, round(chance.uniform(_SHORTEST_S, _LONGEST_S), 1))
