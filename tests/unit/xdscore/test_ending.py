"""Programs of ours end without a traceback: when Ctrl-C comes while they start, and when nobody reads what they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stack import ROOT

# Ctrl-C at the moment in which this module would be loaded.
_INTERRUPT = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
"""
_XDSCTL, _MANAGE = ("-m", "xdsctl"), ("manage.py",)


def run(*command: str, home: Path, site: Path | None = None, stdout: int = subprocess.PIPE) -> tuple[int, str]:
    """The exit status of a Python program of ours, and what it wrote to standard error."""
    path = os.pathsep.join(str(each) for each in (site, ROOT) if each)
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_", "XDSCTL_"))
    }
    ran = subprocess.run(
        [sys.executable, *command],
        env={**clean, "PYTHONPATH": path, "PARLEY_HOME": str(home), "XDSCTL_CONFIG": str(home / "contexts.json")},
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(
    ("command", "loading"),
    [
        ((*_XDSCTL, "get"), "typer"),
        ((*_XDSCTL, "get"), "xdsctl.commands.audit"),
        ((*_XDSCTL, "get", "--server", "http://127.0.0.1:1"), "httpx"),
        ((*_MANAGE, "config"), "controlplane.config.loading"),
        ((*_MANAGE, "config"), "django.core.management"),
        ((*_MANAGE, "config"), "controlplane.settings"),
        ((*_MANAGE, "up"), "controlplane.ops.supervisor.__main__"),
    ],
)
def test_ctrl_c__while_it_starts__130_and_no_traceback(tmp_path: Path, command: tuple[str, ...], loading: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(_INTERRUPT.format(name=loading))

    status, said = run(*command, home=tmp_path / "home", site=tmp_path)

    assert (status, said) == (130, "")


@pytest.mark.parametrize(
    "command",
    [
        (*_XDSCTL, "--help"),
        (*_XDSCTL, "--version"),
        (*_XDSCTL, "context", "list"),
        (*_XDSCTL, "context", "list", "-o", "json"),
        (*_XDSCTL, "context", "list", "-o", "yaml"),
        (*_MANAGE, "config"),
        (*_MANAGE, "config", "--format", "json"),
        (*_MANAGE, "help"),
        (*_MANAGE, "config", "--help"),
        (*_MANAGE, "up", "--help"),
    ],
)
def test_reader__went_away__no_traceback(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "contexts.json").write_text('{"current": "a", "contexts": {"a": {"server": "http://a.example"}}}')
    reading, writing = os.pipe()
    os.close(reading)

    try:
        status, said = run(*command, home=home, stdout=writing)
    finally:
        os.close(writing)

    assert status in {0, 1}
    assert said == ""
