"""What a rollout costs: beside none, at a step, and until everybody has what its pilots took (rollouts.md "Evidence").

No worker runs in the first two: the side is opened, stepped and closed as a worker would, at the moment at which that
is to be measured.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from bench.ads_process import ads_process, cpu_s
from bench.fan_outs import LIMITS, PER_CLUSTER, Side, audience_groups, builder, one_change, rules
from bench.filled import filled, put
from bench.installation import installation
from bench.receivers import Asks, Receivers, receivers
from bench.registry import Measurement, Parameters, ratio_by_round, scenario
from bench.resources import cluster, fleet
from bench.whole import Whole, whole

if TYPE_CHECKING:
    from xdscore.sides import RolloutTable

_ANSWER_S = 120.0
# Whoever was sent something without cause is heard of within this time.
_AFTERWARDS_S = 1.0
_PERMILLE = 100
_STEP_PERMILLE = 50
_AT_A_TIME = 4
_BATCH = 1_000
# The clusters that a rollout holds and that change for everybody; those between are denied to an audience each.
_STAGED, _WRITTEN = 20, 0


@scenario(
    "rollout",
    "A change under a tenth of clients on the candidate side, beside one without a rollout",
    parameters={"clients": 1_000, "clusters": 1_000, "rounds": 4, "changes": 8, "rules": 1_000, "audiences": 10},
)
def rollout(parameters: Parameters) -> Iterator[Measurement]:
    """Measure what an open rollout costs a change that reaches everybody. rollouts.md: at most 1.1 times what it costs
    without one, with ten audiences 1.3 times. The same clients of the same process have both, in turns.
    """
    rounds = parameters["rounds"]
    with filled(parameters["clusters"] * PER_CLUSTER):
        workloads = audience_groups(parameters["audiences"])
        rules(parameters["rules"])
        builder()()
        change = _changes(_WRITTEN)
        with ads_process(**LIMITS) as ads:
            for chosen, at_most in ((workloads[:1], 1.1), (workloads, 1.3)):
                what = f"{len(chosen)} audiences" if len(chosen) > 1 else "one audience"
                asks = Asks(delta=True, workloads=chosen)
                with_one, without = (Side(f"{what}, {name}", ads, change, asks) for name in ("a rollout", "none"))
                for _ in range(rounds):
                    ads.stop()
                    ads.start()
                    with receivers(ads.address, clients=parameters["clients"], asks=asks) as clients:
                        clients.next_response(within_s=_ANSWER_S)
                        _in_turns(with_one, without, clients, changes=parameters["changes"])
                yield from _compared(with_one, without, what, rounds=rounds, at_most=at_most)


@scenario(
    "rollout-step",
    "Steps of 5 % of 5,000 clients, and the promotion: who is sent anything",
    parameters={"clients": 5_000, "clusters": 1_000, "steps": 5},
)
def rollout_step(parameters: Parameters) -> Iterator[Measurement]:
    """Measure who is sent anything by a step and by the promotion. rollouts.md: whom the step adds, and nobody else;
    the promotion sends the cohort nothing.
    """
    count = parameters["clients"]
    took_ms, cpu_ms, joined = [], [], 0
    to_others = 0
    with filled(parameters["clusters"] * PER_CLUSTER):
        builder()()
        asks = Asks(delta=True)
        with ads_process(**LIMITS) as ads, receivers(ads.address, clients=count, asks=asks) as clients:
            clients.next_response(within_s=_ANSWER_S)
            table = _opened()
            time.sleep(_AFTERWARDS_S)
            to_others += clients.take().responses
            inside = 0
            for number in range(parameters["steps"]):
                table = replace(table, step=number + 1, permille=(number + 1) * _STEP_PERMILLE)
                now_inside = _inside(table, count)
                joined, inside = now_inside - inside, now_inside
                used_s = cpu_s(ads.process)
                _stepped(table)
                times = clients.next_response(within_s=_ANSWER_S, by=joined)
                took_ms.append((max(times) - min(times)) * 1000)
                time.sleep(_AFTERWARDS_S)
                cpu_ms.append((cpu_s(ads.process) - used_s) * 1000)
                to_others += len(times) - joined + clients.take().responses
            _ended(promoted=True)
            clients.next_response(within_s=_ANSWER_S, by=count - inside)
            time.sleep(_AFTERWARDS_S)
            to_cohort = clients.take().responses
    yield Measurement("a step, first client to last", "ms", tuple(took_ms))
    yield Measurement("processor time of a step, with the second after", "ms", tuple(cpu_ms))
    yield Measurement("clients that the last step added", "clients", (joined,))
    yield Measurement("responses to others", "", (to_others,), at_most=0)
    yield Measurement("responses to the cohort at the promotion", "", (to_cohort,), at_most=0)


@scenario(
    "rollout-pilot",
    "From a REST answer to the last of 1,000 clients, with pilots and without",
    parameters={"clients": 1_000, "resources": 1_000, "changes": 20},
)
def rollout_pilot(parameters: Parameters) -> Iterator[Measurement]:
    """Measure how much later everybody has a change that its pilots take at once. rollouts.md: 1.5 s at the median."""
    with installation() as home, whole(home) as parley:
        manifests = list(fleet(parameters["resources"]))
        for start in range(0, len(manifests), _BATCH):
            parley.published(parley.apply(manifests[start : start + _BATCH]))
        count = parameters["clients"]
        with receivers(parley.ads_address, clients=count, asks=Asks(delta=True)) as clients:
            clients.next_response(within_s=_ANSWER_S)
            without = _timed(parley, clients, parameters["changes"])
            parley.environment_update({"rollout": {"mode": "pilot"}})
            time.sleep(_AFTERWARDS_S)
            clients.take()
            pilots = _timed(parley, clients, parameters["changes"])
    yield Measurement("without, p50", "ms", tuple(without))
    yield Measurement("with pilots, p50", "ms", tuple(pilots))
    later = statistics.median(pilots) - statistics.median(without)
    yield Measurement("later by, p50", "ms", (later,), at_most=1_500)


def _timed(parley: Whole, clients: Receivers, changes: int) -> list[float]:
    """For each of some changes, the milliseconds from its REST answer until the last client has it."""
    took = []
    for _ in range(changes):
        manifest = cluster(0, timeout_s=next(_versions))
        change = parley.put("cluster", str(manifest["name"]), manifest)
        answered = time.monotonic()
        took.append((max(clients.next_response(within_s=_ANSWER_S)) - answered) * 1000)
        parley.published(change)
        time.sleep(_AFTERWARDS_S)
    return took


def _in_turns(with_one: Side, without: Side, clients: Receivers, *, changes: int) -> None:
    """Make `changes` changes with a rollout and as many without, a few at a time."""
    for number in range(-(-changes // _AT_A_TIME)):
        for side in (with_one, without) if number % 2 == 0 else (without, with_one):
            if side is with_one:
                _opened(_PERMILLE)
            time.sleep(_AFTERWARDS_S)
            clients.take()
            for _ in range(_AT_A_TIME):
                one_change(side, clients)
            if side is with_one:
                _ended(promoted=False)


def _compared(with_one: Side, without: Side, what: str, *, rounds: int, at_most: float) -> Iterator[Measurement]:
    quantities: tuple[tuple[str, str, Callable[[Side], list[float]]], ...] = (
        ("a change, first client to last", "s", lambda side: side.last_s),
        ("processor time of a change", "ms", lambda side: side.cpu_ms),
    )
    for name, unit, took in quantities:
        first, second = (side.measurement(name, unit, took(side)) for side in (with_one, without))
        title = f"{what}, a rollout over none: {name}"
        yield from (first, second, ratio_by_round(title, first, second, rounds=rounds, at_most=at_most))


# --- What a worker does


def _numbers() -> Iterator[int]:
    number = 2
    while True:
        yield number
        number += 1


_versions = _numbers()


def _changes(number: int) -> Callable[[], None]:
    """A function that changes the cluster with this number for everybody at once, each time it is called."""
    build = builder()

    def change() -> None:
        put([cluster(number, timeout_s=next(_versions))], staged=False)
        build()

    return change


def _opened(permille: int = 0) -> "RolloutTable":
    """Write a cluster and open a rollout of it, in which so many of a thousand clients are; returns its table."""
    from django.db import transaction  # noqa: PLC0415

    from controlplane.accounts.principal import SYSTEM  # noqa: PLC0415
    from controlplane.catalog.rollout_settings import RolloutMode, RolloutSettings  # noqa: PLC0415
    from controlplane.catalog.selectors import environment_get  # noqa: PLC0415
    from controlplane.catalog.services import environment_lock, environment_update, side_open  # noqa: PLC0415
    from controlplane.catalog.staging import names_waiting  # noqa: PLC0415
    from xdscore.sides import RolloutTable  # noqa: PLC0415

    policy = environment_get(key="default").policy
    if not policy.rollout.stages:
        pilot = replace(policy, rollout=RolloutSettings(mode=RolloutMode.PILOT))
        environment_update(key="default", policy=pilot, actor=SYSTEM)
    put([cluster(_STAGED, timeout_s=next(_versions))])
    table = RolloutTable(str(uuid4()), 0, frozenset(), (), permille, "seed")
    with transaction.atomic(durable=True):
        names = [view.key for view in names_waiting("default")]
        side_open(environment_lock(key="default"), table=table, names=names)
    builder()()
    return table


def _stepped(table: "RolloutTable") -> None:
    from django.db import transaction  # noqa: PLC0415

    from controlplane.catalog.services import environment_lock, side_step  # noqa: PLC0415

    with transaction.atomic(durable=True):
        side_step(environment_lock(key="default"), table=table)
    builder()()


def _ended(*, promoted: bool) -> None:
    """End the open rollout; everybody has what it held, or waits for it."""
    from django.db import transaction  # noqa: PLC0415

    from controlplane.catalog.services import environment_lock, names_promote, side_close  # noqa: PLC0415
    from controlplane.catalog.staging import names_candidate  # noqa: PLC0415

    with transaction.atomic(durable=True):
        environment = environment_lock(key="default")
        if promoted:
            names_promote(environment, names=[view.key for view in names_candidate("default")])
        side_close(environment)
    builder()()


def _inside(table: "RolloutTable", clients: int) -> int:
    """How many of so many receivers are on the candidate side by this table."""
    from xdscore.environment_choice import ClientFacts  # noqa: PLC0415
    from xdscore.sides import Side as Sides  # noqa: PLC0415
    from xdscore.sides import side_of  # noqa: PLC0415

    facts = (ClientFacts(node_id=f"receiver-{number:05}", node_cluster="bench") for number in range(clients))
    return sum(side_of(table, "default", each) is Sides.CANDIDATE for each in facts)
