"""Route cases over HTTP: kept, run, imported, and judged at every write."""

from typing import Any

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent
from tests.api.conftest import Answer, Caller, assert_problem, caller
from tests.services.incidents.fleet import publish
from tests.support.manifests import cluster, listener, route

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
CASES = "environments/default/requests/cases"
ROUTE = "environments/default/resources/route/shop"
PAY = {
    "name": "pays",
    "authority": "shop.example",
    "path": "/pay",
    "expect": {"answer": "routed", "cluster": "pay"},
}
SHARES: list[dict[str, object]] = [{"cluster": "a", "percent": 1}]


@pytest.fixture
def api() -> Caller:
    """A listener whose routes send everything to the cluster `pay`; and another cluster."""
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    publish(listener("edge", "shop", 80), route("shop", "pay"), cluster("pay"), cluster("other"), built=False)
    return caller(*ADMIN_SCOPES)


def kept(api: Caller, **more: object) -> Any:
    answer = api.post(CASES, {**PAY, **more})
    assert answer.status == 201, answer.content
    return answer.json


def test_case__kept_read_and_listed__says_how_it_stands(api: Caller) -> None:
    answer = api.post(CASES, PAY | {"note": "the shop lives of it", "headers": {"X-User": "1"}})

    assert answer.status == 201
    case = answer.json
    assert answer.headers["Location"] == f"/api/v1/{CASES}/{case['id']}"
    assert answer.headers["ETag"] == '"r1"'
    assert case["holds"] is True
    assert case["headers"] == {"x-user": "1"}
    assert case["end"] == {
        "answer": "routed",
        "listener": "edge",
        "route": "shop",
        "virtual_host": "all",
        "route_name": None,
        "weighted": [{"cluster": "pay", "percent": 100.0}],
        "status": None,
        "location": None,
        "text": "goes to cluster 'pay' (virtual host 'all')",
    }
    kept(api, name="elsewhere", expect={"answer": "redirect"})
    assert api.get(f"{CASES}/{case['id']}").json == case
    assert [each["name"] for each in api.get(CASES).json["results"]] == ["elsewhere", "pays"]
    assert [each["name"] for each in api.get(f"{CASES}?state=fails").json["results"]] == ["elsewhere"]
    assert [each["name"] for each in api.get(f"{CASES}?state=holds").json["results"]] == ["pays"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"expect": {}}, "/expect"),
        ({"expect": {"answer": "unknown"}}, "/expect/answer"),
        ({"expect": {"answer": "routed", "status": 404}}, "/expect/status"),
        ({"expect": {"answer": "direct", "cluster": "pay"}}, "/expect/cluster"),
        ({"expect": {"cluster": "pay"}}, "/expect/cluster"),
        ({"expect": {"answer": "routed", "cluster": "a", "weighted": SHARES}}, "/expect/weighted"),
        ({"expect": {"answer": "routed", "weighted": [SHARES[0] | {"percent": "1"}]}}, "/expect/weighted/0/percent"),
        ({"path": "pay"}, "/path"),
        ({"client": {"nodeid": "n"}}, "/client/nodeid"),
        ({"name": ""}, "/name"),
    ],
)
def test_case__that_cannot_be__422_at_its_place(api: Caller, body: dict[str, object], pointer: str) -> None:
    answer = api.post(CASES, PAY | body)

    assert_problem(answer, 422)
    assert pointer in answer.pointers


def test_case__changed_and_deleted__under_the_condition_that_it_was_read(api: Caller) -> None:
    path = f"{CASES}/{kept(api)['id']}"

    changed = api("PATCH", path, {"expect": {"answer": "routed", "cluster": "other"}}, If_Match='"r1"')
    late = api("PATCH", path, {"note": "late"}, If_Match='"r1"')

    assert (changed.status, changed.headers["ETag"], changed.json["holds"]) == (200, '"r2"', False)
    assert changed.json["path"] == "/pay"
    assert_problem(late, 412)
    assert late.headers["ETag"] == '"r2"'
    assert api("PATCH", path, {"expect": {"cluster": "x"}}).status == 422
    assert api("DELETE", path, If_Match='"r1"').status == 412
    assert api("DELETE", path, If_Match='"r2"').status == 204
    assert api.get(path).status == 404


def test_case__of_a_name_that_is_taken__409(api: Caller) -> None:
    kept(api)

    assert_problem(api.post(CASES, PAY), 409)


def test_write__that_breaks_a_case__409_until_it_is_accepted_by_number(api: Caller) -> None:
    case = kept(api)

    refused = api.put(ROUTE, route("shop", "other"))
    accepted = api.put(f"{ROUTE}?accept_cases=1", route("shop", "other"))

    assert_problem(refused, 409)
    assert (refused.json["code"], refused.json["broken"], refused.codes) == ("XDS3090", 1, ["XDS3091"])
    assert "accept_cases=1" in refused.json["detail"]
    assert accepted.status == 202
    assert [each["code"] for each in accepted.json["findings"]] == ["XDS3091"]
    now = api.get(f"{CASES}/{case['id']}").json
    assert (now["holds"], now["since"]) == (False, accepted.json["id"])
    assert AuditEvent.objects.filter(verb="route_cases.broken").count() == 1


@pytest.mark.parametrize("how", ["apply", "delete", "undo", "restore", "publish a change set"])
def test_write__by_whichever_way__is_judged(api: Caller, how: str) -> None:
    changed = api.put(ROUTE, route("shop", "other"))
    back = api.put(ROUTE, route("shop", "pay"))
    assert (changed.status, back.status) == (202, 202)
    kept(api)

    def answer() -> Answer:
        match how:
            case "apply":
                return api.post("environments/default/apply", {"resources": [route("shop", "other")]})
            case "delete":
                return api("DELETE", "environments/default/resources/cluster/pay")
            case "undo":
                return api.post(f"changes/{back.json['id']}/undo", {"reason": "oops"})
            case "restore":
                return api.post(f"{ROUTE}/revisions/2/restore")
            case _:
                made = api.post(
                    "environments/default/change-sets",
                    {"title": "move", "message": "", "resources": [route("shop", "other")]},
                )
                return api.post(f"change-sets/{made.json['id']}/publish", {"reason": ""})

    refused = answer()

    assert_problem(refused, 409)
    assert refused.json["code"] == "XDS3090"


def test_dry_run__that_would_break_a_case__says_so(api: Caller) -> None:
    kept(api)

    dry = api.post("environments/default/apply?dry_run=true", {"resources": [route("shop", "other")]})

    assert [(each["code"], each["severity"]) for each in dry.json["findings"]] == [("XDS3091", "error")]


def test_change_set__that_would_break_a_case__says_so_among_its_findings(api: Caller) -> None:
    kept(api)

    made = api.post(
        "environments/default/change-sets", {"title": "move", "message": "", "resources": [route("shop", "other")]}
    )

    found = api.get(f"change-sets/{made.json['id']}").json["findings"]
    assert "XDS3091" in [each["code"] for each in found]


def test_run__kept_ones_some_of_them_or_others__judges_and_leaves_nothing(api: Caller) -> None:
    first = kept(api)
    kept(api, name="elsewhere", expect={"answer": "redirect"})

    every = api.post(f"{CASES}/run", {}).json
    some = api.post(f"{CASES}/run", {"ids": [first["id"]]}).json
    other = api.post(f"{CASES}/run", {"cases": [PAY | {"name": "not kept"}]}).json

    assert ([each["name"] for each in every["results"]], every["fails"]) == (["elsewhere", "pays"], 1)
    assert ([each["id"] for each in some["results"]], some["fails"]) == ([first["id"]], 0)
    assert [(each["id"], each["holds"]) for each in other["results"]] == [(None, True)]
    assert_problem(api.post(f"{CASES}/run", {"ids": [first["id"] + 1000]}), 422)
    assert_problem(api.post(f"{CASES}/run", {"ids": [1], "cases": []}), 422)
    assert api.get(CASES).json["count"] == 2


def test_apply__of_many__keeps_all_or_none(api: Caller) -> None:
    kept(api)
    body = {"cases": [PAY, PAY | {"name": "second"}]}

    dry = api.post(f"{CASES}/apply?dry_run=true", body).json
    done = api.post(f"{CASES}/apply", body).json

    assert [each["written"] for each in done["results"]] == ["unchanged", "created"]
    assert dry == done | {"dry_run": True}
    assert_problem(api.post(f"{CASES}/apply", {"cases": [PAY, PAY]}), 409)
    assert_problem(api.post(f"{CASES}/apply", {"cases": [PAY, {"name": "third"}]}), 422)
    assert api.get(CASES).json["count"] == 2


def test_import__of_router_check_tests__keeps_what_can_be_and_names_the_rest(api: Caller) -> None:
    tests = """
tests:
- test_name: pays
  input: {authority: shop.example, path: /pay, method: GET}
  validate: {cluster_name: pay, path_rewrite: /p}
- test_name: by chance
  input: {authority: shop.example, path: /pay, method: GET, random_value: 7}
  validate: {cluster_name: pay}
- test_name: no path
  input: {authority: shop.example, path: pay, method: GET}
  validate: {cluster_name: pay}
"""
    answer = api.post(f"{CASES}/import?listener=edge&blocking=false", tests, media="application/yaml")

    assert [(each["name"], each["holds"]) for each in answer.json["results"]] == [("pays", True)]
    found = [(each["code"], each["pointer"], each["line"]) for each in answer.json["findings"]]
    assert found == [("XDS3094", "/tests/0", 3), ("XDS3095", "/tests/1", 6), ("XDS3095", "/tests/2", 9)]
    assert "begin with '/'" in answer.json["findings"][2]["detail"]
    [case] = api.get(CASES).json["results"]
    assert (case["listener"], case["blocking"]) == ("edge", False)
    assert_problem(api.post(f"{CASES}/import", {"tests": []}), 422)


def test_cases__of_another_tenant__are_not_there(api: Caller) -> None:
    case = kept(api)
    stranger = caller(Scope(Role.ADMIN, "prod"))

    assert stranger.get(CASES).status == 404
    assert stranger.get(f"environments/prod/requests/cases/{case['id']}").status == 404
    assert stranger("DELETE", f"environments/prod/requests/cases/{case['id']}").status == 404


def test_cases__by_who_only_looks__are_read_and_run_and_not_written(api: Caller) -> None:
    case = kept(api)
    viewer = caller(Scope(Role.VIEWER, "default"))

    assert viewer.get(CASES).status == 200
    assert viewer.post(f"{CASES}/run", {}).status == 200
    assert viewer.post(CASES, PAY | {"name": "second"}).status == 403
    assert viewer("DELETE", f"{CASES}/{case['id']}").status == 403
    assert viewer.post(f"{CASES}/apply", {"cases": []}).status == 403
