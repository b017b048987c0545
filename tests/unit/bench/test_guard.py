"""The guard over the ratios: what it lets through, and when it measures once more beside the committed revision."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench import guard, report
from bench.ratios import Worse, committed_read
from bench.registry import Measurement
from bench.report import Result, write

REVISION = "0123456789ab"
Beside = Callable[..., list[Worse]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Writes the file of a run; the committed ratios have a place of their own."""
    latest = tmp_path / "latest.json"
    monkeypatch.setattr(guard, "OUT", latest)
    monkeypatch.setattr(guard, "COMMITTED", tmp_path / "ratios.json")
    monkeypatch.setattr(report, "commit", lambda: REVISION)

    def written(last: float) -> None:
        rows = (Measurement("last", "times", (last,)), Measurement("middle", "times", (0.9,)))
        # `light` is as it is by default: older sources do not know it.
        write(latest, [Result("fan-out", {"clients": 5, "rounds": 2, "light": 0}, rows, 1.0)])

    return written


def answering(found: Sequence[Worse], asked: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(revision: str, what: Sequence[str], *, only: Sequence[tuple[str, str]]) -> list[Worse]:
        asked.append((revision, list(what)))
        return [each for each in found if (each.scenario, each.name) in only]

    monkeypatch.setattr(guard, "beside", beside)


def test_command__run_written_and_measured_again__ends_well_without_measuring_beside(
    run: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[object] = []
    answering([], asked, monkeypatch)
    run(1.0)
    nothing_yet = guard.main([])
    written = guard.main(["--write"])
    run(1.2)

    assert (nothing_yet, written, guard.main([])) == (1, 0, 0)
    assert committed_read(tmp_path / "ratios.json")["fan-out"].revision == REVISION
    assert asked == []


def test_command__worse_than_committed_and_than_the_revision__ends_with_status_one(
    run: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []
    answering([Worse("fan-out", "last", 1.0, 1.5)], asked, monkeypatch)
    run(1.0)
    guard.main(["--write"])
    run(2.0)

    assert guard.main([]) == 1
    assert asked == [(REVISION, ["fan-out", "clients=5", "rounds=2"])]
    assert "fan-out: 'last' is 2; it was 1." in capsys.readouterr().out


def test_command__worse_than_committed_and_not_than_the_revision__ends_well(
    run: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was within the tolerance is not judged by a few turns.
    answering([Worse("fan-out", "middle", 0.9, 1.0)], [], monkeypatch)
    run(1.0)
    guard.main(["--write"])
    run(2.0)

    assert guard.main([]) == 0


def test_command__revision_that_is_not_there__ends_with_status_one(
    run: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def beside(*_: object, **__: object) -> list[Worse]:
        raise subprocess.CalledProcessError(128, ["git", "worktree"])

    monkeypatch.setattr(guard, "beside", beside)
    run(1.0)
    guard.main(["--write"])
    run(2.0)

    assert guard.main([]) == 1
    assert f"The sources of {REVISION} could not be measured" in capsys.readouterr().err


def test_command__ratio_that_was_not_measured__ends_with_status_one(
    run: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answering([], [], monkeypatch)
    run(1.0)
    guard.main(["--write"])
    write(tmp_path / "latest.json", [])

    assert guard.main([]) == 1


def test_write__sources_that_no_commit_has__is_refused(
    run: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(report, "commit", lambda: REVISION + report.DIRTY)
    run(1.0)

    assert guard.main(["--write"]) == 1
    assert not (tmp_path / "ratios.json").exists()
