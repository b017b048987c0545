"""The soak's pure parts: which faults a seed draws, what the truth allows, its figures and its report."""

import json
from collections import Counter
from itertools import islice

import pytest
from envoy.config.cluster.v3 import cluster_pb2

from tests.soak.figures import percentile, slope_per_minute
from tests.soak.report import Life, Round, Run
from tests.soak.schedule import ENDS_ELDERS, FULL_CYCLES, Fault, Kind, draw
from tests.soak.truth import GUARDED, MISSING, RULE, Truth
from tests.support.watchers import Report, View

FULL = FULL_CYCLES * len(Kind)


def drawn(seed: int, count: int = 200) -> list[Fault]:
    return list(islice(draw(seed), count))


def test_draw__same_seed__same_faults() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_draw__each_cycle__has_every_kind_once_and_elders_are_left_alone_in_the_end() -> None:
    faults = drawn(7)

    assert {fault.kind for fault in faults[: len(Kind)]} == set(Kind)
    later = faults[FULL:]
    assert {fault.kind for fault in later} == set(Kind) - ENDS_ELDERS
    assert {fault.victim for fault in later} == {1}
    assert {fault.victim for fault in faults[:FULL]} == {0, 1}


@pytest.mark.parametrize(("percent", "expected"), [(50, 3), (99, 5), (100, 5), (1, 1)])
def test_percentile__of_five__is_the_nearest_rank(percent: float, expected: float) -> None:
    assert percentile([5, 3, 1, 2, 4], percent) == expected


def test_slope__line_after_a_warm_up__is_its_growth_in_a_minute() -> None:
    warm = [(float(at), 1000.0 * at) for at in range(0, 60, 5)]
    line = [(float(at), 7.0 + 2.0 * at) for at in range(60, 300, 5)]

    assert slope_per_minute(warm + line, warm_up_s=60, at_least_s=200) == pytest.approx(120)


@pytest.mark.parametrize("samples", [[], [(0.0, 1.0)], [(0.0, 1.0), (100.0, 2.0), (159.0, 3.0)]])
def test_slope__life_too_short__is_none(samples: list[tuple[float, float]]) -> None:
    assert slope_per_minute(samples, warm_up_s=60, at_least_s=60) is None


def view(**clusters: int) -> View:
    return frozenset(
        (name, cluster_pb2.Cluster(name=name, connect_timeout={"seconds": seconds}).SerializeToString())
        for name, seconds in clusters.items()
    )


@pytest.fixture
def truth() -> Truth:
    """The clusters a, of one second, and GUARDED, of two; everything before has been compared."""
    truth = Truth()
    truth.write("a", 1, sure=True)
    truth.write(GUARDED, 2, sure=True)
    truth.checked()
    return truth


def told(truth: Truth, *views: View, connected: int = 2) -> Report:
    """Two clients with these views and the right answers."""
    answers = frozenset(truth.answers().items())
    return Report(views=Counter(views), answers=Counter({answers: 2}), connected=connected)


def test_truth__every_client_has_it__is_told(truth: Truth) -> None:
    right = view(a=1, guarded=2)

    assert truth.is_told(told(truth, right, right), clients=2)


@pytest.mark.parametrize("views", [(view(a=1),), (view(a=9, guarded=2),), (view(a=1, guarded=2), view(a=1))])
def test_truth__a_client_has_something_else__is_not_told(truth: Truth, views: tuple[View, ...]) -> None:
    assert not truth.is_told(told(truth, *views), clients=2)
    assert "2 clients have a stream" in truth.difference(told(truth, *views))


def test_truth__a_client_without_a_stream_or_with_another_answer__is_not_told(truth: Truth) -> None:
    right = view(a=1, guarded=2)
    other = told(truth, right)
    other.answers = Counter({frozenset({(MISSING, 5)}): 2})

    assert not truth.is_told(told(truth, right, connected=1), clients=2)
    assert not truth.is_told(other, clients=2)


def test_truth__denied__takes_the_cluster_away_and_orders_the_error(truth: Truth) -> None:
    truth.deny(True, sure=True)

    assert truth.shown() == {"a": 1}
    assert truth.answers()[GUARDED] == 7
    report = Report(vanished=Counter({GUARDED: 2}), errors=Counter({(GUARDED, 7): 2}))
    assert truth.violations(report, clients=2, ends=()) == []


@pytest.mark.parametrize(
    "report",
    [
        Report(vanished=Counter({"a": 1})),
        Report(errors=Counter({(GUARDED, 7): 1})),
        Report(errors=Counter({(MISSING, 14): 1})),
        Report(ends=Counter({"UNAVAILABLE": 1})),
    ],
)
def test_truth__what_nothing_ordered__is_a_violation(truth: Truth, report: Report) -> None:
    assert len(truth.violations(report, clients=2, ends=("OK",))) == 1


def test_truth__unanswered_write__allows_both_until_it_is_read(truth: Truth) -> None:
    truth.write("a", None, sure=False)
    truth.deny(True, sure=False)

    report = Report(vanished=Counter({"a": 2}), errors=Counter({(GUARDED, 7): 2}))
    assert truth.violations(report, clients=2, ends=()) == []
    assert truth.unsure == {"a", RULE}
    assert truth.clusters["a"] == 1


def test_report__rounds_and_lives__figures_and_violations_in_both_forms() -> None:
    life = Life("ads0", 42, tuple((10.0 * at, 1024.0 * 1024 + 1024 * at) for at in range(60)))
    run = Run(7, 45, {"cores": 2}, lives=[life])
    kinds = [Kind.BURST, Kind.REDIS_KILLED, Kind.REFUSAL]
    run.rounds = [Round(Fault(kind, 0, 2.5), 20.0 * at, 1.0 + at) for at, kind in enumerate(kinds)]
    run.rounds.append(Round(Fault(Kind.WORKER_KILLED, 1, 3.0), 80, None, ("one is missing",)))

    as_json = json.loads(json.dumps(run.as_json()))

    assert as_json["convergence_s"] == {"p50": 2.0, "p99": 3.0, "longest": 3.0}
    assert as_json["violations"] == ["a worker is killed: one is missing"]
    assert as_json["memory"][0]["slope_kib_per_minute"] == 6.0
    assert as_json["faults"][3] == {
        "at_s": 80, "kind": "a worker is killed", "victim": 1, "held_s": 3.0, "converged_s": None
    }  # fmt: skip
    text = run.as_markdown()
    assert "* a worker is killed: one is missing" in text
    assert "| 80 | a worker is killed | 1 | 3.0 | - |" in text
