"""What a server spends to bring a change to many clients. Several servers, or fleets, are measured in turn, so that a
busy moment of the machine meets all of them.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import psutil

from bench.ads_process import AdsProcess, cpu_s
from bench.filled import put
from bench.floor_process import FloorProcess
from bench.receivers import Asks, Receivers, receivers
from bench.registry import Measurement
from bench.resources import cluster

ANSWER_S = 120.0
# Nobody hints here: so often ADS looks for a snapshot. One fleet may come before the last one's end is noticed, and as
# fast as it can: how many streams a second are let in is a limit, not what letting one in costs.
LIMITS = {
    "PARLEY_LIMIT_RECONCILE_POLL_MS": "200",
    "PARLEY_LIMIT_STREAMS_PER_REPLICA": "20000",
    "PARLEY_LIMIT_STREAMS_ADMITTED_PER_S": "100000",
}
_QUIET_S = 0.25
_QUIET_SHARE = 0.1
_SETTLES_S = 30.0
# Changes of one side before it is another's turn, and how long facts may wait for their second to be over.
_AT_A_TIME = 4
_AFTERWARDS_S = 1.3
_KIB = 1024
# A change must be one, whichever side of a scenario made the one before.
_timeouts = count(2)
# A cluster has five other resources in a fleet.
PER_CLUSTER = 6


class Server(Protocol):
    """A server in a process of its own, which can be started again."""

    address: str

    @property
    def process(self) -> psutil.Process:
        """The running process, to read its memory and processor time."""
        ...

    def start(self) -> None:
        """Start the server, and return once it serves."""
        ...

    def stop(self) -> None:
        """Stop the server."""
        ...


@dataclass
class Side:
    """One of several servers (or groups of clients) that are compared, with its clients and what was measured of it;
    samples are in seconds unless a name says otherwise.

    `change`: changes the server's first cluster.
    `per_s`: how many clients connect in a second; 0: all at once.
    `light`: whether they are those of `bench.light_clients`, which cost the machine less than gRPC's.
    `its_turn`: prepares the server for this side, where `measure_beside` has several sides of one server.
    """

    name: str
    server: Server
    change: Callable[[], None]
    asks: Asks
    per_s: int = 0
    light: bool = False
    its_turn: Callable[[], None] = lambda: None
    first_sync_s: list[float] = field(default_factory=list)
    first_cpu_s: list[float] = field(default_factory=list)
    last_s: list[float] = field(default_factory=list)
    middle_s: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    stream_kib: list[float] = field(default_factory=list)

    def measurement(self, name: str, unit: str, samples: Sequence[float], at_most: float | None = None) -> Measurement:
        """A quantity of this side, made of its samples. `at_most`: the target; None where there is none."""
        return Measurement(f"{self.name}: {name}" if self.name else name, unit, tuple(samples), at_most)


def measure_in_turn(sides: Sequence[Side], *, rounds: int, clients: int, changes: int) -> None:
    """Measure the sides one after the other, `rounds` times: start the side's server, connect its clients, and make
    `changes` changes.

    Each round has new processes, because two processes of one program differ by up to a tenth. The order of the sides
    is turned round in each round.
    """
    for turn in _rounds(sides, rounds):
        for side in turn:
            with _connected(side, clients) as fleet:
                for _ in range(changes):
                    one_change(side, fleet)
            _until_quiet(side.server.process)


def measure_beside(sides: Sequence[Side], *, rounds: int, clients: int, changes: int) -> None:
    """Measure the sides while the clients of all are connected. They take turns every few changes, so that what else
    the machine does at a time meets all. A change of one side must not reach the clients of another.

    Connecting is measured afterwards, four times for each side, so that what a process does only once in its life is
    not in it. Processor time is measured over four changes (`changes` is rounded up to fours), with what the server
    still does after its clients have their answers.
    """
    for turn in _rounds(sides, rounds):
        with ExitStack() as stack:
            fleets = [(side, stack.enter_context(_fleet_of(side, clients))) for side in turn]
            for _ in range(-(-changes // _AT_A_TIME)):
                for side, fleet in fleets:
                    side.its_turn()
                    used_s = cpu_s(side.server.process)
                    for _ in range(_AT_A_TIME):
                        _fan_out(side, fleet)
                    time.sleep(_AFTERWARDS_S)
                    side.cpu_ms.append((cpu_s(side.server.process) - used_s) / _AT_A_TIME * 1000)
                fleets.reverse()
        back = turn[::-1]
        # A large collection falls on every sixth or so: in this order neither a side nor its neighbour gets it always.
        for side in (*turn, *back, *back, *turn):
            side.its_turn()
            with _connected(side, clients, afterwards_s=_AFTERWARDS_S):
                pass
            _until_quiet(side.server.process)


def _rounds(sides: Sequence[Side], rounds: int) -> Iterator[Sequence[Side]]:
    for number in range(rounds):
        yield sides if number % 2 == 0 else sides[::-1]
        for server in {id(side.server): side.server for side in sides}.values():
            server.stop()
            server.start()


@contextmanager
def _fleet_of(side: Side, clients: int) -> Iterator[Receivers]:
    """Connect the clients of one of several sides, and let them leave at the end of the block; both while it is the
    side's turn.
    """
    side.its_turn()
    with _receivers(side, clients) as fleet:
        fleet.next_response(within_s=ANSWER_S)
        time.sleep(_AFTERWARDS_S)
        yield fleet
        side.its_turn()
    _until_quiet(side.server.process)


@contextmanager
def _connected(side: Side, clients: int, *, afterwards_s: float = 0.0) -> Iterator[Receivers]:
    process = side.server.process
    resident, used_s = process.memory_info().rss, cpu_s(process)
    with _receivers(side, clients) as fleet:
        times = fleet.next_response(within_s=ANSWER_S)
        side.first_sync_s.append(max(times) - min(times))
        time.sleep(afterwards_s)
        side.first_cpu_s.append(cpu_s(process) - used_s)
        side.stream_kib.append((process.memory_info().rss - resident) / clients / _KIB)
        yield fleet


def _receivers(side: Side, clients: int) -> AbstractContextManager[Receivers]:
    processes = max(2, -(-clients // 5_000))
    return receivers(
        side.server.address,
        clients=clients,
        asks=side.asks,
        processes=processes,
        per_s=side.per_s,
        light=side.light,
    )


def _until_quiet(process: psutil.Process) -> None:
    """Wait until a server has finished what it does after its clients left, so that it does not disturb the next
    measurement.
    """
    ends = time.monotonic() + _SETTLES_S
    before = cpu_s(process)
    while time.monotonic() < ends:
        time.sleep(_QUIET_S)
        now = cpu_s(process)
        if now - before < _QUIET_S * _QUIET_SHARE:
            return
        before = now


def one_change(side: Side, fleet: Receivers, *, by: int | None = None) -> None:
    """Make one change, wait until all clients (or `by` of them) have it, and add its times and processor time to the
    side's samples.
    """
    used_s = cpu_s(side.server.process)
    _fan_out(side, fleet, by=by)
    side.cpu_ms.append((cpu_s(side.server.process) - used_s) * 1000)


def _fan_out(side: Side, fleet: Receivers, *, by: int | None = None) -> None:
    """Make one change and add the time from the first client that has it to the last one to the side's samples. The
    time until the change is a snapshot is not in it; another scenario measures that.
    """
    side.change()
    times = fleet.next_response(within_s=ANSWER_S, by=by)
    side.last_s.append(max(times) - min(times))
    side.middle_s.append(statistics.median(times) - min(times))


def product(ads: AdsProcess, asks: Asks, *, name: str = "", environment: str = "default", per_s: int = 0) -> Side:
    """The side for comparisons that is Parley's ADS server, over the installation that this process has filled."""
    build = builder(environment)

    def change() -> None:
        put([cluster(0, timeout_s=next(_timeouts))], environment=environment)
        build()

    return Side(name, ads, change, asks, per_s)


def floor(server: FloorProcess, asks: Asks) -> Side:
    """The side for comparisons that is the floor server, which does the least work that the same traffic needs."""
    return Side("floor", server, server.change, asks)


def builder(environment: str = "default") -> Callable[[], None]:
    """A function that builds the environment once, as a worker does when it gets a hint."""
    from controlplane.builder.services import build  # noqa: PLC0415
    from controlplane.catalog.selectors import environment_get  # noqa: PLC0415

    number = environment_get(key=environment).id
    return lambda: build(environment_id=number)


def rules(number_of: int, environment: str = "default") -> None:
    """Add `number_of` access rules that have to be looked at for every name and decide none of the existing names.

    They are stored at once, past the services: those try each new rule against all others, which is not to be measured.
    """
    from django.db.models import Max  # noqa: PLC0415

    from controlplane.access.models import AccessRule  # noqa: PLC0415
    from controlplane.catalog.selectors import environment_get  # noqa: PLC0415
    from xdscore.access import Effect  # noqa: PLC0415

    holder = environment_get(key=environment).id
    behind = AccessRule.objects.filter(environment=holder).aggregate(last=Max("position"))["last"] or 0
    AccessRule.objects.bulk_create(
        AccessRule(
            environment_id=holder,
            position=behind + number + 1,
            pattern=f"forbidden-{number}-*",
            effect=Effect.DENY.value,
        )
        for number in range(number_of)
    )


def audience_groups(count: int) -> tuple[str, ...]:
    """Make `count` client groups by node.cluster, and deny each another cluster; returns their values of
    node.cluster.
    """
    from controlplane.access.services import group_create, rule_create  # noqa: PLC0415
    from controlplane.access.values import GroupDraft, RuleDraft  # noqa: PLC0415
    from controlplane.accounts.principal import SYSTEM  # noqa: PLC0415
    from xdscore.access import Effect  # noqa: PLC0415
    from xdscore.client_groups import Trust  # noqa: PLC0415
    from xdscore.environment_choice import Selector  # noqa: PLC0415

    words = tuple(f"workload-{number}" for number in range(count))
    for number, word in enumerate(words):
        group = GroupDraft(word, (Selector(node_cluster=word),), Trust.DECLARED)
        group_create(environment_key="default", draft=group, actor=SYSTEM)
        # The first cluster is the one that changes.
        rule = RuleDraft(Effect.DENY, str(cluster(number + 1)["name"]), client_groups=(word,))
        rule_create(environment_key="default", draft=rule, actor=SYSTEM)
    return words
