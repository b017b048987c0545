"""Rehearsals over REST: what is answered, who may, what is refused, and that nothing is left (interfaces.md 8)."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import close_old_connections
from django.utils import timezone

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Change, Rehearsal, Revision
from controlplane.catalog.rehearsals import rehearsal_is_open
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent, KeptAnswer
from controlplane.rollouts.services import rehearsal_begin
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.rollouts.clients import DANA, ENVOY, GO, Fleet, deliver, go_on
from tests.support.manifests import cluster, listener, parsed, route

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "environments/default"
PATH = f"{HERE}/rehearsals"
BAD: dict[str, Any] = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "bad", "no_field": 1}


@pytest.fixture
def fleet(environments: None, tmp_path: Path) -> Fleet:
    """An Envoy and a gRPC client that may rehearse, and one that may not; all have `pay`."""
    api = caller(*ADMIN_SCOPES)
    group = {"key": "stage", "matchers": [{"node_id": "stage-*"}], "trust": "declared"}
    assert api.post(f"{HERE}/client-groups", group).status == 201
    assert api.patch(HERE, {"rollout": {"rehearsal_group": "stage"}}).status == 200
    found = Fleet(tmp_path)
    found.join("stage-envoy", agent=ENVOY)
    found.join("stage-go", "pay", "new", agent=GO)
    found.join("public", agent=ENVOY)
    assert api.post(f"{HERE}/apply", {"resources": [cluster("pay")]}).status == 202
    go_on(found)
    return found


@contextmanager
def served(fleet: Fleet) -> Iterator[None]:
    """Builders, ADS and clients go on while a request waits."""
    over = threading.Event()

    def serve() -> None:
        try:
            while not over.is_set():
                deliver(fleet)
                time.sleep(0.02)
        finally:
            close_old_connections()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def body(*trees: object, clients: object = None, **more: object) -> dict[str, object]:
    return {"resources": list(trees), "clients": clients or {"each_kind": 1}, **more}


def test_rehearsal__one_refuses__answers_per_client_and_resource_and_leaves_nothing(fleet: Fleet) -> None:
    fleet.members["stage-go"].refuses = frozenset({"new"})
    changes, revisions = Change.objects.count(), Revision.objects.count()
    had = fleet.has("pay")

    with served(fleet):
        answer = caller(Scope(Role.REHEARSER, "default")).post(
            PATH, body(cluster("pay", connect_timeout="2s"), cluster("new"))
        )

    assert answer.status == 200, answer.content
    assert answer.json["verdict"] == "refused"
    told = {(each["node_id"], each["name"]): (each["state"], each["kind"]) for each in answer.json["results"]}
    assert told == {
        ("stage-envoy", "pay"): ("taken", "envoy 1.40"),
        ("stage-envoy", "new"): ("taken", "envoy 1.40"),
        ("stage-go", "pay"): ("taken", "grpc-go 1.66"),
        ("stage-go", "new"): ("refused", "grpc-go 1.66"),
    }
    [refused] = [each for each in answer.json["results"] if each["state"] == "refused"]
    assert "INVALID" in refused["message"]
    assert (refused["type"], refused["client"]) == ("cluster", fleet.members["stage-go"].client)
    deliver(fleet)
    assert fleet.has("pay") == had
    assert (Change.objects.count(), Revision.objects.count()) == (changes, revisions)
    assert not rehearsal_is_open(environment_key="default")
    assert AuditEvent.objects.filter(verb="rehearsal.made").count() == 1


def test_rehearsal__that_would_break_a_blocking_route_case__is_refused_whatever_clients_say(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    routed = [listener("edge", "shop", 80), route("shop", "pay"), cluster("other")]
    assert api.post(f"{HERE}/apply", {"resources": routed}).status == 202
    case = {
        "name": "pays",
        "authority": "shop.example",
        "path": "/pay",
        "expect": {"cluster": "pay", "answer": "routed"},
    }
    assert api.post(f"{HERE}/requests/cases", case).status == 201

    with served(fleet):
        trees = [route("shop", "other"), cluster("pay", connect_timeout="2s")]
        broken = caller(Scope(Role.REHEARSER, "default")).post(PATH, body(*trees, clients=["stage-go"]))
        kept = api.post(PATH, body(cluster("pay", connect_timeout="2s"), clients=["stage-go"]))

    assert (broken.status, broken.json["verdict"], kept.json["verdict"]) == (200, "refused", "taken")
    assert ("stage-go", "pay", "taken") in [
        (each["node_id"], each["name"], each["state"]) for each in broken.json["results"]
    ]
    assert [(each["code"], each["severity"]) for each in broken.json["findings"]] == [("XDS3091", "error")]
    assert "'pays'" in broken.json["findings"][0]["detail"]
    assert kept.json["findings"] == []


def test_rehearsal__nobody_answers__is_inconclusive_when_the_time_is_over(fleet: Fleet) -> None:
    begun = time.monotonic()

    answer = caller(*ADMIN_SCOPES).post(PATH, body(cluster("new"), clients=["stage-go"], within="1s"))

    assert answer.status == 200
    assert answer.json["verdict"] == "inconclusive"
    assert [each["state"] for each in answer.json["results"]] == ["silent"]
    assert time.monotonic() - begun >= 1
    assert not rehearsal_is_open(environment_key="default")


def test_rehearsal__sent_again_under_its_key__is_answered_alike_and_not_made_again(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    asked = body(cluster("new"), clients=["stage-go"], within="1s")

    first = api.post(PATH, asked, Idempotency_Key="once")
    again = api.post(PATH, asked, Idempotency_Key="once")

    assert (again.status, again.json) == (first.status, first.json)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert Rehearsal.objects.count() == 1


def test_rehearsal__whose_answer_was_lost__is_made_again_under_its_key(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = caller(*ADMIN_SCOPES)
    asked = body(cluster("new"), clients=["stage-go"], within="1s")
    with monkeypatch.context() as dying:
        dying.setattr("controlplane.api.replay.answer_keep", lambda **_: None)
        api.post(PATH, asked, Idempotency_Key="once")
    KeptAnswer.objects.update(at=timezone.now() - timedelta(minutes=3))

    again = api.post(PATH, asked, Idempotency_Key="once")

    assert (again.status, again.json["verdict"]) == (200, "inconclusive")
    assert Rehearsal.objects.count() == 2


def test_rehearsal__while_another_is_open__409_with_when_to_come_again(fleet: Fleet) -> None:
    rehearsal_begin(
        environment_key="default",
        edits=[Put(parsed(cluster("new")))],
        clients=["stage-go"],
        within_s=10,
        actor=DANA,
    )

    answer = caller(*ADMIN_SCOPES).post(PATH, body(cluster("new")))

    assert_problem(answer, 409, "XDS3009")
    assert 1 <= int(answer.headers["Retry-After"]) <= 12


@pytest.mark.parametrize("role", list(Role))
def test_rehearsal__role__rehearser_operator_or_admin(fleet: Fleet, role: Role) -> None:
    answer = caller(Scope(role, "default")).post(PATH, body(cluster("new"), clients=["nobody"]))

    allowed = role in {Role.REHEARSER, Role.OPERATOR, Role.ADMIN}
    assert_problem(answer, 422 if allowed else 403)


def test_rehearser__may_read_and_rehearse_and_nothing_else(fleet: Fleet) -> None:
    rehearser = caller(Scope(Role.REHEARSER, "default"))

    assert rehearser.get(HERE).status == 200
    assert_problem(rehearser.put(f"{HERE}/resources/cluster/pay", cluster("pay")), 403)
    assert_problem(rehearser.patch(HERE, {"hold": "x"}), 403)


def test_rehearsal__somebody_of_another_environment__learns_nothing(fleet: Fleet) -> None:
    """Neither that the environment is there, nor which clients other environments have."""
    stranger = caller(Scope(Role.ADMIN, "prod"))

    refused = stranger.post(PATH, body(cluster("new")))
    absent = stranger.post("environments/never/rehearsals", body(cluster("new")))
    assert_problem(refused, 404)
    assert refused.json["detail"] == absent.json["detail"].replace("never", "default")

    group = {"key": "stage", "matchers": [{"node_id": "*"}], "trust": "declared"}
    assert stranger.post("environments/prod/client-groups", group).status == 201
    assert stranger.patch("environments/prod", {"rollout": {"rehearsal_group": "stage"}}).status == 200
    client = fleet.members["stage-go"].client
    named = stranger.post("environments/prod/rehearsals", body(cluster("new"), clients=["stage-go", client, "none"]))
    assert_problem(named, 422)
    assert named.pointers == ["/clients/0", "/clients/1", "/clients/2"]
    details = [each["detail"] for each in named.json["errors"]]
    assert [each.replace("stage-go", "none").replace(client, "none") for each in details] == [details[2]] * 3


@pytest.mark.parametrize(
    ("wrong", "pointers"),
    [
        ({"clients": []}, ["/clients"]),
        ({"clients": {"each_kind": 0}}, ["/clients"]),
        ({"clients": {"each_kind": True}}, ["/clients"]),
        ({"clients": {"each_kind": 1, "of": 2}}, ["/clients"]),
        ({"clients": ["n"] * 51}, ["/clients"]),
        ({"clients": [1]}, ["/clients"]),
        ({"within": "61s"}, ["/within"]),
        ({"within": "soon"}, ["/within"]),
        ({"later": 1}, ["/later"]),
        ({"clients": ["public", "nobody"]}, ["/clients/0", "/clients/1"]),
        ({"delete": [{"type": "kluster", "name": "pay"}]}, ["/delete/0/type"]),
        ({"resources": [BAD]}, ["/resources/0/no_field"]),
    ],
    ids=str,
)
def test_rehearsal__body_that_is_wrong__422_with_every_place_and_nobody_is_sent_anything(
    fleet: Fleet, wrong: dict[str, object], pointers: list[str]
) -> None:
    answer = caller(*ADMIN_SCOPES).post(PATH, {**body(cluster("new")), **wrong})

    assert_problem(answer, 422)
    assert answer.pointers == pointers
    assert Rehearsal.objects.count() == 0


def test_rehearsal__too_much__413(fleet: Fleet) -> None:
    trees = [cluster(f"name-{number}") for number in range(201)]

    assert_problem(caller(*ADMIN_SCOPES).post(PATH, body(*trees)), 413)


def test_explain__while_something_is_rehearsed__says_who_gets_it(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    edits = [Put(parsed(cluster("pay", connect_timeout="2s")))]
    begun = rehearsal_begin(environment_key="default", edits=edits, clients=["stage-go"], within_s=10, actor=DANA)
    deliver(fleet)

    def rung(node: str) -> str:
        found = api.get(f"explain?environment=default&client={node}&type=cluster&name=pay").json
        assert found["answer"] == "yes", found
        return {each["title"]: str(each["text"]) for each in found["rungs"]}["rollout"]

    assert rung("stage-go").startswith(f"It is one of the clients of rehearsal {begun.id[:8]}: ")
    assert rung("public").startswith(f"The open rehearsal {begun.id[:8]} changes nothing for it: ")


def test_rehearsal__view_is_one_of_the_api(api: Caller) -> None:
    """The wrapper keeps what the schema reads."""
    assert "/api/v1/environments/{environment_key}/rehearsals" in api.get("schema/").content.decode()
