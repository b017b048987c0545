"""The transcripts of docs/tour.md, run as they stand there: what they show is what comes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stack import ROOT, Parley

pytestmark = [pytest.mark.xdist_group("xdsctl"), pytest.mark.timeout(180)]

PAGE = ROOT / "docs" / "tour.md"


def steps() -> list[tuple[str, str]]:
    """Each command of the page with what it shows below it."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    found = [step.partition("\n") for block in blocks for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, shown) for command, _, shown in found]


def is_as_shown(shown: str, came: str) -> bool:
    """Whether this came. In what is shown `…` stands for anything in a line, alone in one for any lines, and spaces for
    as many as a table needs.
    """

    def pattern(line: str) -> str:
        parts = (re.sub(r"(\\ )+", " +", re.escape(part)) for part in line.split("…"))
        return "(.*\n)*" if line == "…\n" else ".*".join(parts)

    return re.fullmatch("".join(map(pattern, shown.splitlines(keepends=True))), came) is not None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that is like a checkout with xdsctl on the path."""
    for name in ("docs", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    program = tmp_path / "bin" / "xdsctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m xdsctl "$@"\n')
    program.chmod(0o755)
    return tmp_path


def test_tour__each_command__shows_what_the_page_shows(checkout: Path, xdsctl_server: Parley) -> None:
    made = xdsctl_server.call("POST", "/environments", {"key": "tour", "default_effect": "allow"})
    assert made.status == 201, made
    variables = {
        "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}",
        "HOME": str(checkout),
        "PYTHONUNBUFFERED": "1",  # as at a terminal, data and what is said of it come in their order
        "XDSCTL_SERVER": f"http://127.0.0.1:{xdsctl_server.web_port}",
        "XDSCTL_TOKEN": xdsctl_server.token,
        "XDSCTL_ENVIRONMENT": "tour",
    }
    faults = []
    for command, shown in steps():
        ran = subprocess.run(
            ["bash", "-c", f"{command}\n"],
            cwd=checkout,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        if not is_as_shown(shown, ran.stdout):
            faults.append(f"$ {command}\n{ran.stdout}")

    assert not faults, "\n".join(faults)
