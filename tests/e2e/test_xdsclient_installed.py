"""xdsclient as pip installs it: its wheel alone, without Django, server and command line, against a running server."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.manifests import cluster
from tests.support.stack import ROOT, Parley

pytestmark = pytest.mark.xdist_group("xdsctl")

BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
BARE = (
    "import sys\n"
    "for name in ('django', 'controlplane', 'adsserver', 'xdsctl', 'typer', 'httpx', 'prometheus_client'):\n"
    "    sys.modules[name] = None\n"
)
PROGRAM = """
import asyncio, sys
from pathlib import Path
from xdsclient import CLUSTERS, Bootstrap, XdsClient

async def main():
    async with XdsClient(Bootstrap.load(Path("bootstrap.json"))) as client:
        async with client.follow(CLUSTERS, "alone") as news:
            print((await asyncio.wait_for(anext(news), 20)).resource.name)

asyncio.run(main())
"""
BOOTSTRAP = """{"xds_servers": [{"server_uri": "127.0.0.1:PORT", "channel_creds": [{"type": "insecure"}],
 "server_features": ["xds_v3"]}], "node": {"id": "alone"}}"""


def test_xdsclient__installed_alone__is_sent_what_it_asks_for(tmp_path: Path, xdsctl_server: Parley) -> None:
    made = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)], cwd=ROOT / "xdsclient", capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(tmp_path / made.stdout.split()[-1]) as wheel:
        wheel.extractall(tmp_path / "site")
        names = wheel.namelist()
    (tmp_path / "site" / "sitecustomize.py").write_text(BARE)
    (tmp_path / "bootstrap.json").write_text(BOOTSTRAP.replace("PORT", str(xdsctl_server.ads_port)))
    put = xdsctl_server.call("PUT", "/environments/default/resources/cluster/alone", cluster("alone"))

    said = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert put.status == 202, put.body
    assert (said.returncode, said.stdout) == (0, "alone\n"), said.stderr
    assert {name.split("/")[0].split("-")[0] for name in names} == {"xdsclient", "xdscore"}
    assert {"xdsclient/py.typed", "xdscore/py.typed"} <= set(names)
