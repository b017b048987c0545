"""The guard over the ratios: what is worse, what is missing, what is let through."""

import json
from pathlib import Path

import pytest

from bench import guard
from bench.guard import ratios_of, worse
from bench.registry import Measurement
from bench.report import Result, write

COMMITTED = {"fan-out": {"last": 1.2, "middle": 1.0}}


def run_of(path: Path, last: float) -> None:
    rows = (
        Measurement("seconds", "s", (3.0,)),
        Measurement("last", "times", (last,)),
        Measurement("middle", "times", (0.9,)),
    )
    write(path, [Result("fan-out", {}, rows, 1.0), Result("idle", {}, rows[:1], 1.0)])


@pytest.mark.parametrize(("last", "sentences"), [(1.1, 0), (1.5, 0), (1.51, 1)])
def test_worse__ratio__is_told_beyond_the_tolerance_only(last: float, sentences: int) -> None:
    measured = {"fan-out": {"last": last, "middle": 1.0}}

    assert len(worse(measured, COMMITTED, tolerance=0.25)) == sentences


def test_worse__ratio_that_was_not_measured__is_told() -> None:
    assert worse({"fan-out": {"last": 1.0}}, COMMITTED) == ["fan-out: 'middle' was not measured."]
    assert len(worse({}, COMMITTED)) == 2


def test_ratios__of_a_run__are_those_of_unit_times(tmp_path: Path) -> None:
    run_of(tmp_path / "latest.json", 1.3)

    found = ratios_of(json.loads((tmp_path / "latest.json").read_text()))

    assert found == {"fan-out": {"last": 1.3, "middle": 0.9}}


def test_command__run_written_and_then_worse__ends_with_status_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    latest = tmp_path / "latest.json"
    monkeypatch.setattr(guard, "OUT", latest)
    monkeypatch.setattr(guard, "COMMITTED", tmp_path / "ratios.json")
    run_of(latest, 1.0)
    nothing_yet = guard.main([])
    written = guard.main(["--write"])
    same = guard.main([])
    run_of(latest, 2.0)

    status = guard.main([])

    assert (nothing_yet, written, same, status) == (1, 0, 0, 1)
    assert "fan-out: 'last' is 2.00; it was 1.00" in capsys.readouterr().out
