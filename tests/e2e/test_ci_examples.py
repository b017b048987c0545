"""The pipeline examples of deploy/ci, run as they stand against a running Parley and a real Envoy."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.envoy import envoy
from tests.support.manifests import cluster
from tests.support.stack import ROOT, Parley, running_up
from tests.support.waiting import eventually

# A start, a real Envoy and some twenty runs of xdsctl, one after the other.
pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("ci-examples")]

SCRIPT = ROOT / "deploy" / "ci" / "rollout.sh"
WORKFLOW = ROOT / "deploy" / "ci" / "github-workflow.yml"


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("ci") / "home") as running:
        yield running


def rollout(parley: Parley, folder: Path, message: str, **more: str) -> "subprocess.CompletedProcess[str]":
    program = folder.parent / "bin" / "xdsctl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m xdsctl "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    variables = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDSCTL_SERVER": f"http://127.0.0.1:{parley.web_port}",
        "XDSCTL_TOKEN": parley.token,
        "TIMEOUT": "45s",
        **more,
    }
    return subprocess.run(
        [SCRIPT, folder, "team-a", message], env=variables, capture_output=True, text=True, timeout=110, check=False
    )


def test_rollout__good_then_refused_then_unchanged__0_and_1_with_the_way_back(parley: Parley, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    manifest = folder / "pay.yaml"
    manifest.write_text(yaml.safe_dump(cluster("pay")))
    with envoy(tmp_path, ads_port=parley.ads_port, node_id="ci", api_type="GRPC"):
        good = rollout(parley, folder, "first")
        again = rollout(parley, folder, "again")
        # Only Envoy itself finds out that there is no such file.
        broken = cluster("pay", transport_socket=_tls("/no/such/ca.pem"))
        manifest.write_text(yaml.safe_dump(broken))
        refused = rollout(parley, folder, "break it")

    assert good.returncode == 0, good.stderr
    assert "+name: pay" in good.stdout
    assert (again.returncode, again.stdout) == (0, "Nothing to do.\n")
    assert refused.returncode == 1, refused.stderr
    assert "cluster 'pay' is refused by 1 of 1 clients: " in refused.stderr
    assert "/no/such/ca.pem" in refused.stderr
    live = parley.call("GET", "/environments/default/resources/cluster/pay").body
    assert "transport_socket" not in live


def test_rollout__mistake__1_with_the_line_and_nothing_applied(parley: Parley, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "bad.yaml").write_text(yaml.safe_dump({**cluster("bad"), "conect_timeout": "1s"}))

    said = rollout(parley, folder, "mistake")

    assert said.returncode == 1
    assert "bad.yaml:2:1: error XDS" in said.stderr
    assert parley.call("GET", "/environments/default/resources/cluster/bad").status == 404


def test_rollout__takes_what_a_client_has__6_and_nothing_changed_until_it_is_accepted(
    parley: Parley, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "kept.yaml").write_text(yaml.safe_dump(cluster("kept")))
    (folder / "gone.yaml").write_text(yaml.safe_dump(cluster("gone")))
    assert rollout(parley, folder, "both").returncode == 0
    (folder / "gone.yaml").unlink()
    gone = {"delete": [{"type": "cluster", "name": "gone"}]}
    with envoy(tmp_path, ads_port=parley.ads_port, node_id="loser", api_type="GRPC"):
        dry_run = "/environments/default/apply?dry_run=true"
        eventually(lambda: parley.call("POST", dry_run, gone).body["loss"]["clients"], (1).__eq__, within_s=20)

        refused = rollout(parley, folder, "prune")
        after = parley.call("GET", "/environments/default/resources/cluster/gone").status
        accepted = rollout(parley, folder, "prune", ACCEPT_LOSS="1")

    assert (refused.returncode, after) == (6, 200), refused.stderr
    assert "'xdsctl apply' will ask for --accept-loss 1." in refused.stderr
    assert "What: cluster/gone (1)\nWho: loser (envoy " in refused.stderr
    assert accepted.returncode == 0, accepted.stderr
    assert parley.call("GET", "/environments/default/resources/cluster/gone").status == 404


def test_workflow__is_yaml_and_calls_what_is_there() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())

    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert any("rollout.sh" in run for run in runs)
    assert "xdsctl validate --offline -f manifests -o github" in runs
    assert json.dumps(workflow).count("secrets.") == 1


def _tls(path: str) -> dict[str, object]:
    return {
        "name": "tls",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
            "common_tls_context": {"validation_context": {"trusted_ca": {"filename": path}}},
        },
    }
