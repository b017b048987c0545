"""`kill -9` of any process between a NACK and the message about it: neither is lost, and nobody is told twice.

The programs that `manage.py up` starts, the embedded Valkey and Celery's beat among them, and the database's server.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.test_nack import UNKNOWN_CHECKER, static
from tests.support.envoy import envoy
from tests.support.postgres import Postgres, postgresql_server
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from tests.support.webhook import Receiver, receiver

pytestmark = [pytest.mark.timeout(300), pytest.mark.nightly]

# What the command line of a process of each kind holds.
KINDS = {"worker": "celery", "ads": "manage.py ads", "web": "uvicorn", "redis": "valkey-server"}
DATABASE = "database"


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def test_process_killed__between_nack_and_notification__one_incident_and_one_message(
    tmp_path: Path, hook: Receiver
) -> None:
    with (
        postgresql_server() as database,
        running_up(tmp_path / "home", {"PARLEY_WEBHOOK_ALLOW": "127.0.0.0/8", "DATABASE_URL": database.url}) as parley,
    ):
        made = parley.call("POST", "/channels", {"name": "ops", "kind": "webhook", "target": hook.url})
        assert made.status == 201, made
        names = {kind: f"killed-{kind}" for kind in (*KINDS, DATABASE)}
        parley.apply_and_publish(*(static(name) for name in names.values()))
        with envoy(tmp_path, ads_port=parley.ads_port, node_id="edge", api_type="GRPC"):
            for kind, name in names.items():
                eventually(lambda name=name: is_proven(parley, name), within_s=60)  # type: ignore[misc]
                # An ADS process that was killed is back by then, and counts from nothing.
                refused = parley.metric("parley_ads_nacks_total")
                parley.apply(static(name, health_checks=[UNKNOWN_CHECKER]))
                eventually(
                    lambda refused=refused: parley.metric("parley_ads_nacks_total") > refused,  # type: ignore[misc]
                    within_s=20,
                    every_s=0.005,
                )
                kill(parley, kind, database)

                incident = eventually(lambda name=name: incident_of(parley, name), within_s=30)  # type: ignore[misc]
                eventually(lambda incident=incident: told_of(hook, incident["id"]), within_s=30)  # type: ignore[misc]
                # What is refused would be refused again by whoever reconnects. Its fix is also how one sees that Envoy,
                # which waits longer the longer nobody answers, is back.
                fixed = eventually(lambda name=name: fix(parley, name), within_s=30)  # type: ignore[misc]
                assert fixed in {200, 202}
                eventually(lambda name=name: is_proven(parley, name), within_s=60)  # type: ignore[misc]
            # Events are told in the order they came: once this one is, everything before it was.
            held = parley.call("PATCH", "/environments/default", {"hold": "all is told"})
            assert held.status == 200, held
            eventually(lambda: kinds_told(hook)["hold.set"], within_s=30)

        incidents = parley.call("GET", "/incidents").body["results"]
        assert sorted(each["name"] for each in incidents) == sorted(names.values())
        for each in incidents:
            assert told_of(hook, each["id"]) == 1, each
        assert kinds_told(hook)["incident.opened"] == len(names)


def is_proven(parley: Parley, name: str) -> bool:
    answer = parley.call("GET", f"/environments/default/resources/cluster/{name}/revisions")
    return answer.status == 200 and bool(answer.body["results"][0]["proven"])


def fix(parley: Parley, name: str) -> int:
    """The status of a new revision that Envoy takes; 0 while the database is away."""
    body = {"resources": [static(name, connect_timeout="2s")], "message": "fixed"}
    status = parley.call("POST", "/environments/default/apply", body).status
    return 0 if status == 503 else status


def incident_of(parley: Parley, name: str) -> dict[str, Any]:
    """Nothing, too, while the answer is that the database is away."""
    answer = parley.call("GET", "/incidents")
    found = answer.body["results"] if answer.status == 200 else []
    return next((each for each in found if each["name"] == name), {})


def kill(parley: Parley, kind: str, database: Postgres) -> None:
    if kind == DATABASE:
        database.kill()
        database.start()
        return
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


def bodies(hook: Receiver) -> list[dict[str, Any]]:
    """What was received so far."""
    return [json.loads(each.body) for each in tuple(hook.received)]


def kinds_told(hook: Receiver) -> Counter[str]:
    return Counter(body["kind"] for body in bodies(hook))


def told_of(hook: Receiver, incident: str) -> int:
    """How many messages said that this incident opened."""
    return sum(body["kind"] == "incident.opened" and incident in body["subject"] for body in bodies(hook))
