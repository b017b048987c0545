"""Ratios: what is worse than it was, what is missing, and how turns of two revisions are judged."""

import json
from pathlib import Path

import pytest

from bench.ratios import (
    Committed,
    Run,
    Turn,
    committed_read,
    committed_write,
    lines,
    parameters_of,
    ratios_of,
    run_of,
    slower,
    worse,
)
from bench.registry import OVER_THE_FLOOR, Measurement, over_the_floor
from bench.report import Result, write

BEFORE = {"fan-out": {"last": 1.2, "middle": 1.0}}


NOTHING = Run({})


def run(last: float) -> Run:
    return Run({"fan-out": {"last": last}})


def turn(before: float, now: float) -> Turn:
    return run(before), run(now)


def beside_the_floor(*samples: float, ratio: float = 1.0) -> Run:
    name = "last" + OVER_THE_FLOOR
    return Run({"fan-out": {name: ratio}}, {"fan-out": {name: samples}})


@pytest.mark.parametrize(("last", "sentences"), [(1.1, 0), (1.5, 0), (1.51, 1)])
def test_worse__ratio__is_told_beyond_the_tolerance_only(last: float, sentences: int) -> None:
    measured = {"fan-out": {"last": last, "middle": 1.0}}

    assert len(worse(measured, BEFORE, tolerance=0.25)) == sentences


def test_worse__ratio_that_was_not_measured__is_told() -> None:
    found = worse({"fan-out": {"last": 1.0}}, BEFORE, tolerance=0.25)

    assert [str(each) for each in found] == ["fan-out: 'middle' was not measured."]
    assert len(worse({}, BEFORE, tolerance=0.25)) == 2


def test_ratios__of_a_run__are_those_of_unit_times(tmp_path: Path) -> None:
    rows = (Measurement("seconds", "s", (3.0,)), Measurement("last", "times", (1.3,)))
    write(tmp_path / "latest.json", [Result("fan-out", {"clients": 5}, rows, 1.0), Result("idle", {}, rows[:1], 1.0)])
    document = json.loads((tmp_path / "latest.json").read_text())

    assert ratios_of(document) == {"fan-out": {"last": 1.3}}
    assert parameters_of(document)["fan-out"] == {"clients": 5}


def test_committed__written_twice__each_scenario_as_it_was_measured_last(tmp_path: Path) -> None:
    path = tmp_path / "ratios.json"
    nothing = committed_read(path)
    committed_write(path, {"fan-out": {"last": 1.23456}, "extras": {"on": 1.1}}, "aaa")
    committed_write(path, {"fan-out": {"last": 1.3}}, "bbb")

    assert nothing == {}
    assert committed_read(path) == {
        "fan-out": Committed("bbb", {"last": 1.3}),
        "extras": Committed("aaa", {"on": 1.1}),
    }


def test_slower__hours_that_change_both__nothing_is_told() -> None:
    assert slower([turn(1.0, 1.05), turn(2.0, 1.9), turn(1.5, 1.6)], tolerance=0.1) == []


def test_slower__in_the_middle_of_all_turns__is_told_as_it_is_there() -> None:
    found = slower([turn(1.0, 1.3), turn(2.0, 1.9), turn(1.5, 1.8)], tolerance=0.1)

    assert [str(each) for each in found] == ["fan-out: 'last' is 1.8; it was 1.5."]


def test_slower__what_only_one_of_the_two_measures() -> None:
    ours_alone: Turn = (NOTHING, run(9.0))
    theirs_alone: Turn = (run(1.0), NOTHING)

    assert slower([ours_alone], tolerance=0.1) == []
    assert [str(each) for each in slower([theirs_alone], tolerance=0.1)] == ["fan-out: 'last' was not measured."]


def test_slower__ratio_that_is_to_be_compared_and_was_not_measured__is_not_let_through() -> None:
    ours_alone: Turn = (NOTHING, run(9.0))

    found = slower([turn(1.0, 1.0), ours_alone], tolerance=0.1, only=[("fan-out", "last")])

    assert [str(each) for each in found] == ["fan-out: 'last' was not measured."]


def test_slower__only_some_ratios__others_are_not_judged() -> None:
    assert slower([turn(1.0, 9.0)], tolerance=0.1, only=[]) == []


def test_lines__of_turns__say_both_and_how_they_compare() -> None:
    said = lines([turn(1.0, 1.3), turn(2.0, 1.8), turn(1.5, 1.5)], "v1")

    assert said == ["fan-out: last: 1.5, 1.5 at v1; 1.00 times"]


def test_slower__ratio_to_the_floor__by_what_the_product_took_while_the_machine_was_fast() -> None:
    # Slow for one of four samples here and two of four there; and the floor, slow in the same moments, hides it.
    same: Turn = (beside_the_floor(0.1, 0.16, 0.16, 0.1, ratio=1.2), beside_the_floor(0.1, 0.1, 0.16, 0.1, ratio=2.0))
    slow: Turn = (beside_the_floor(0.1, 0.16, 0.16, 0.1, ratio=2.0), beside_the_floor(0.16, 0.12, 0.18, 0.12))

    assert slower([same, same], tolerance=0.1) == []
    assert [str(each) for each in slower([slow, slow], tolerance=0.1)] == ["fan-out: 'last' is 0.12; it was 0.1."]


def test_run__ratio_to_the_floor__has_the_samples_of_the_product(tmp_path: Path) -> None:
    mine, theirs = Measurement("last", "s", (3.0, 4.0)), Measurement("floor: last", "s", (1.0, 2.0))
    rows = (mine, theirs, over_the_floor(mine, theirs), Measurement("on over off", "times", (1.1,)))
    write(tmp_path / "latest.json", [Result("fan-out", {}, rows, 1.0)])

    read = run_of(json.loads((tmp_path / "latest.json").read_text()))

    assert read.ratios["fan-out"].keys() == {"last, over the floor", "on over off"}
    assert read.product == {"fan-out": {"last, over the floor": [3.0, 4.0]}}
