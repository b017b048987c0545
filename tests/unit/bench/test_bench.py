"""The frame that scenarios run in: parameters, targets, the file, the table."""

import json
from pathlib import Path

import pytest

from bench.__main__ import _read, main
from bench.ads_process import after_word
from bench.registry import (
    Measurement,
    Scenario,
    UnknownScenarioError,
    load_scenarios,
    parameters_of,
    percentile,
    ratio,
    ratio_by_round,
)
from bench.report import Result, document, measurement_from_json, table, write
from bench.resources import fleet

FAN_OUT = Scenario("fan-out", "Everybody is told", lambda _: (), {"clients": 1_000, "repeat": 5})


@pytest.mark.parametrize(("samples", "met"), [((1.0, 9.0, 2.0), True), ((1.0, 9.0, 3.0), False)])
def test_measurement__target__is_kept_by_the_median(samples: tuple[float, ...], met: bool) -> None:
    assert Measurement("m", "s", samples, at_most=2.0).met is met


def test_ratio__product_and_floor__compares_medians() -> None:
    assert ratio("r", Measurement("p", "s", (3.0, 4.0, 5.0)), Measurement("f", "s", (2.0,)), at_most=1.5).met is False


def test_ratio_by_round__a_slow_round__is_in_no_ratio_because_it_met_both_sides() -> None:
    costly = Measurement("p", "s", (2.0, 4.0, 20.0, 40.0, 3.0, 3.0))
    cheap = Measurement("f", "s", (1.0, 2.0, 10.0, 20.0, 2.0, 1.0))

    found = ratio_by_round("r", costly, cheap, rounds=3, at_most=1.5)

    assert (found.samples, found.met) == ((2.0, 2.0, 2.0), False)


@pytest.mark.parametrize(("percent", "expected"), [(1, 1), (50, 50), (99, 99), (100, 100)])
def test_percentile__of_the_first_hundred_numbers__is_that_number(percent: int, expected: int) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], percent) == expected


def test_percentile__few_samples__is_the_largest() -> None:
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0


def test_parameters__given__replace_defaults() -> None:
    assert parameters_of(FAN_OUT, {"clients": 10}, strict=True) == {"clients": 10, "repeat": 5}


def test_parameters__unknown__are_refused_for_one_scenario_and_left_to_others() -> None:
    with pytest.raises(UnknownScenarioError, match=r"no parameter 'rows'\. Its parameters are: clients, repeat"):
        parameters_of(FAN_OUT, {"rows": 1}, strict=True)

    assert parameters_of(FAN_OUT, {"rows": 1}, strict=False) == FAN_OUT.parameters


def test_file__written__reads_back_with_targets_and_machine(tmp_path: Path) -> None:
    measured = Measurement("build", "ms", (120.0, 180.0, 140.0), at_most=150)
    results = [Result("build", {"repeat": 3}, (measured,), 1.5)]

    write(tmp_path / "out" / "latest.json", results)

    data = json.loads((tmp_path / "out" / "latest.json").read_text())
    assert measurement_from_json(data["scenarios"][0]["measurements"][0]) == measured
    assert data["scenarios"][0]["measurements"][0]["met"] is True
    assert data["machine"]["cores"] >= 1
    assert data["format"] == 1


def test_table__results__show_median_target_and_failure() -> None:
    slow = Measurement("build", "ms", (200.0,), at_most=150)

    lines = table([Result("a", {}, (slow,), 1.0), Result("b", {}, (), 1.0, "Traceback\nValueError: no server")])

    text = lines.splitlines()
    assert text[1].split() == ["a", "build", "200", "ms", "≤", "150", "MISSED"]
    assert text[2].endswith("ValueError: no server")


@pytest.mark.parametrize("arguments", [["no-such-scenario"], ["apply", "rows=1"], ["apply", "repeat=many"]])
def test_command_line__unknown_words__are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err


def test_command_line__no_scenario__runs_those_that_do_not_take_very_long() -> None:
    scenarios = load_scenarios()

    chosen, _ = _read(["clients=5"], scenarios)

    assert {each.name for each in chosen} == scenarios.keys() - {"crowd", "churn", "scale"}
    assert [each.name for each in _read(["crowd"], scenarios)[0]] == ["crowd"]


def test_scenarios__loaded__have_names_and_summaries() -> None:
    scenarios = load_scenarios()

    assert {"build-10k", "build-100k", "apply", "list", "explain"} <= scenarios.keys()
    assert all(each.summary for each in scenarios.values())


def test_document__without_results__still_says_what_was_measured() -> None:
    assert document([])["scenarios"] == []


@pytest.mark.parametrize("count", [1, 5, 6, 100, 1_000])
def test_fleet__count__is_exact_and_names_are_distinct(count: int) -> None:
    manifests = list(fleet(count))

    names = {(each["@type"], each.get("name") or each["cluster_name"]) for each in manifests}
    assert len(manifests) == len(names) == count


@pytest.mark.parametrize("half", ["", "facts are", "facts are ke", "tasks: 4"])
def test_after_word__line_that_is_just_written__does_not_count_yet(half: str) -> None:
    said = f"a log line of facts are\nfacts are kept\n{{}}\nfacts are lost\n{half}"

    assert after_word("facts are", said) == ["kept", "lost"]
