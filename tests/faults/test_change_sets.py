"""`kill -9` of web, worker and beat while a change set is published, now or at its time: it is published exactly once
(issue "a change is a decision of people").
"""

import urllib.error
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import cluster
from tests.support.postgres import postgresql
from tests.support.stack import ROOT, Answer, Parley, running_apart
from tests.support.valkey import valkey
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(300)]

WORKER_POINTS = ("change_set.read", "change_set.locked", "change_set.written")
WEB_POINTS = ("change_set.locked", "change_set.written")
SETS = "/environments/default/change-sets"


@dataclass(slots=True)
class Team:
    """An installation, and two people in it."""

    parley: Parley
    armed: Path
    author: str
    other: str

    def call(self, who: str, method: str, path: str, body: object = None) -> Answer:
        return self.parley.call(method, path, body, headers={"Authorization": f"Bearer {who}"})

    def approved(self, name: str) -> str:
        """A set with a resource, a group, and a rule for it."""
        group = {"key": name, "matchers": [{"node_cluster": name}], "trust": "declared"}
        rule = {"pattern": name, "effect": "deny", "client_groups": [name]}
        body = {"title": name, "resources": [cluster(name)], "rules": [rule], "groups": [group]}
        made = self.call(self.author, "POST", SETS, body)
        assert made.status == 201, made
        which = str(made.body["id"])
        assert self.act(self.author, which, "submit").status == 200
        assert self.act(self.other, which, "approve").body["state"] == "approved"
        return which

    def act(self, who: str, which: str, what: str, **more: object) -> Answer:
        return self.call(who, "POST", f"/change-sets/{which}/{what}", {"reason": "because", **more})

    def due(self, name: str) -> str:
        which = self.approved(name)
        past = datetime.now(UTC) - timedelta(seconds=1)
        answer = self.act(self.author, which, "schedule", not_before=past.isoformat())
        assert answer.status == 200, answer
        return which

    def state(self, which: str) -> dict[str, Any]:
        return dict(self.call(self.author, "GET", f"/change-sets/{which}").body)

    def revisions(self, name: str) -> int:
        answer = self.call(self.author, "GET", f"/environments/default/resources/cluster/{name}/revisions")
        return len(answer.body["results"]) if answer.status == 200 else 0

    def access_edits(self, name: str) -> list[str]:
        """The changes that wrote the rule and the group of a set, which is one where it was published once."""
        edits = self.call(self.author, "GET", "/environments/default/access/history").body["results"]
        return [
            str(each["change"]) for each in edits if name in (each["after"].get("key"), each["after"].get("pattern"))
        ]

    def dies_at(self, point: str) -> None:
        self.armed.with_name("died").unlink(missing_ok=True)
        self.armed.write_text(point, encoding="utf-8")

    def await_death(self) -> str:
        """Wait until a process has died, and start it again; returns its name."""
        victim = int(eventually(lambda: self.armed.with_name("died").read_text(encoding="ascii"), within_s=20))
        name = next(name for name, process in self.parley.processes.items() if process.pid == victim)
        assert self.parley.processes[name].wait(10) == -9
        self.parley.start(name)
        if name == "web":
            self.parley.ready(name)
        return name


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def team(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("change_sets")
    with ExitStack() as exits:
        extra = {"REDIS_URL": exits.enter_context(valkey()).url}
        if request.param == "postgresql":
            extra["DATABASE_URL"] = exits.enter_context(postgresql())
        mortal = {
            "PYTHONPATH": f"{ROOT / 'tests/support/mortal'}:{ROOT}",
            "DIE_AT": str(folder / "armed"),
            "DIED": str(folder / "died"),
        }
        of = dict.fromkeys(("web", "worker0", "worker1"), mortal)
        parley = exits.enter_context(running_apart(folder / "home", extra, ads=0, workers=2, beat=True, of=of))
        review = {"review": {"required": True}}
        assert parley.call("PATCH", "/environments/default", review).status == 200
        people = [
            parley.call(
                "POST",
                "/tokens",
                {
                    "name": name,
                    "scopes": [{"role": "editor", "environment": None}, {"role": "access-editor", "environment": None}],
                },
            )
            for name in ("author", "other")
        ]
        yield Team(parley, folder / "armed", *(each.body["token"] for each in people))


@pytest.mark.parametrize("point", WORKER_POINTS)
def test_worker_killed__at_its_time__another_one_publishes_it_once(team: Team, point: str) -> None:
    name = f"due-{point.partition('.')[2]}"
    team.dies_at(point)
    which = team.due(name)

    assert team.await_death().startswith("worker")
    found = eventually(lambda: team.state(which), lambda seen: seen["state"] == "published", within_s=30)

    assert (len(found["changes"]), team.revisions(name)) == (1, 1)
    assert team.access_edits(name) == found["changes"] * 2


@pytest.mark.parametrize("point", WEB_POINTS)
def test_web_killed__while_it_publishes__nothing_is_there_and_the_same_request_does_it(team: Team, point: str) -> None:
    name = f"now-{point.partition('.')[2]}"
    which = team.approved(name)
    team.dies_at(point)

    with suppress(urllib.error.URLError, HTTPException, ConnectionError):
        assert team.act(team.author, which, "publish").status != 202
    assert team.await_death() == "web"

    assert (team.state(which)["state"], team.revisions(name), team.access_edits(name)) == ("approved", 0, [])
    assert team.act(team.author, which, "publish").status == 202
    assert team.act(team.author, which, "publish").status == 200
    assert team.revisions(name) == 1
    assert team.access_edits(name) == team.state(which)["changes"] * 2


def test_beat_killed__schedules_are_kept_all_the_same(team: Team) -> None:
    team.parley.stop("beat", 9)

    which = team.due("without-beat")

    eventually(lambda: team.state(which), lambda seen: seen["state"] == "published", within_s=30)
    assert team.revisions("without-beat") == 1
    team.parley.start("beat")
