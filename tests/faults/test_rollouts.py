"""A rollout in steps through 200 clients, a real Envoy and a real gRPC client among them, of which one kind refuses one
resource of the change; and the same while every process is killed at every step (rollouts.md "Evidence", issue 2.5, 3).

Whether a client ever had what is refused is asked of the clients, never of Parley.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.faults.test_killed_before_telling import DATABASE, KINDS, kill
from tests.support.backends import grpc_backend
from tests.support.canaries import Canaries, Canary, Kind, canaries
from tests.support.ears import ears
from tests.support.envoy import envoy
from tests.support.figures import measured
from tests.support.grpc_client import grpc_client, simple_bootstrap
from tests.support.manifests import Tree, api_listener, cluster, endpoints, route
from tests.support.postgres import Postgres, postgresql_server
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900), pytest.mark.xdist_group("rollouts")]

HERE = "/environments/default"
BAD = "refused"
GO = Kind("gRPC Go", "1.66.0", 50, refuses=BAD)
KINDS_OF_CLIENTS = (Kind("envoy", "1.40.0", 150), GO)
CLIENTS = 200
REAL = 2
STEPS = [
    {"percent": 1, "groups": ["canaries"], "bake": "3s"},
    {"percent": 10, "bake": "3s"},
    {"percent": 50, "bake": "3s"},
    {"percent": 100, "bake": "3s"},
]
# Back within so long of the verdict (rollouts.md R7).
BACK_S = 2.0


@dataclass
class Watched:
    """What was seen of a rollout while it was open: who had it, by node id, and which steps began."""

    cohort: set[str] = field(default_factory=set)
    steps: list[int] = field(default_factory=list)
    states: list[str] = field(default_factory=list)


def named(name: str, word: str) -> Tree:
    """A cluster in which a word stands."""
    return cluster(name, load_assignment={"cluster_name": name}, alt_stat_name=word)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[Postgres | None]:
    if request.param == "sqlite":
        yield None
        return
    with postgresql_server() as server:
        yield server


@pytest.mark.parametrize("kills", [False, True], ids=["undisturbed", "killed"])
def test_steps__one_kind_refuses__only_those_asked_ever_had_it_and_the_rest_goes_on(
    tmp_path: Path, database: Postgres | None, kills: bool
) -> None:
    where = {"DATABASE_URL": database.url} if database is not None else {}
    with running_up(tmp_path / "home", where) as parley, grpc_backend("parley") as backend, ExitStack() as stack:
        served = (cluster("shop", eds=True), endpoints("shop", backend), route("shop", "shop"))
        parley.apply_and_publish(*served, api_listener("shop", "shop"), named("pay", "first"), named("ledger", "first"))
        fleet = stack.enter_context(canaries(parley.ads_port, *KINDS_OF_CLIENTS))
        real = stack.enter_context(ears(parley.ads_port, REAL))
        for_envoy, for_grpc = real
        stack.enter_context(envoy(tmp_path, ads_port=for_envoy.port, node_id="real-envoy", api_type="DELTA_GRPC"))
        client = stack.enter_context(
            grpc_client(simple_bootstrap(ads_port=for_grpc.port, node_id="real-grpc", features=()))
        )
        assert client.call("xds:///shop").code == "OK"
        group = {"key": "canaries", "matchers": [{"node_id": "real-*"}], "trust": "declared"}
        assert parley.call("POST", f"{HERE}/client-groups", group).status == 201
        eventually(lambda: have(fleet, pay="first", ledger="first"), lambda count: count == CLIENTS, within_s=60)
        eventually(lambda: parley.metric("parley_ads_streams"), lambda count: count >= CLIENTS + REAL, within_s=30)
        switched = parley.call("PATCH", HERE, {"rollout": {"mode": "steps", "steps": STEPS}})
        assert switched.status == 200, switched

        started = time.monotonic()
        made = parley.apply(
            named("pay", BAD), named("ledger", "second"), cluster("shop", eds=True, alt_stat_name="second")
        )
        killed = [*KINDS, *([DATABASE] if database is not None else [])] if kills else []
        watched = watch(parley, made, killed, database)
        took_s = time.monotonic() - started

        told = eventually(
            lambda: parley.call("GET", f"/changes/{made}").body, lambda b: b.get("state") == "stopped", within_s=30
        )
        eventually(lambda: have(fleet, pay="first", ledger="second"), lambda count: count == CLIENTS, within_s=60)
        report = fleet.report()
        right_end(parley, made, told)
        had = {each.node_id for each in report if each.heard("pay", BAD)}
        had_real = {name for name, ear in zip(("real-envoy", "real-grpc"), real, strict=True) if ear.heard(BAD)}
        assert had | had_real <= watched.cohort
        back_s = max(later_s(parley, report), 0.0)
        # The last step has all clients: what was taken back before it reached a few.
        measured(
            asked=len(watched.cohort),
            had_it=len(had | had_real),
            back_s=back_s,
            took_s=took_s,
            steps=len(watched.steps),
        )
        assert len(had) < CLIENTS / 2
        assert watched.steps == [1, 2, 3, 4]
        assert all(not each.heard("pay", BAD) or each.back_at("pay", BAD) for each in report)
        if not kills:
            assert back_s <= BACK_S
        assert for_envoy.heard("second")
        assert for_grpc.heard("second")


def have(fleet: Canaries, **words: str) -> int:
    """How many clients are connected and have each of these clusters with its word in it."""
    return sum(
        each.connected and all(word.encode() in each.has.get(name, b"") for name, word in words.items())
        for each in fleet.report()
    )


def watch(parley: Parley, change: str, kills: Sequence[str], database: Postgres | None) -> Watched:
    """Watch the rollout of a change until it is over; at each step, kill these one after the other."""
    found = Watched()
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        body = asked(parley, f"{HERE}/rollouts")
        [rollout] = body["results"] if body and body["results"] else [None]
        if rollout is None:
            time.sleep(0.05)
            continue
        if rollout["state"] not in found.states:
            found.states.append(rollout["state"])
        if rollout["ended_at"] is not None:
            return found
        if not any(each["outcome"] == "reverted" for each in rollout["resources"]):
            found.cohort |= cohort_of(parley, rollout["id"])
        if rollout["step"] not in found.steps:
            found.steps.append(rollout["step"])
            for kind in kills:
                killed(parley, kind, database)
        time.sleep(0.05)
    raise AssertionError(f"the rollout did not end: {asked(parley, f'{HERE}/rollouts')}")


def killed(parley: Parley, kind: str, database: Postgres | None) -> None:
    def try_it() -> bool:
        try:
            kill(parley, kind, database)  # type: ignore[arg-type]
        except AssertionError:
            return False  # one that was killed before is not back yet
        return True

    eventually(try_it, within_s=30)


def asked(parley: Parley, path: str) -> dict[str, Any]:
    """The body of an answer; empty while there is nobody to answer."""
    try:
        answer = parley.call("GET", path)
    except OSError:
        return {}
    return dict(answer.body) if answer.status == 200 else {}


def cohort_of(parley: Parley, rollout: str) -> set[str]:
    """The node ids of all clients that the rollout has asked."""
    found: set[str] = set()
    page = asked(parley, f"/rollouts/{rollout}/clients?limit=1000")
    found |= {each["node_id"] for each in page.get("results", ())}
    return found


def right_end(parley: Parley, made: str, told: dict[str, Any]) -> None:
    """Fail the test unless the change ended as it had to: `pay` went back, with its incident, and the rest went on."""
    [incident] = told["incidents"]
    assert told["reverted"] == [{"type": "cluster", "name": "pay", "incident": incident["id"]}]
    assert (incident["type"], incident["name"], incident["change"]) == ("cluster", "pay", made)
    detail = parley.call("GET", f"/incidents/{incident['id']}").body
    assert detail["author"] == "token:admin.token"
    [same] = parley.call("GET", "/incidents").body["results"]
    assert same["id"] == incident["id"]
    rollout = parley.call("GET", f"/rollouts/{told['rollout']}").body
    assert rollout["state"] == "done"
    outcomes = {each["name"]: each["outcome"] for each in rollout["resources"]}
    assert outcomes == {"pay": "reverted", "ledger": "promoted", "shop": "promoted"}
    rows = {
        each["name"]: each["status"] for each in parley.call("GET", f"{HERE}/resources?type=cluster").body["results"]
    }
    assert rows == {"pay": "quarantined", "ledger": "published", "shop": "published"}


def later_s(parley: Parley, report: Sequence[Canary]) -> float:
    """How long after the verdict the last client that had it was sent what the stable side has."""
    [back] = parley.call("GET", "/audit?verb=rollout.took_back").body["results"]
    verdict = datetime.fromisoformat(back["at"]).timestamp()
    return max(each.back_at("pay", BAD) or float("inf") for each in report if each.heard("pay", BAD)) - verdict
