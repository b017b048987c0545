"""Client groups, access rules and cases over REST."""

from collections.abc import Callable

import pytest

from controlplane.catalog.models import Change
from controlplane.clients.clock import database_now
from controlplane.clients.identity import client_id
from controlplane.clients.models import Client
from tests.api.conftest import Caller, assert_problem

GROUPS = "environments/prod/client-groups"
RULES = "environments/prod/rules"
TEST = "environments/prod/access/test"
CASES = "environments/prod/access/cases"
EDGE = {"key": "edge", "matchers": [{"node_cluster": "edge"}], "trust": "declared"}
DENY_PAY = {"pattern": "pay*", "effect": "deny", "client_groups": ["edge"], "message": "ask payments"}
ALLOW = {"pattern": "*", "effect": "allow"}


def case(name: str, expect: str, **client: object) -> dict[str, object]:
    return {"type": "cluster", "name": name, "expect": expect, **(client or {"node_id": "n"})}


def test_group__made_read_changed_and_deleted__each_write_is_a_change(api: Caller) -> None:
    made = api.post(GROUPS, EDGE)
    read = api.get(f"{GROUPS}/edge")
    changed = api.patch(f"{GROUPS}/{made.json['id']}", {"matchers": [{"node_id": "e-*"}]})
    gone = api.delete(f"{GROUPS}/edge")

    assert (made.status, changed.status, gone.status) == (201, 200, 200)
    assert read.json == {"id": made.json["id"], **EDGE}
    assert changed.json["matchers"] == [{"node_id": "e-*"}]
    kinds = {str(change.public_id): change.kind for change in Change.objects.all()}
    assert [kinds[answer.json["change"]] for answer in (made, changed, gone)] == ["access"] * 3
    assert_problem(api.get(f"{GROUPS}/edge"), 404)
    assert api.get(GROUPS).json["count"] == 0


def test_rule__made_listed_moved_and_deleted(api: Caller) -> None:
    api.post(GROUPS, EDGE)
    allow = api.post(RULES, ALLOW)
    deny = api.post(RULES, {**DENY_PAY, "position": 5})

    assert (allow.status, deny.status) == (201, 201)
    assert allow.json["position"] == 10
    assert [row["id"] for row in api.get(RULES).json["results"]] == [deny.json["id"], allow.json["id"]]
    moved = api.patch(f"{RULES}/{deny.json['id']}", {"position": 20})
    assert (moved.status, moved.json["pattern"]) == (200, "pay*")
    assert [row["id"] for row in api.get(RULES).json["results"]] == [allow.json["id"], deny.json["id"]]
    assert api.delete(f"{RULES}/{deny.json['id']}").json["pattern"] == "pay*"
    assert api.get(f"{RULES}/{allow.json['id']}").json["types"] == []
    assert_problem(api.get(f"{RULES}/{deny.json['id']}"), 404)


def test_rule__replaced__what_is_absent_gets_its_default(api: Caller) -> None:
    api.post(GROUPS, EDGE)
    made = api.post(RULES, DENY_PAY)

    replaced = api.put(f"{RULES}/{made.json['id']}", ALLOW)

    assert (replaced.json["client_groups"], replaced.json["message"]) == ([], "")
    assert replaced.json["position"] == made.json["position"]


def test_rule__written_as_it_is__makes_no_change(api: Caller) -> None:
    made = api.post(RULES, ALLOW)

    again = api.patch(f"{RULES}/{made.json['id']}", {"effect": "allow"})

    assert (again.status, again.json["change"]) == (200, None)


def test_change__of_a_rule__can_be_followed(api: Caller) -> None:
    made = api.post(RULES, ALLOW)

    change = api.get(f"changes/{made.json['change']}").json

    assert (change["kind"], change["state"], change["environment"]) == ("access", "saved", "prod")


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        (RULES, {**ALLOW, "pattern": "a*b*c*"}, "/pattern"),
        (RULES, {**ALLOW, "effect": "permit"}, "/effect"),
        (RULES, {**ALLOW, "types": ["cluster", "service"]}, "/types/1"),
        (RULES, {**ALLOW, "client_groups": ["nobody"]}, "/client_groups/0"),
        (RULES, {**ALLOW, "position": 0}, "/position"),
        (RULES, {**ALLOW, "message": "x" * 201}, "/message"),
        (RULES, {**ALLOW, "regex": ".*"}, "/regex"),
        (GROUPS, {**EDGE, "key": "17"}, "/key"),
        (GROUPS, {**EDGE, "trust": "proven"}, "/trust"),
        (GROUPS, {**EDGE, "trust": "verified"}, "/matchers/0"),
        (GROUPS, {**EDGE, "matchers": [{}]}, "/matchers/0"),
        (TEST, {"cases": [case("", "allow")]}, "/cases/0/name"),
        (TEST, {"cases": [case("a", "maybe")]}, "/cases/0/expect"),
        (CASES, {**case("a", "allow"), "blocking": "yes"}, "/blocking"),
    ],
)
def test_write__cannot_be_used__is_refused_with_the_place(
    api: Caller, stored: Callable[[], object], path: str, body: object, pointer: str
) -> None:
    before = stored()

    refused = api.post(path, body)

    assert_problem(refused, 422)
    assert refused.pointers == [pointer]
    assert stored() == before


def test_rule__position_taken__is_409(api: Caller) -> None:
    api.post(RULES, {**ALLOW, "position": 7})

    assert_problem(api.post(RULES, {**ALLOW, "position": 7}), 409)


def test_access_test__rules_and_default__say_effect_and_rule(api: Caller) -> None:
    api.post(GROUPS, EDGE)
    rule = api.post(RULES, DENY_PAY).json["id"]
    hide = api.post(RULES, {"pattern": "*.internal", "effect": "hide"}).json["id"]

    answer = api.post(
        TEST,
        {
            "cases": [
                case("pay", "deny", node_id="n", node_cluster="edge"),
                case("x.internal", "allow"),
                case("web", "deny"),
            ]
        },
    )

    assert answer.json["results"] == [
        {"ok": True, "effect": "deny", "rule": rule, "message": "ask payments"},
        {"ok": False, "effect": "hide", "rule": hide, "message": ""},
        {"ok": True, "effect": "deny", "rule": None, "message": ""},  # `prod` denies by default
    ]


def test_saved_case__blocking__refuses_the_change_that_breaks_it(api: Caller, stored: Callable[[], object]) -> None:
    saved = api.post(CASES, {**case("web", "deny"), "blocking": True})
    before = stored()

    refused = api.post(RULES, ALLOW)

    assert_problem(refused, 409, "XDS3055")
    assert stored() == before
    assert api.get(CASES).json["results"] == [saved.json]
    assert api.delete(f"{CASES}/{saved.json['id']}").status == 204
    assert api.post(RULES, ALLOW).status == 201


def test_saved_case__blocking__refuses_another_default_effect_too(api: Caller) -> None:
    api.post(CASES, {**case("web", "deny"), "blocking": True})

    assert_problem(api.patch("environments/prod", {"default_effect": "allow"}), 409, "XDS3055")


def test_rule__shadowed__the_answer_and_the_review_say_by_which(api: Caller) -> None:
    first = api.post(RULES, {"pattern": "pay*", "effect": "deny"}).json["id"]

    second = api.post(RULES, {"pattern": "pay-*-eu", "effect": "allow", "types": ["cluster"]})

    assert [finding["code"] for finding in second.json["findings"]] == ["XDS3053"]
    assert f"rule {first} before it" in second.json["findings"][0]["detail"]
    review = api.get("environments/prod/access/review").json["findings"]
    assert [finding["code"] for finding in review] == ["XDS3053"]


def test_review__rule_for_a_group_without_clients__is_found_until_there_is_one(api: Caller) -> None:
    api.post(GROUPS, EDGE)
    api.post(RULES, DENY_PAY)
    alone = api.get("environments/prod/access/review").json["findings"]

    Client.objects.create(
        id=client_id(environment="prod", identity="", node_id="n"),
        environment=Change.objects.latest("pk").environment,
        node_id="n",
        node_cluster="edge",
        family="envoy",
        first_seen=database_now(),
        last_seen=database_now(),
    )

    assert [finding["code"] for finding in alone] == ["XDS3054"]
    assert api.get("environments/prod/access/review").json["findings"] == []


def test_history__edits_of_one_rule__newest_first_with_before_and_after(api: Caller) -> None:
    rule = api.post(RULES, ALLOW).json["id"]
    api.patch(f"{RULES}/{rule}", {"effect": "hide"})

    history = api.get(f"environments/prod/access/history?subject=rule&id={rule}").json["results"]

    assert [(edit["action"], edit["id"]) for edit in history] == [("updated", rule), ("created", rule)]
    assert (history[0]["before"]["effect"], history[0]["after"]["effect"]) == ("allow", "hide")
    assert history[1]["before"] is None


@pytest.mark.parametrize(
    ("role", "status"), [("viewer", 403), ("editor", 403), ("operator", 403), ("access-editor", 201)]
)
def test_rules__written_by__needs_an_access_editor(
    as_role: Callable[[str, str | None], Caller], role: str, status: int
) -> None:
    caller = as_role(role, "prod")

    assert caller.post(RULES, ALLOW).status == status
    assert caller.get(RULES).status == 200
    assert caller.post(TEST, {"cases": [case("a", "deny")]}).status == 200


def test_rules__of_another_environment__are_not_found(
    as_role: Callable[[str, str | None], Caller], api: Caller
) -> None:
    rule = api.post(RULES, ALLOW).json["id"]
    stranger = as_role("access-editor", "default")

    assert_problem(stranger.get(f"{RULES}/{rule}"), 404)
    assert_problem(stranger.get(f"environments/default/rules/{rule}"), 404)
    assert_problem(stranger.delete(f"environments/default/rules/{rule}"), 404)
