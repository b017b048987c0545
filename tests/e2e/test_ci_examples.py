"""The pipeline examples of deploy/ci, run as they stand against a running Parley and a real Envoy."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.envoy import envoy
from tests.support.manifests import cluster
from tests.support.stack import ROOT, Parley, running_up
from tests.support.waiting import eventually

# A start, a real Envoy and some twenty runs of xdsctl, one after the other.
pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("ci-examples")]

SCRIPT = ROOT / "deploy" / "ci" / "rollout.sh"
PROPOSE = ROOT / "deploy" / "ci" / "propose.sh"
WORKFLOW = ROOT / "deploy" / "ci" / "github-workflow.yml"
REVIEW_WORKFLOW = ROOT / "deploy" / "ci" / "github-workflow-review.yml"
ACTION = ROOT / "deploy" / "ci" / "github-action" / "action.yml"
COMPONENT = ROOT / "deploy" / "ci" / "gitlab-component.yml"
TITLE = "main of team-a"


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("ci") / "home") as running:
        yield running


def rollout(parley: Parley, folder: Path, message: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return running(parley, folder, [SCRIPT, folder, "team-a", message], **more)


def propose(parley: Parley, folder: Path, *deletions: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return running(parley, folder, [PROPOSE, folder, TITLE, *deletions], **more)


def running(parley: Parley, folder: Path, command: list[str | Path], **more: str) -> "subprocess.CompletedProcess[str]":
    program = folder.parent / "bin" / "xdsctl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m xdsctl "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    # What installs packages is a runner's own; what it was asked for is looked at.
    for installer in ("pipx", "python"):
        asked = program.with_name(installer)
        asked.write_text(f'#!/bin/sh\necho "{installer} $*" >> "$0.asked"\n')
        asked.chmod(asked.stat().st_mode | stat.S_IXUSR)
    variables = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDSCTL_SERVER": f"http://127.0.0.1:{parley.web_port}",
        "XDSCTL_TOKEN": parley.token,
        "TIMEOUT": "45s",
        **more,
    }
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=110, check=False)


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


@pytest.fixture
def reviewed(parley: Parley) -> Iterator[Parley]:
    """The same Parley, which asks for review while the test runs; who proposed may approve."""
    here = "/environments/default"
    assert parley.call("PATCH", here, {"review": {"required": True, "self_approval": True}}).status == 200
    yield parley
    assert parley.call("PATCH", here, {"review": {"required": False}}).status == 200


def newest(parley: Parley) -> dict[str, object]:
    return dict(parley.call("GET", "/environments/default/change-sets").body["results"][0])


def approve(parley: Parley) -> None:
    assert parley.call("POST", f"/change-sets/{newest(parley)['id']}/approve", {"reason": "fine"}).status == 200


def test_propose__run_again_and_again__proposes_waits_publishes_and_has_nothing_to_do(
    reviewed: Parley, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    manifest = folder / "till.yaml"
    manifest.write_text(yaml.safe_dump(cluster("till")))

    proposed = propose(reviewed, folder)
    waits = propose(reviewed, folder)
    one = newest(reviewed)["id"]
    approve(reviewed)
    manifest.write_text(yaml.safe_dump(cluster("till", connect_timeout="2s")))
    edited = propose(reviewed, folder)
    state = newest(reviewed)["state"]
    approve(reviewed)
    published = propose(reviewed, folder)
    idle = propose(reviewed, folder)

    assert proposed.returncode == 0, proposed.stderr
    assert "+name: till" in proposed.stdout
    assert proposed.stdout.endswith("Proposed: others have to approve it.\n")
    assert waits.stdout.endswith(f"Change set {one} waits for others to approve it.\n")
    assert (edited.returncode, state) == (0, "review"), edited.stderr
    assert published.returncode == 0, published.stderr
    assert published.stdout.splitlines()[-1].startswith("change ")
    assert (newest(reviewed)["id"], newest(reviewed)["state"]) == (one, "published")
    assert (idle.returncode, idle.stdout) == (0, "Nothing to do.\n")
    assert reviewed.call("GET", "/environments/default/resources/cluster/till").body["connect_timeout"] == "2s"


def test_propose__with_rules_and_groups__publishes_them_once_and_has_nothing_to_do_then(
    reviewed: Parley, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "safe.yaml").write_text(yaml.safe_dump(cluster("safe")))
    rules, groups = tmp_path / "rules.yaml", tmp_path / "groups.yaml"
    rules.write_text(yaml.safe_dump([{"effect": "deny", "pattern": "safe", "client_groups": ["vault"]}]))
    groups.write_text(yaml.safe_dump({"key": "vault", "matchers": [{"node_cluster": "v"}], "trust": "declared"}))
    access = {"ACCESS_RULES": str(rules), "CLIENT_GROUPS": str(groups)}

    proposed = propose(reviewed, folder, **access)
    waits = propose(reviewed, folder, **access)
    approve(reviewed)
    published = propose(reviewed, folder, **access)
    idle = propose(reviewed, folder, **access)

    assert proposed.returncode == 0, proposed.stderr
    assert "+pattern: safe" in proposed.stdout
    assert "waits for others" in waits.stdout
    assert published.returncode == 0, published.stderr
    assert (idle.returncode, idle.stdout.splitlines()[-1]) == (0, "Nothing to do."), idle.stdout + idle.stderr
    found = reviewed.call("GET", "/environments/default/rules").body["results"]
    assert [(each["pattern"], each["client_groups"]) for each in found] == [("safe", ["vault"])]


def test_propose__deletions_and_what_stands_in_the_way__ends_with_its_status(reviewed: Parley, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "desk.yaml").write_text(yaml.safe_dump(cluster("desk")))

    absent = propose(reviewed, folder, "cluster/nobody")
    with_deletion = newest(reviewed)["resource_count"]
    without = propose(reviewed, folder)
    fewer = newest(reviewed)["resource_count"]
    rejecting = f"/change-sets/{newest(reviewed)['id']}/reject"
    assert reviewed.call("POST", rejecting, {"reason": "in seconds"}).status == 200
    rejected = propose(reviewed, folder)
    past_it = "/environments/default/resources/cluster/desk?break_glass=fire"
    assert reviewed.call("PUT", past_it, cluster("desk", connect_timeout="7s")).status == 202
    (folder / "desk.yaml").write_text(yaml.safe_dump(cluster("desk")) + "alt_stat_name: d\n")
    overtaken = propose(reviewed, folder)
    ours = {"merge": [{"type": "cluster", "name": "desk", "take": "ours"}]}
    assert reviewed.call("PATCH", f"/change-sets/{newest(reviewed)['id']}", ours).status == 200
    again = propose(reviewed, folder)
    assert reviewed.call("PUT", past_it, cluster("desk", connect_timeout="8s")).status == 202
    stale = propose(reviewed, folder)
    away = propose(reviewed, folder, XDSCTL_SERVER="http://127.0.0.1:1")
    (folder / "desk.yaml").write_text("conect_timeout: 1s\n")
    mistake = propose(reviewed, folder)

    assert (absent.returncode, with_deletion) == (0, 2), absent.stderr
    assert (without.returncode, fewer) == (0, 1), without.stderr
    assert rejected.returncode == 1
    assert "in seconds" in rejected.stderr
    assert overtaken.returncode == 4
    assert "moved       cluster/desk: none -> r1" in overtaken.stderr
    assert again.returncode == 0, again.stderr
    assert stale.returncode == 4
    assert "moved       cluster/desk: r1 -> r2" in stale.stderr
    assert away.returncode == 3
    assert mistake.returncode == 1
    assert reviewed.call("DELETE", f"/change-sets/{newest(reviewed)['id']}").status == 204


def test_propose__clients_refuse_what_was_approved__1_and_it_is_taken_back(reviewed: Parley, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "card.yaml").write_text(yaml.safe_dump(cluster("card", transport_socket=_tls("/no/such/ca.pem"))))
    card = "/environments/default/resources/cluster/card"
    assert reviewed.call("PUT", f"{card}?break_glass=fire", cluster("card")).status == 202
    with envoy(tmp_path, ads_port=reviewed.ads_port, node_id="ci-review", api_type="GRPC"):
        assert propose(reviewed, folder).returncode == 0
        approve(reviewed)
        refused = propose(reviewed, folder)

    assert refused.returncode == 1, refused.stderr
    assert "cluster 'card' is refused by 1 of 1 clients: " in refused.stderr
    assert "The fleet refuses it; taking it back." in refused.stderr
    assert "transport_socket" not in reviewed.call("GET", card).body


def test_workflow__of_review__is_yaml_and_calls_what_is_there() -> None:
    workflow = yaml.safe_load(REVIEW_WORKFLOW.read_text())

    [job] = workflow["jobs"].values()
    assert any(step.get("run", "").startswith(f"./{PROPOSE.name} manifests ") for step in job["steps"])
    assert "${{" not in "".join(step.get("run", "") for step in job["steps"])
    assert json.dumps(workflow).count("secrets.") == 1


def test_workflow__is_yaml_and_calls_what_is_there() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())

    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert any("rollout.sh" in run for run in runs)
    assert "xdsctl validate --offline -f manifests -o github" in runs
    assert json.dumps(workflow).count("secrets.") == 1


def test_action__of_github__rolls_out_what_it_was_given(parley: Parley, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "acted.yaml").write_text(yaml.safe_dump(cluster("acted")))
    message = "first; $(exit 9) `exit 9` ${{ x }}"
    inputs = {
        "server": f"http://127.0.0.1:{parley.web_port}",
        "token": parley.token,
        "environment": "default",
        "folder": str(folder),
        "owner": "team-act",
        "message": message,
    }

    [install, roll] = action_steps(inputs)
    installed = running(parley, folder, ["sh", "-e", "-c", install.pop("run")], **install)
    rolled = running(parley, folder, ["sh", "-e", "-c", roll.pop("run")], **roll)

    assert installed.returncode == 0, installed.stderr
    [asked] = (tmp_path / "bin" / "pipx.asked").read_text().splitlines()
    assert Path(asked.removeprefix("pipx install ")).resolve() == ROOT / "xdsctl"
    assert rolled.returncode == 0, rolled.stderr
    [revision] = parley.call("GET", "/environments/default/resources/cluster/acted/revisions").body["results"]
    assert revision["message"] == message


def action_steps(inputs: dict[str, str]) -> Iterator[dict[str, str]]:
    """Each step's variables, and its script as `run`, as a runner gives them to the shell."""
    action = yaml.safe_load(ACTION.read_text())
    values = {name: str(each.get("default", "")) for name, each in action["inputs"].items()} | inputs
    missing = [name for name, each in action["inputs"].items() if each.get("required") and name not in inputs]
    assert missing == []
    for step in action["runs"]["steps"]:
        variables = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], text)
            for name, text in step["env"].items()
        }
        yield {**variables, "GITHUB_ACTION_PATH": str(ACTION.parent), "run": step["run"]}


def test_component__of_gitlab__checks_and_rolls_out(parley: Parley, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "ci").mkdir(parents=True)
    shutil.copy(SCRIPT, repository / "ci")
    (repository / "manifests").mkdir()
    manifest = repository / "manifests" / "joined.yaml"
    manifest.write_text(yaml.safe_dump(cluster("joined")))
    message = "second; $(exit 9)"
    given = {"server": f"http://127.0.0.1:{parley.web_port}", "package": "xdsctl.whl", "environment": "default"}
    jobs = component_jobs(given)

    def run(job: str) -> "subprocess.CompletedProcess[str]":
        variables = {**jobs[job]["variables"], "CI_PROJECT_PATH": "group/shop", "CI_COMMIT_MESSAGE": message}
        script = "\n".join((f"cd {repository}", *jobs[job]["before_script"], *jobs[job]["script"]))
        return running(parley, repository / "manifests", ["sh", "-e", "-c", script], **variables)

    checked, rolled = run("xds-check"), run("xds-rollout")
    manifest.write_text("conect_timeout: 1s\n")
    mistaken = run("xds-check")

    assert checked.returncode == 0, checked.stderr
    assert rolled.returncode == 0, rolled.stderr
    assert mistaken.returncode == 1
    installed = (repository / "bin" / "python.asked").read_text().splitlines()
    assert set(installed) == {"python -m pip install --quiet xdsctl.whl"}
    [revision] = parley.call("GET", "/environments/default/resources/cluster/joined/revisions").body["results"]
    assert revision["message"] == message
    # The default branch alone has the token, and one rollout runs at a time.
    assert jobs["xds-rollout"]["rules"] == [{"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}]
    assert jobs["xds-rollout"]["resource_group"]


def component_jobs(inputs: dict[str, str]) -> dict[str, Any]:
    """The jobs of the component by name, with these inputs, and with what each of them extends."""
    header, text = COMPONENT.read_text().split("\n---\n")
    known = yaml.safe_load(header)["spec"]["inputs"]
    values = {name: each.get("default") for name, each in known.items()} | inputs
    assert None not in values.values(), values
    jobs = yaml.safe_load(re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: values[found[1]], text))
    return {name: {**jobs.get(job.get("extends"), {}), **job} for name, job in jobs.items()}


def _tls(path: str) -> dict[str, object]:
    return {
        "name": "tls",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
            "common_tls_context": {"validation_context": {"trusted_ca": {"filename": path}}},
        },
    }
