"""The image, without an engine: the Dockerfile's steps carried out, its commands run as its own user."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(420)  # with an empty cache the whole lock is downloaded
def test_image__built_without_an_engine__runs_its_commands() -> None:
    command = [sys.executable, "-m", "scripts.dockerfile_steps"]

    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)

    assert built.returncode == 0, built.stdout + built.stderr
    omitted = [line for line in built.stdout.splitlines() if "not exercised" in line]
    # Everything that makes files was carried out, but for the image's account.
    assert [line.split()[2] for line in omitted if "describes the image" not in line] == ["RUN"] * len(
        _account(omitted)
    )


def _account(lines: list[str]) -> list[str]:
    return [line for line in lines if "adds a group" in line or "only root can" in line]
