"""The first five minutes of the README, run as they stand there: a call is served, and one is refused."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_ports
from tests.support.stack import ROOT, running_up

pytestmark = [pytest.mark.xdist_group("readme"), pytest.mark.timeout(180)]

_LINES_MAX = 150


def block() -> str:
    """The commands of the section, as somebody would paste them."""
    section = (ROOT / "README.md").read_text().partition("## The first five minutes\n")[2].partition("\n## ")[0]
    return "".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))


def checkout(folder: Path, home: Path) -> Path:
    """A folder that is like a checkout in which `make run` goes on: `make xdsctl` has nothing to do in it."""
    folder.mkdir()
    (folder / "docs").symlink_to(ROOT / "docs")
    (folder / ".parley").symlink_to(home)
    programs = {
        "make": '[ "$*" = xdsctl ]',
        "python": f'exec {sys.executable} "$@"',
        "xdsctl": f'PYTHONPATH={ROOT} exec {sys.executable} -m xdsctl "$@"',
    }
    (folder / ".xdsctl" / "bin").mkdir(parents=True)
    for name, line in programs.items():
        program = folder / ".xdsctl" / "bin" / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    return folder


def test_readme__first_five_minutes__a_call_is_served_and_one_is_refused_with_its_reason(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with running_up(tmp_path / "home") as parley:
        folder = checkout(tmp_path / "checkout", tmp_path / "home")
        commands = (
            block().replace("127.0.0.1:8000", f"127.0.0.1:{parley.web_port}").replace("serve 9000", f"serve {port}")
        )
        example = (ROOT / "docs" / "examples" / "pay.yaml").read_text()
        assert "port_value: 9000" in example
        (folder / "pay.yaml").write_text(example.replace("port_value: 9000", f"port_value: {port}"))
        commands = commands.replace("docs/examples/pay.yaml", "pay.yaml")

        ran = subprocess.run(
            ["bash", "-eu", "-c", f"trap 'kill $(jobs -p) || true' EXIT\n{commands}"],
            cwd=folder,
            env={"PATH": f"{folder / '.xdsctl' / 'bin'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert "<" not in re.sub(r"<<\w+|<stdin>", "", block()), "a placeholder that somebody has to fill in"
    assert "\necho: hello\n" in ran.stdout, said
    assert "status 1: nothing was stored" in ran.stdout
    assert re.search(r"<stdin>:\d+:\d+: error XDS", ran.stderr), said
    assert "PERMISSION_DENIED [XDS2103] This client may not read Listener 'pay': ask the pay team." in ran.stderr, said
    assert "refused, as it should be" in ran.stdout
    assert "#" not in block(), "a comment, which zsh takes for a command or an argument unless it is told otherwise"
    assert re.search(r"^\d+ .*token:admin\.token +first steps$", ran.stdout, re.MULTILINE), said


def test_readme__length__is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= _LINES_MAX
