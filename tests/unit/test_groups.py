"""The suite's own ground: tests of a group share processes that are costly to start, and may count on their order."""

import os
import subprocess
import sys
from pathlib import Path

_GROUPED = """
import os
import pathlib
import pytest

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(6))
def test_number(number):
    pathlib.Path(f"{number}.ran").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_xdist_group__two_processes__one_of_them_runs_the_whole_group(tmp_path: Path) -> None:
    # pytest 9.2 took the ground away from under pytest-xdist 3.8, and nothing said so.
    (tmp_path / "test_grouped.py").write_text(_GROUPED, encoding="utf-8")

    run = _run(tmp_path, "2", "-p", "tests.support.turns")

    workers = {file.read_text(encoding="utf-8") for file in tmp_path.glob("*.ran")}
    assert len(list(tmp_path.glob("*.ran"))) == 6, run.stdout + run.stderr
    assert len(workers) == 1


_SINGLE = """
import pathlib
import time
import pytest

@pytest.mark.parametrize("number", range(40))
def test_number(number, worker_id):
    with pathlib.Path(f"{worker_id}.order").open("a") as order:
        order.write(f"{number}\\n")
    time.sleep(0.02)
"""


def test_turns__three_processes__the_last_begins_at_the_other_end_and_every_test_runs_once(tmp_path: Path) -> None:
    (tmp_path / "test_single.py").write_text(_SINGLE, encoding="utf-8")

    run = _run(tmp_path, "3", "-p", "tests.support.turns")

    orders = [[int(line) for line in file.read_text("utf-8").splitlines()] for file in tmp_path.glob("*.order")]
    backwards = [order for order in orders if order == sorted(order, reverse=True)]
    assert len(orders) == 3, run.stdout + run.stderr
    assert sorted(number for order in orders for number in order) == list(range(40))
    assert [order[0] for order in backwards] == [39]
    assert all(order == sorted(order) for order in orders if order not in backwards)


def _run(folder: Path, processes: str, *more: str) -> "subprocess.CompletedProcess[str]":
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    plugins = ["-p", "no:schemathesis", "-p", "no:django", *more]
    command = [sys.executable, "-m", "pytest", "-q", "-n", processes, "--dist", "loadgroup", *plugins]
    # What this run's own processes were told is not meant for another run.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["PYTHONPATH"] = str(Path(__file__).parents[2])
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=100)
