"""Change sets that hold rules and groups, over REST; and writes of rules and groups where review is asked for."""

from typing import Any

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Change
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from controlplane.journal.models import DomainEvent
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "environments/default"
SETS = f"{HERE}/change-sets"
RULE: dict[str, Any] = {"pattern": "pay*", "effect": "deny", "message": "ask payments"}
GROUP: dict[str, Any] = {"key": "edge", "matchers": [{"node_cluster": "edge"}], "trust": "declared"}


@pytest.fixture
def api(environments: None) -> Caller:
    return caller(*ADMIN_SCOPES)


def made(by: Caller, **what: Any) -> str:
    answer = by.post(SETS, {"title": "closer", **what})
    assert answer.status == 201, answer.json
    return str(answer.json["id"])


def required(api: Caller) -> None:
    assert api.patch(HERE, {"review": {"required": True}}).status == 200


def test_draft__is_told_with_before_and_after_and_as_a_patch_takes_it(api: Caller) -> None:
    number = api.post(f"{HERE}/rules", RULE).json["id"]
    other = api.post(f"{HERE}/rules", {**RULE, "pattern": "old"}).json["id"]
    api.post(f"{HERE}/client-groups", {**GROUP, "key": "old"})
    which = made(
        api,
        rules=[{**RULE, "id": number, "client_groups": ["edge"]}, {**RULE, "pattern": "shop", "position": 0}],
        groups=[GROUP],
        delete_rules=[other],
        delete_groups=["old", "never-there"],
        resources=[cluster("pay")],
    )

    found = api.get(f"change-sets/{which}?manifests=true").json

    assert (found["resource_count"], found["access_count"], found["findings"]) == (1, 6, [])
    assert [(each["type"], each["name"], each["action"]) for each in found["access"]] == [
        ("group", "edge", "created"),
        ("group", "old", "deleted"),
        ("group", "never-there", "deleted"),
        ("rule", str(number), "updated"),
        ("rule", "new-1", "created"),
        ("rule", str(other), "deleted"),
    ]
    changed = found["access"][3]
    assert (changed["before"]["client_groups"], changed["after"]["client_groups"]) == ([], ["edge"])
    same = {key: found[key] for key in ("rules", "groups", "delete_rules", "delete_groups")}
    assert api.patch(f"change-sets/{which}", same).json["version"] == 1
    assert api.patch(f"change-sets/{which}", {"resources": []}).json["access_count"] == 6
    assert api.patch(f"change-sets/{which}", {"rules": []}).json["access_count"] == 0


def test_deny_rule__in_a_set__tells_what_it_takes_from_whom_as_a_dry_run_does(api: Caller) -> None:
    publish(cluster("pay"), cluster("shop"))
    fleet = Fleet(3)
    fleet.accept(held("pay", 1), held("shop", 1))
    digest()
    alone = api.post(f"{HERE}/rules?dry_run=true", RULE).json["loss"]
    which = made(api, rules=[RULE])
    both = made(api, rules=[RULE], delete=[{"type": "cluster", "name": "shop"}])

    assert api.get(f"change-sets/{which}").json["loss"] == alone
    assert (alone["clients"], alone["asks"], [each["name"] for each in alone["names"]]) == (3, True, ["pay"])
    whole = api.get(f"change-sets/{both}").json["loss"]
    assert (whole["clients"], [each["name"] for each in whole["names"]]) == (3, ["pay", "shop"])
    assert_problem(api.post(f"change-sets/{both}/publish", {}), 409, "XDS3013")
    later = {"not_before": "2026-01-01T00:00:00Z"}
    assert_problem(api.post(f"change-sets/{both}/schedule", later), 409, "XDS3013")
    assert api.post(f"change-sets/{both}/publish?accept_loss=3", {}).status == 202


def test_allow_rule_and_deletion__of_what_it_allows__nothing_is_lost_twice(api: Caller) -> None:
    publish(cluster("pay"))
    fleet = Fleet(2)
    fleet.accept(held("pay", 1))
    digest()
    which = made(api, rules=[{**RULE, "effect": "allow"}], delete=[{"type": "cluster", "name": "pay"}])

    assert api.get(f"change-sets/{which}").json["loss"]["clients"] == 2


def test_everything_that_is_wrong__comes_at_once_with_field_line_and_place(api: Caller) -> None:
    body = """title: closer
rules:
  - pattern: "***"
    effect: deny
  - id: 4711
    pattern: a
    effect: deny
groups:
  - key: edge
    matchers: [{node_id: edge}]
    trust: verified
"""
    answer = api.post(SETS, body, media="application/yaml")
    also = api.post(SETS, f"{body}resources: [{{name: x}}]\n", media="application/yaml")

    assert_problem(answer, 422)
    assert [(each["pointer"], each["line"]) for each in answer.json["errors"]] == [
        ("/rules/0/pattern", 3),
        ("/rules/1/id", 5),
        ("/groups/0/matchers/0", 10),
    ]
    pointers = [each["pointer"] for each in also.json["errors"]]
    assert any(pointer.startswith("/resources/0") for pointer in pointers)
    assert "/rules/0/pattern" in pointers
    assert_problem(api.post(SETS, {"title": "x", "rules": [{**RULE, "id": "1"}], "delete_rules": [0]}), 422)


def test_rule_of_another_environment__is_not_there(api: Caller) -> None:
    elsewhere = api.post("environments/prod/rules", RULE).json["id"]

    answer = api.post(SETS, {"title": "x", "rules": [{**RULE, "id": elsewhere}]})
    gone = made(api, delete_rules=[elsewhere])

    assert answer.status == 422
    assert api.post(f"change-sets/{gone}/publish", {}).json["changes"] == []
    assert api.get(f"environments/prod/rules/{elsewhere}").status == 200


def test_what_cannot_be_together__is_a_finding_and_refuses_publishing(api: Caller) -> None:
    api.post(f"{HERE}/rules", {**RULE, "position": 5})
    which = made(api, rules=[{**RULE, "position": 5, "client_groups": ["nobody"]}])

    found = api.get(f"change-sets/{which}").json
    answer = api.post(f"change-sets/{which}/publish", {})

    said = [(each["pointer"], each["resource"]) for each in found["findings"]]
    assert said == [
        ("/client_groups/0", {"type": "rule", "name": "new-1"}),
        ("/position", {"type": "rule", "name": "new-1"}),
    ]
    assert found["loss"] is None
    assert_problem(answer, 422)
    assert answer.json["errors"] == found["findings"]


def test_blocking_case__that_would_break__refuses_the_set(api: Caller) -> None:
    case = {"node_id": "n", "type": "cluster", "name": "pay", "expect": "allow", "blocking": True}
    assert api.post(f"{HERE}/access/cases", case).status == 201
    which = made(api, rules=[RULE])

    assert [each["code"] for each in api.get(f"change-sets/{which}").json["findings"]] == ["XDS3055"]
    assert_problem(api.post(f"change-sets/{which}/publish", {}), 409)
    assert api.get(f"{HERE}/rules").json["count"] == 0


def test_merge_and_comment__name_rules_and_groups(api: Caller) -> None:
    number = api.post(f"{HERE}/rules", RULE).json["id"]
    which = made(api, rules=[{**RULE, "id": number, "message": "no"}])
    api.patch(f"{HERE}/rules/{number}", {"message": "never"})

    found = api.get(f"change-sets/{which}").json
    assert (found["state"], found["moved_count"]) == ("stale", 1)
    assert [(each["type"], each["name"], each["from"], each["to"]) for each in found["moved"]] == [
        ("rule", str(number), 1, 2)
    ]
    said = {"reason": "why?", "type": "rule", "name": str(number)}
    assert api.post(f"change-sets/{which}/comment", said).json["changed"]
    assert_problem(api.post(f"change-sets/{which}/comment", {**said, "name": "999999999"}), 422)
    ours = {"merge": [{"type": "rule", "name": str(number), "take": "ours"}]}
    assert api.patch(f"change-sets/{which}", ours).json["state"] == "draft"
    assert_problem(api.patch(f"change-sets/{which}", {"merge": [{**ours["merge"][0], "name": "999999999"}]}), 422)


def test_role__of_who_writes_rules__is_needed_for_each_part(api: Caller) -> None:
    editor, keeper = caller(Scope(Role.EDITOR, "default")), caller(Scope(Role.ACCESS_EDITOR, "default"))
    other = caller(Scope(Role.ACCESS_EDITOR, "default"))

    assert_problem(editor.post(SETS, {"title": "x", "rules": [RULE]}), 403)
    assert_problem(keeper.post(SETS, {"title": "x", "rules": [RULE], "resources": [cluster("a")]}), 403)
    required(api)
    which = made(keeper, rules=[RULE])
    for by, what, status in ((editor, "submit", 403), (keeper, "submit", 200), (other, "approve", 200)):
        assert by.post(f"change-sets/{which}/{what}", {}).status == status
    assert_problem(editor.post(f"change-sets/{which}/publish", {}), 403)
    assert keeper.post(f"change-sets/{which}/publish", {}).status == 202
    assert Change.objects.latest("pk").kind == "access"


def test_review_required__writes_of_rules_and_groups__409_with_the_way_to_a_change_set(api: Caller) -> None:
    number = api.post(f"{HERE}/rules", RULE).json["id"]
    change = api.post(f"{HERE}/client-groups", GROUP).json["change"]
    required(api)

    for refused in (
        api.post(f"{HERE}/rules", RULE),
        api.put(f"{HERE}/rules/{number}", {**RULE, "message": "no"}),
        api.patch(f"{HERE}/rules/{number}", {"enabled": False}),
        api.delete(f"{HERE}/rules/{number}"),
        api.post(f"{HERE}/client-groups", {**GROUP, "key": "core"}),
        api.patch(f"{HERE}/client-groups/edge", {"matchers": []}),
        api.delete(f"{HERE}/client-groups/edge"),
        api.post(f"changes/{change}/undo", {"reason": "wrong"}),
    ):
        assert_problem(refused, 409, "XDS3031")
        assert "change-sets" in refused.json["detail"]
    dry = api.post(f"{HERE}/rules?dry_run=true", RULE).json
    assert "XDS3031" in [each["code"] for each in dry["findings"]]
    assert api.put(f"{HERE}/rules/{number}", RULE).status == 200, "it is so already"


def test_break_glass__past_the_review_of_rules__is_told_everybody(api: Caller) -> None:
    required(api)
    keeper = caller(Scope(Role.ACCESS_EDITOR, "default"))

    assert_problem(keeper.post(f"{HERE}/rules?break_glass=fire", RULE), 403)
    change = api.post(f"{HERE}/rules?break_glass=fire", RULE).json["change"]
    undone = api.post(f"changes/{change}/undo?break_glass=smoke", {"reason": "it burns"})

    assert api.get(f"changes/{change}").json["message"].endswith("went past the review: fire")
    assert undone.status == 202, undone.json
    told = DomainEvent.objects.filter(kind="review.broken").order_by("pk")
    assert [each.payload["reason"] for each in told] == ["fire", "smoke"]


def test_rollouts__and_rules_in_one__says_that_rules_reach_everybody_at_once(api: Caller) -> None:
    assert api.patch(HERE, {"rollout": {"mode": "pilot"}}).status == 200
    which = made(api, rules=[RULE], resources=[cluster("shop")])

    assert [each["code"] for each in api.get(f"change-sets/{which}").json["findings"]] == ["XDS3057"]
    assert api.post(f"change-sets/{which}/publish", {}).status == 202
