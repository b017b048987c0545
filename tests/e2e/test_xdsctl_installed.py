"""xdsctl as the how-to installs it: its wheel alone, away from the checkout, with the variables that the page names."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.stack import ROOT, Parley
from tests.support.xdsctl import DONE, USAGE

pytestmark = pytest.mark.xdist_group("xdsctl")

_BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
# What the environment of the server would have brought along.
_BARE = (
    "import sys\nfor name in ('django', 'controlplane', 'adsserver', 'rest_framework'):\n    sys.modules[name] = None\n"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    made = subprocess.run(
        [sys.executable, "-c", _BUILD, str(folder)], cwd=ROOT / "xdsctl", capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(folder / made.stdout.split()[-1]) as wheel:
        wheel.extractall(folder / "site")
    (folder / "site" / "sitecustomize.py").write_text(_BARE)
    return folder / "site"


def run(installed: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "xdsctl", *arguments],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(installed), **variables},
        cwd=installed.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_doctor__installed_as_the_page_says__needs_no_variable_but_those_it_names(
    installed: Path, xdsctl_server: Parley
) -> None:
    named = {"XDSCTL_SERVER": f"http://127.0.0.1:{xdsctl_server.web_port}", "XDSCTL_TOKEN": xdsctl_server.token}

    said = run(installed, "doctor", **named)
    client = run(installed, "doctor", "--as-client", "--ads", f"127.0.0.1:{xdsctl_server.ads_port}", "--node", "pay-1")
    unsaid = run(installed, "doctor")

    assert (said.returncode, client.returncode, unsaid.returncode) == (DONE, DONE, USAGE), (said, client)
    assert "ok  token" in said.stdout
    assert "Traceback" not in said.stderr + client.stderr + unsaid.stderr


@pytest.mark.parametrize("command", ["doctor", "validate", "bootstrap", "context"])
def test_help__of_what_was_installed__names_its_options(installed: Path, command: str) -> None:
    said = run(installed, command, "--help")

    assert said.returncode == DONE, said
    assert "Traceback" not in said.stderr
