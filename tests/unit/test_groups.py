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
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    plugins = ["-p", "no:schemathesis", "-p", "no:django"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", *plugins]

    # What this run's own processes were told is not meant for another run.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False, timeout=60)

    workers = {file.read_text(encoding="utf-8") for file in tmp_path.glob("*.ran")}
    assert len(list(tmp_path.glob("*.ran"))) == 6, run.stdout + run.stderr
    assert len(workers) == 1
