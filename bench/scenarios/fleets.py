"""One server or fleet beside another: what audiences, workers, rules, errors and facts cost."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench.ads_process import AdsProcess, ads_process
from bench.ads_program import FACTS_WORD, KEPT, LOST
from bench.fan_outs import (
    LIMITS,
    PER_CLUSTER,
    Side,
    audience_groups,
    builder,
    measure_beside,
    measure_in_turn,
    one_change,
    product,
    rules,
)
from bench.filled import filled, put
from bench.receivers import Asks, receivers
from bench.registry import Measurement, Parameters, ratio, ratio_by_round, scenario
from bench.resources import cluster, endpoints, fleet
from xdscore.resource_types import ENDPOINT

_FLEET = {"clients": 1_000, "clusters": 1_000, "rounds": 4, "changes": 3, "rules": 1_000}
_ANSWER_S = 120.0
_SWITCHED_S = 10.0


@scenario("audiences", "Clients of ten audiences beside clients of one", parameters={**_FLEET, "audiences": 10})
def audiences(parameters: Parameters) -> Iterator[Measurement]:
    """Measure clients of many audiences against clients of one, where each audience is denied another cluster.
    performance.md: at most 1.3 times the cost.
    """
    with filled(parameters["clusters"] * PER_CLUSTER):
        workloads = audience_groups(parameters["audiences"])
        rules(parameters["rules"])
        builder()()
        with ads_process(**LIMITS) as ads:
            one = product(ads, Asks(workloads=workloads[:1]), name="one audience")
            many = product(ads, Asks(workloads=workloads), name=f"{len(workloads)} audiences")
            _measure((one, many), parameters)
    yield from _compared(many, one, "audiences over one", rounds=parameters["rounds"], at_most=1.3)


@scenario("workers", "Two ADS workers beside one: processor time for each response", parameters={**_FLEET, "delta": 0})
def workers(parameters: Parameters) -> Iterator[Measurement]:
    """Measure two ADS workers against one. performance.md: at most 1.2 times the processor time for each response. They
    are not faster on two cores on which the clients run, too.
    """
    asks = Asks(delta=bool(parameters["delta"]))
    with filled(parameters["clusters"] * PER_CLUSTER):
        rules(parameters["rules"])
        builder()()
        with ads_process(**LIMITS) as single, ads_process(**LIMITS, PARLEY_ADS_WORKERS="2") as double:
            one = product(single, asks, name="one worker")
            two = product(double, asks, name="two workers")
            _measure((one, two), parameters)
    responses = parameters["clients"] * parameters["changes"] * parameters["rounds"]
    each = [
        side.measurement("processor time for a response", "ms", (sum(side.cpu_ms) / responses,)) for side in (one, two)
    ]
    yield from each
    yield ratio("two workers over one: processor time for a response", each[1], each[0], at_most=1.2)


@scenario(
    "extras",
    "Access rules, resource errors and facts, beside a server without them",
    parameters={**_FLEET, "changes": 16, "missing": 5},
)
def extras(parameters: Parameters) -> Iterator[Measurement]:
    """Measure what access rules, resource errors and facts cost. Issue 10: at most 15 %.

    Some clients are under access rules, are told why names are missing, and facts about them are kept. The others have
    none of this. Both ask one server for the same, because two processes of one program differ by more than the result.
    """
    missing = tuple(f"missing-{number}" for number in range(parameters["missing"]))
    rounds, clients, changes = parameters["rounds"], parameters["clients"], parameters["changes"]
    with filled(parameters["clusters"] * PER_CLUSTER):
        _second_environment(parameters["clusters"])
        rules(parameters["rules"])
        builder()()
        builder("plain")()
        with ads_process(("-m", "bench.ads_program"), **LIMITS) as ads:
            for kind, delta in (("SotW", False), ("delta", True)):
                on = product(ads, Asks(delta=delta, also=missing), name=f"{kind}, everything on")
                on.its_turn = partial(_facts_are, ads, KEPT)
                nothing = Asks(delta=delta, also=missing, workloads=("plain",), errors=False)
                off = product(ads, nothing, name=f"{kind}, everything off", environment="plain")
                off.its_turn = partial(_facts_are, ads, LOST)
                measure_beside((on, off), rounds=rounds, clients=clients, changes=changes)
                yield from _compared(on, off, f"{kind}, on over off", rounds=rounds, at_most=1.15)


@scenario(
    "endpoints",
    "Clients with a part of the endpoints each; one assignment changes",
    parameters={"clients": 1_000, "each": 200, "of": 2_000, "changes": 10},
)
def some_endpoints(parameters: Parameters) -> Iterator[Measurement]:
    """Measure a change of one endpoint assignment to which few clients subscribe. performance.md: they have it within
    100 ms, and no other client is sent anything.
    """
    asks = Asks(delta=True, type_url=ENDPOINT.url, each=parameters["each"], of=parameters["of"])
    with filled(0):
        put([make(number) for number in range(parameters["of"]) for make in (cluster, endpoints)])
        builder()()
        with ads_process(**LIMITS) as ads, receivers(ads.address, clients=parameters["clients"], asks=asks) as clients:
            clients.next_response(within_s=_ANSWER_S)
            side = product(ads, asks)
            woken = too_many = 0
            for number in range(parameters["changes"]):
                side.change = _moves_endpoints(number)
                woken = sum(asks.wants(client, number) for client in range(parameters["clients"]))
                one_change(side, clients, by=woken)
                time.sleep(0.3)  # whoever was woken without cause is heard of now
                too_many += clients.take().responses
    yield side.measurement("a change, first subscriber to last", "ms", [each * 1000 for each in side.last_s], 100)
    yield side.measurement("processor time of a change", "ms", side.cpu_ms)
    yield Measurement("subscribers of the last one that changed", "clients", (woken,))
    yield Measurement("responses to others", "", (too_many,), at_most=0)


def _facts_are(ads: AdsProcess, wanted: str) -> None:
    """Make the server keep the facts about streams, or drop them, as `wanted` says. Raises RuntimeError when it does
    not confirm that.
    """
    if ads.told(FACTS_WORD)[-1:] == [wanted]:
        return
    ads.process.send_signal(signal.SIGUSR2)
    ends = time.monotonic() + _SWITCHED_S
    while ads.told(FACTS_WORD)[-1:] != [wanted]:
        if time.monotonic() > ends:
            raise RuntimeError(f"the server does not say that facts are {wanted}")
        time.sleep(0.01)


def _measure(sides: Sequence[Side], parameters: Parameters) -> None:
    rounds, clients, changes = parameters["rounds"], parameters["clients"], parameters["changes"]
    measure_in_turn(sides, rounds=rounds, clients=clients, changes=changes)


def _compared(costly: Side, cheap: Side, title: str, *, rounds: int, at_most: float) -> Iterator[Measurement]:
    quantities: tuple[tuple[str, str, Callable[[Side], list[float]]], ...] = (
        ("a change, first client to last", "s", lambda side: side.last_s),
        ("processor time of a change", "ms", lambda side: side.cpu_ms),
        ("processor time of connecting", "s", lambda side: side.first_cpu_s),
    )
    for name, unit, took in quantities:
        first, second = (side.measurement(name, unit, took(side)) for side in (costly, cheap))
        times = ratio_by_round(f"{title}: {name}", first, second, rounds=rounds, at_most=at_most)
        yield from (first, second, times)


def _second_environment(clusters: int) -> None:
    """Make an environment with the same clusters, to which clients belong whose node.cluster is its key."""
    from controlplane.accounts.principal import SYSTEM  # noqa: PLC0415
    from controlplane.catalog.services import environment_create  # noqa: PLC0415
    from controlplane.catalog.values import EnvironmentPolicy  # noqa: PLC0415
    from xdscore.access import Effect  # noqa: PLC0415
    from xdscore.environment_choice import Selector  # noqa: PLC0415

    policy = EnvironmentPolicy(default_effect=Effect.ALLOW, selectors=(Selector(node_cluster="plain"),))
    environment_create(key="plain", policy=policy, actor=SYSTEM)
    put(list(fleet(clusters * PER_CLUSTER)), environment="plain")


def _moves_endpoints(number: int) -> Callable[[], None]:
    """A function that changes the endpoint assignment with this number each time it is called."""

    def change() -> None:
        put([endpoints(number) | {"policy": {"overprovisioning_factor": 150}}])
        builder()()

    return change
