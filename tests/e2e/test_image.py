"""The image: built by an engine where there is one, and by carrying out its steps; its commands run as its user.

Both are tried where both can be: an engine makes users and owners, too, and needs the base image from a registry.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from scripts.dockerfile_steps import COMMANDS, ROOT
from tests.support import bubblewrap

BASE = "python:3.11-slim-bookworm"
NAME = "parley-of-the-tests"


@bubblewrap.needed_by_images
@pytest.mark.slow
@pytest.mark.timeout(420)  # with an empty cache the whole lock is downloaded
def test_image__built_without_an_engine__runs_its_commands() -> None:
    command = [sys.executable, "-m", "scripts.dockerfile_steps"]

    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)

    assert built.returncode == 0, built.stdout + built.stderr
    omitted = {line.rpartition("not exercised: ")[2] for line in built.stdout.splitlines() if "not exercised" in line}
    # Everything that makes files was carried out; accounts and owners are an engine's.
    assert omitted == {
        "adds a group to the base image",
        "describes the image to its engine",
        "gives a directory to another user, which only an engine can",
    }


@pytest.fixture
def volume() -> Iterator[str]:
    """A volume of an engine that has the base image, or can get it."""
    if shutil.which("docker") is None or docker("pull", "--quiet", BASE).returncode:
        pytest.skip(f"no container engine answers that can get {BASE}, so no image was built by one")
    yield NAME
    docker("volume", "rm", NAME)
    docker("image", "rm", NAME)


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_image__built_by_an_engine__runs_its_commands(volume: str) -> None:
    built = docker("build", "--tag", NAME, ".")

    assert built.returncode == 0, built.stdout
    run = ("run", "--rm", "--network", "none", "--volume", f"{volume}:/var/lib/parley")
    for command in COMMANDS:
        ended = docker(*run, NAME, *command.split())
        assert ended.returncode == 0, ended.stdout
    written = docker(*run, "--entrypoint", "find", NAME, "/srv/parley", "/opt/venv", "-writable", "!", "-type", "l")
    assert (written.returncode, written.stdout) == (0, "")


def docker(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["docker", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
    )
