"""`kill -9` of any process between a NACK and the message about it: neither is lost, and nobody is told twice."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.test_nack import UNKNOWN_CHECKER, incident_of, revisions, static
from tests.support.envoy import envoy
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from tests.support.webhook import Receiver, receiver

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

# What the command line of a process of each kind holds.
KINDS = {"worker": "celery", "ads": "manage.py ads", "web": "uvicorn"}


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def test_process_killed__between_nack_and_notification__one_incident_and_one_message(
    tmp_path: Path, hook: Receiver
) -> None:
    with running_up(tmp_path / "home", {"PARLEY_WEBHOOK_ALLOW": "127.0.0.0/8"}) as parley:
        made = parley.call("POST", "/channels", {"name": "ops", "kind": "webhook", "target": hook.url})
        assert made.status == 201, made
        names = {kind: f"killed-{kind}" for kind in KINDS}
        parley.apply_and_publish(*(static(name) for name in names.values()))
        with envoy(tmp_path, ads_port=parley.ads_port, node_id="edge", api_type="GRPC"):
            for kind, name in names.items():
                eventually(lambda name=name: revisions(parley, name)[0]["proven"], within_s=20)  # type: ignore[misc]
                # An ADS process that was killed is back by then, and counts from nothing.
                refused = eventually(
                    lambda: parley.metric("parley_ads_nacks_total"), lambda count: count >= 0, within_s=20
                )

                parley.apply(static(name, health_checks=[UNKNOWN_CHECKER]))
                eventually(
                    lambda refused=refused: parley.metric("parley_ads_nacks_total") > refused,  # type: ignore[misc]
                    within_s=10,
                    every_s=0.005,
                )
                kill(parley, kind)

                incident = eventually(lambda name=name: incident_of(parley, name), within_s=30)  # type: ignore[misc]
                eventually(lambda incident=incident: told_of(hook, incident["id"]), within_s=30)  # type: ignore[misc]
            # Longer than any sweep, reconnect or second try takes.
            time.sleep(12)

        incidents = parley.call("GET", "/incidents").body["results"]
        assert sorted(each["name"] for each in incidents) == sorted(names.values())
        for each in incidents:
            assert told_of(hook, each["id"]) == 1, each


def kill(parley: Parley, kind: str) -> None:
    supervisor = psutil.Process(parley.processes["up"].pid)
    lines = {child: command_line(child) for child in supervisor.children(recursive=True)}
    # Not the guard in front of it, which ends with what it guards.
    found = [child for child, line in lines.items() if KINDS[kind] in line and "supervisor" not in line]
    assert found, kind
    for process in found:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # also one that ended and was not waited for yet
        return ""


def told_of(hook: Receiver, incident: str) -> int:
    """How many messages said that this incident opened."""
    bodies = [json.loads(each.body) for each in tuple(hook.received)]
    return sum(body["kind"] == "incident.opened" and incident in body["subject"] for body in bodies)
