"""Rollouts over REST: what is told of them, what somebody may do about them, and what a change says of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent
from controlplane.rollouts.selectors import rollout_open
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.rollouts.clients import ENVOY, GO, Fleet, go_on
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "environments/default"
STEPS = {"mode": "steps", "steps": [{"clients": 1, "approve": True}, {"percent": 100}]}
NOT_THERE = "rollouts/00000000-0000-4000-8000-000000000000"
ACTS = ("advance", "pause", "resume", "approve", "reject", "abort")


@pytest.fixture
def fleet(environments: None, tmp_path: Path) -> Fleet:
    """Two Envoys and a gRPC client in Go that have two clusters."""
    found = Fleet(tmp_path)
    api = caller(*ADMIN_SCOPES)
    for node_id, agent in (("envoy-1", ENVOY), ("envoy-2", ENVOY), ("go-1", GO)):
        found.join(node_id, "pay", "shop", agent=agent)
    apply(api, cluster("pay"), cluster("shop"))
    go_on(found)
    return found


def apply(api: Caller, *trees: object, query: str = "") -> dict[str, Any]:
    answer = api.post(f"{HERE}/apply{query}", {"resources": list(trees), "message": "more patience"})
    assert answer.status == 202, answer.content
    made: dict[str, Any] = answer.json
    return made


def begun(api: Caller, fleet: Fleet) -> tuple[str, str]:
    """A rollout that waits for a person at its first step, and the change in it."""
    assert api.patch(HERE, {"rollout": STEPS}).status == 200
    change = apply(api, cluster("pay", connect_timeout="2s"))["id"]
    go_on(fleet)
    found = rollout_open(environment_key="default")
    assert found is not None
    return found.id, change


def test_settings__written_and_read__are_told_in_whole_and_off_again_when_nothing_is_named(
    environments: None,
) -> None:
    api = caller(*ADMIN_SCOPES)
    assert api.get(HERE).json["rollout"]["mode"] == "off"

    written = api.patch(HERE, {"rollout": {**STEPS, "answer_within": "45s"}})
    again = api.patch(HERE, {"rollout": {}})

    rollout = written.json["rollout"]
    assert (rollout["mode"], rollout["answer_within"], rollout["immediate"]) == (
        "steps",
        "45s",
        ["endpoint", "runtime"],
    )
    assert rollout["steps"] == [{"clients": 1, "approve": True}, {"percent": 100}]
    assert again.json["rollout"]["mode"] == "off"


def test_settings__wrong_in_many_ways__every_problem_is_told_with_its_place(environments: None) -> None:
    body = '{"rollout": {\n"mode": "steps",\n"steps": [{"clients": 2, "percent": 5}, {"clients": 1}],\n"later": 1,\n'
    body += '"prefer_group": "nobody"}}'

    answer = caller(*ADMIN_SCOPES).patch(HERE, body)

    assert_problem(answer, 422)
    assert set(answer.pointers) >= {"/rollout/steps/0", "/rollout/later", "/rollout/prefer_group"}
    lines = {each["pointer"]: each["line"] for each in answer.json["errors"]}
    assert (lines["/rollout/steps/0"], lines["/rollout/later"], lines["/rollout/prefer_group"]) == (3, 4, 5)


def test_settings__of_somebody_who_only_operates__403(environments: None) -> None:
    assert_problem(caller(Scope(Role.OPERATOR, "default")).patch(HERE, {"rollout": STEPS}), 403)


def test_rollout__at_its_first_step__tells_who_has_it_and_what_it_waits_for(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)

    rollout, change = begun(api, fleet)

    found = api.get(f"rollouts/{rollout}").json
    assert (found["environment"], found["state"], found["step"]) == ("default", "waiting", 1)
    assert [(each["number"], each["clients"], each["approve"]) for each in found["steps"]] == [
        (1, 1, True),
        (2, 3, False),
    ]
    assert (found["cohort"], found["exposed"], found["acked"], found["refused"]) == (1, 1, 1, 0)
    assert (found["changes"], found["reverted"], found["ended_at"]) == ([change], [], None)
    assert "person" in found["waits_for"]
    [resource] = found["resources"]
    assert (resource["type"], resource["name"], resource["from"], resource["to"]) == ("cluster", "pay", 1, 2)
    assert (resource["outcome"], resource["change"], resource["incident"]) == ("candidate", change, None)
    listed = api.get(f"{HERE}/rollouts?state=waiting,running").json["results"]
    assert [each["id"] for each in listed] == [rollout]
    assert {key: value for key, value in found.items() if key != "kinds"} == listed[0]
    assert sum(each["connected"] for each in found["kinds"]) == 3
    assert api.get(f"{HERE}/rollouts?state=done").json["results"] == []


def test_clients__of_each_side__are_told_with_why_page_by_page(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    rollout, _ = begun(api, fleet)

    candidate = api.get(f"rollouts/{rollout}/clients").json["results"]
    stable = api.get(f"rollouts/{rollout}/clients?side=stable&limit=1").json
    rest = api.get(stable["next"].partition("/api/v1/")[2]).json

    assert [(each["side"], each["state"], each["step"]) for each in candidate] == [("candidate", "taken", 1)]
    assert candidate[0]["because"]
    assert candidate[0]["answers"] == [{"type": "cluster", "name": "pay", "state": "taken", "message": ""}]
    others = [*stable["results"], *rest["results"]]
    assert {each["node_id"] for each in (*candidate, *others)} == {"envoy-1", "envoy-2", "go-1"}
    assert {each["why"] for each in others} == {None}
    assert rest["next"] is None
    assert api.get(f"rollouts/{rollout}/clients?state=refused").json["results"] == []


def test_approve__then_nobody_refuses__the_fleet_has_it_and_the_change_is_published(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    rollout, change = begun(api, fleet)
    assert api.get(f"changes/{change}").json["state"] == "candidate"

    first = api.post(f"rollouts/{rollout}/approve", {"reason": "looks good"})
    second = api.post(f"rollouts/{rollout}/approve", {"reason": "looks good"})
    go_on(fleet)

    assert (first.status, first.json["changed"], second.json["changed"]) == (200, True, False)
    done, told = api.get(f"rollouts/{rollout}").json, api.get(f"changes/{change}").json
    assert (done["state"], done["waits_for"]) == ("done", None)
    assert (told["state"], told["rollout"], told["reverted"]) == ("settled", rollout, [])
    event = AuditEvent.objects.get(verb="rollout.approved")
    assert (event.subject, event.detail["reason"]) == (rollout, "looks good")
    assert_problem(api.post(f"rollouts/{rollout}/pause", {"reason": "too late"}), 409)


def test_change__that_a_rollout_took_back__is_stopped_and_names_what_and_the_incident(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    assert api.patch(HERE, {"rollout": {"mode": "pilot"}}).status == 200
    fleet.members["go-1"].refuses = frozenset({"pay"})

    change = apply(api, cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))["id"]
    go_on(fleet)

    told = api.get(f"changes/{change}?wait=1s&for=settled").json
    [incident] = told["incidents"]
    assert told["state"] == "stopped"
    assert told["reverted"] == [{"type": "cluster", "name": "pay", "incident": incident["id"]}]
    rollout = api.get(f"rollouts/{told['rollout']}").json
    assert (rollout["state"], rollout["reverted"]) == ("done", told["reverted"])
    rows = {each["name"]: each["status"] for each in api.get(f"{HERE}/resources").json["results"]}
    assert rows == {"pay": "quarantined", "shop": "published"}


def test_resource__on_its_way__is_waiting_and_says_what_clients_get(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    begun(api, fleet)
    apply(api, cluster("shop", connect_timeout="3s"))

    rows = {each["name"]: each for each in api.get(f"{HERE}/resources?status=waiting").json["results"]}

    assert rows["pay"]["reason"] == (
        "r2 is on its way: the clients that the open rollout asks have it, the others get r1."
    )
    assert "shop" in rows
    go_on(fleet)
    later = api.get(f"{HERE}/resources/cluster/shop?status=true").json
    assert (later["status"], later["reason"]) == ("waiting", "r2 waits for the next rollout; clients get r1.")
    assert "on the way to all clients by a rollout" in api.get(HERE).json["reason"]


def test_now__with_a_reason_of_an_operator__reaches_everybody_and_stands_in_the_audit_log(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    assert api.patch(HERE, {"rollout": STEPS}).status == 200

    change = apply(api, cluster("pay", connect_timeout="2s"), query="?rollout=now&reason=the+site+is+down")["id"]
    go_on(fleet)

    assert api.get(f"changes/{change}").json["state"] == "settled"
    assert len(set(fleet.has("pay").values())) == 1
    event = AuditEvent.objects.get(verb="rollout.skipped")
    assert (event.subject, event.detail) == (change, {"reason": "the site is down"})


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "apply"), ("PUT", "resources/cluster/pay"), ("DELETE", "resources/cluster/pay")],
)
def test_now__of_an_editor__403_and_without_a_reason_422(environments: None, method: str, path: str) -> None:
    api, editor = caller(*ADMIN_SCOPES), caller(Scope(Role.EDITOR, "default"))
    assert api.put(f"{HERE}/resources/cluster/pay", cluster("pay")).status == 202
    body: object = {"resources": [cluster("pay", connect_timeout="2s")]} if method == "POST" else None
    body = cluster("pay", connect_timeout="2s") if method == "PUT" else body

    refused = editor(method, f"{HERE}/{path}?rollout=now&reason=down", body)
    unsaid = api(method, f"{HERE}/{path}?rollout=now", body)
    alone = api(method, f"{HERE}/{path}?reason=down", body)

    assert_problem(refused, 403, "XDS3003")
    assert_problem(unsaid, 422)
    assert_problem(alone, 422)
    assert api(method, f"{HERE}/{path}?rollout=now&reason=down", body).status == 202


@pytest.mark.parametrize("act", ACTS)
def test_act__by_somebody_who_only_looks__403_and_by_a_stranger_404(fleet: Fleet, act: str) -> None:
    api = caller(*ADMIN_SCOPES)
    rollout, _ = begun(api, fleet)
    path = f"rollouts/{rollout}/{act}"

    looking = caller(Scope(Role.VIEWER, "default")).post(path, {"reason": "r"})
    stranger = caller(Scope(Role.ADMIN, "prod"))
    strange = stranger.post(path, {"reason": "r"})
    absent = stranger.post(f"{NOT_THERE}/{act}", {"reason": "r"})

    assert_problem(looking, 403, "XDS3003")
    assert_problem(strange, 404, "XDS3004")
    assert strange.json["detail"].replace(rollout, NOT_THERE.partition("/")[2]) == absent.json["detail"]
    assert_problem(api.post(path, {}), 422)
    assert_problem(api.post(path, {"reason": ""}), 422)


@pytest.mark.parametrize("rest", ["", "/clients"])
def test_read__by_a_stranger__404_as_if_it_did_not_exist(fleet: Fleet, rest: str) -> None:
    rollout, _ = begun(caller(*ADMIN_SCOPES), fleet)
    stranger = caller(Scope(Role.ADMIN, "prod"))

    assert_problem(stranger.get(f"rollouts/{rollout}{rest}"), 404, "XDS3004")
    assert caller(Scope(Role.VIEWER, "default")).get(f"rollouts/{rollout}{rest}").status == 200


def test_act__pause_resume_advance_and_abort__do_so_once(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    rollout, change = begun(api, fleet)

    def act(name: str) -> tuple[bool, str]:
        answer = api.post(f"rollouts/{rollout}/{name}", {"reason": f"to {name}"})
        assert answer.status == 200, answer.content
        return answer.json["changed"], answer.json["state"]

    assert (act("pause"), act("pause")) == ((True, "paused"), (False, "paused"))
    assert json.dumps(api.get(f"rollouts/{rollout}").json["because"]).count("to pause") == 1
    assert_problem(api.post(f"rollouts/{rollout}/advance", {"reason": "r"}), 409)
    assert (act("resume")[0], act("resume")[0]) == (True, False)
    assert act("abort") == (True, "aborted")
    assert act("abort") == (False, "aborted")
    assert api.get(f"changes/{change}").json["state"] == "stopped"


def test_explain__while_a_rollout_is_open__says_on_which_side_the_client_is_and_why(fleet: Fleet) -> None:
    api = caller(*ADMIN_SCOPES)
    rollout, _ = begun(api, fleet)
    candidate = api.get(f"rollouts/{rollout}/clients").json["results"][0]["node_id"]
    stable = api.get(f"rollouts/{rollout}/clients?side=stable").json["results"][0]["node_id"]

    def rungs(node: str) -> dict[str, str]:
        found = api.get(f"explain?environment=default&client={node}&type=cluster&name=pay").json
        assert found["answer"] == "yes", found
        assert {"title": "rollout", "href": f"/api/v1/rollouts/{rollout}"} in found["links"]
        return {each["title"]: each["text"] for each in found["rungs"]}

    inside, outside = rungs(candidate), rungs(stable)
    assert inside["rollout"].startswith(f"It is on the candidate side of rollout {rollout[:8]}: ")
    assert outside["rollout"].startswith(f"It is on the stable side of rollout {rollout[:8]}: ")
    assert "The stable side has r1 of it, the candidate side has r2." in inside["rollout"]
    assert "revision r2" in inside["exists"]
    assert "revision r1" in outside["exists"]
    assert f"The newer r2 is only on the candidate side of rollout {rollout[:8]}." in outside["exists"]


def test_explain__without_a_rollout__has_the_rungs_of_before(fleet: Fleet) -> None:
    found = caller(*ADMIN_SCOPES).get("explain?environment=default&client=go-1&type=cluster&name=pay").json

    assert [each["number"] for each in found["rungs"]] == list(range(1, 9))


def test_webhook_secret__made_twice__is_another_each_time_and_needs_the_role_admin(environments: None) -> None:
    api = caller(*ADMIN_SCOPES)

    first, second = (api.post(f"{HERE}/rollout-webhook-secret", None) for _ in range(2))
    refused = caller(Scope(Role.OPERATOR, "default")).post(f"{HERE}/rollout-webhook-secret", None)

    assert first.status == second.status == 201
    assert first.json["secret"].startswith("whsec_")
    assert first.json["secret"] != second.json["secret"]
    assert_problem(refused, 403)
    assert AuditEvent.objects.filter(verb="rollout.secret_made").count() == 2
