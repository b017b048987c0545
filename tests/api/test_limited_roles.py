"""Roles limited by owner, type and name over REST: what is open to them, that they write nothing else, and that nothing
that they may not see makes a difference to anything that they are told.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from controlplane.accounts.models import ApiToken, RoleGrant
from controlplane.accounts.principal import SYSTEM, Role, Scope
from controlplane.catalog.selectors import resource_list
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Delete, Edit, Put
from controlplane.common.limits import Limit
from tests.api.conftest import Caller, assert_problem, caller, signed_in
from tests.support.manifests import cluster, endpoints, parsed, route
from xdscore.resource_types import by_word

PAY = Limit(types=("cluster", "route"), names=("pay*",))
CLUSTERS = "environments/prod/resources/cluster"
SEEING_ALL = Scope(Role.VIEWER, "prod")


def limited(*limits: Limit, role: Role = Role.EDITOR, environment: str | None = "prod") -> Caller:
    return caller(*(Scope(role, environment, (limit,)) for limit in limits or (PAY,)))


def stored(*names: str, owner: str = "", word: str = "cluster") -> str:
    manifests = [cluster(name) if word == "cluster" else endpoints(name, 80, address="10.1.1.1") for name in names]
    edits = [Put(parsed(each)) for each in manifests]
    return change_apply(environment_key="prod", edits=edits, actor=SYSTEM, terms=Terms(owner or None)).change_id


def names(answer: Any) -> list[str]:
    return [each["name"] for each in answer.json["results"]]


@pytest.mark.parametrize("role", [each for each in Role if each not in (Role.VIEWER, Role.EDITOR)])
def test_token__limit_of_a_role_about_whole_environments__422_that_says_which_can(api: Caller, role: Role) -> None:
    scope = {"role": role.value, "environment": "prod", "owner": "pay"}

    answer = api.post("tokens", {"name": "t", "scopes": [scope]})

    assert_problem(answer, 422)
    assert "editor and viewer" in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize(
    "part", [{"names": []}, {"types": []}, {"owner": ""}, {"names": ["*"]}, {"names": ["a*b*"]}, {"types": ["x"]}]
)
def test_token__limit_that_could_be_a_mistake__422(api: Caller, part: dict[str, object]) -> None:
    answer = api.post("tokens", {"name": "t", "scopes": [{"role": "editor", "environment": "prod", **part}]})

    assert_problem(answer, 422)


def test_token__with_limits__works_within_them_and_says_so(api: Caller) -> None:
    scope = {"role": "editor", "environment": "prod", "owner": "pay", "types": ["cluster"], "names": ["pay*"]}

    made = api.post("tokens", {"name": "pay's pipeline", "scopes": [scope]})

    assert made.status == 201
    assert made.json["scopes"] == [scope]
    pipeline = Caller(made.json["token"])
    limit = {"owner": "pay", "types": ["cluster"], "names": ["pay*"]}
    assert pipeline.get("whoami").json["scopes"] == [{"role": "editor", "environment": "prod", "limits": [limit]}]
    assert pipeline.post("environments/prod/apply?owner=pay", [cluster("pay-1")]).status == 202
    assert_problem(pipeline.post("environments/prod/apply", [cluster("pay-2")]), 403)
    assert_problem(pipeline.post("environments/prod/apply?owner=shop", [cluster("pay-1")]), 403)


def test_personal_token__and_person_with_limits__both_hold(api: Caller) -> None:
    person = User.objects.create_user("pia")
    RoleGrant.objects.create(user=person, role="admin", environment="prod")
    text = signed_in(person).post(
        "tokens", {"name": "t", "scopes": [{"role": "editor", "environment": "prod", "names": ["pay*"]}]}
    )
    RoleGrant.objects.filter(user=person).delete()
    RoleGrant.objects.create(user=person, role="editor", environment="prod", within=Limit(owner="pay").text)
    stored("pay-1", "shop", owner="pay")
    stored("pay-2")

    mine = Caller(text.json["token"])

    assert names(mine.get("environments/prod/resources")) == ["pay-1"]
    assert names(signed_in(person).get("environments/prod/resources")) == ["pay-1", "shop"]
    (right, *_) = mine.get("whoami").json["scopes"]
    assert right["limits"] == [{"names": ["pay*"]}, {"owner": "pay"}]


def test_list__limits_alone__has_and_counts_no_others(environments: None) -> None:
    stored("pay-1", "pay-2", "shop")
    stored("pay-1", word="endpoint")
    asker = limited()

    listed = asker.get("environments/prod/resources?limit=1")

    assert (names(listed), listed.json["count"]) == (["pay-1"], 2)
    assert names(asker.get("environments/prod/resources?name=sho")) == []
    assert names(asker.get("environments/prod/resources?status=waiting")) == ["pay-1", "pay-2"]
    exported = asker.get("environments/prod/resources?manifests=true", Accept="application/yaml")
    assert b"shop" not in exported.content
    assert_problem(asker.get(f"{CLUSTERS}/shop"), 404)
    assert_problem(asker.get(f"{CLUSTERS}/shop?status=true"), 404)
    assert_problem(asker.get(f"{CLUSTERS}/shop/revisions"), 404)
    assert_problem(asker.get("environments/prod/resources/endpoint/pay-1"), 404)


def test_write__outside_the_limit__403_that_says_what_is_missing_and_where(environments: None) -> None:
    stored("shop")
    asker = limited()

    answers = [
        asker.put(f"{CLUSTERS}/shop", cluster("shop")),
        asker.delete(f"{CLUSTERS}/shop"),
        asker.post(f"{CLUSTERS}/shop/revisions/1/restore"),
        asker.post("environments/prod/apply", [cluster("pay"), cluster("shop")]),
        asker.post("environments/prod/apply?dry_run=true", [cluster("pay"), cluster("shop")]),
    ]

    for answer in answers:
        assert_problem(answer, 403, "XDS3003")
        assert "the role editor in environment 'prod'" in answer.json["detail"]
        assert "cluster, route 'pay*' only" in answer.json["detail"]
        assert [each["resource"]["name"] for each in answer.json["errors"]] == ["shop"]
    assert resource_list(environment_key="prod").count() == 1


def test_put__limited_by_owner__makes_and_writes_what_is_theirs_and_gives_nothing_away(environments: None) -> None:
    stored("theirs", owner="shop")
    asker = limited(Limit(owner="pay"))

    made = asker.put(f"{CLUSTERS}/new?owner=pay", cluster("new"))
    again = asker.put(f"{CLUSTERS}/new", cluster("new", connect_timeout="2s"))

    assert (made.status, again.status) == (202, 202)
    assert asker.get(f"{CLUSTERS}/new?status=true").json["owner"] == "pay"
    for way, name in (("new?owner=shop", "new"), ("theirs?owner=pay", "theirs"), ("other", "other")):
        assert_problem(asker.put(f"{CLUSTERS}/{way}", cluster(name)), 403)


def test_change__that_wrote_others_too__404_and_is_not_undone(environments: None) -> None:
    both, mine = stored("pay-1", "shop"), stored("pay-2")
    asker = limited()

    assert asker.get(f"changes/{mine}").status == 200
    assert_problem(asker.get(f"changes/{both}"), 404)
    assert_problem(asker.post(f"changes/{both}/undo", {"reason": "r"}), 404)
    assert_problem(
        caller(SEEING_ALL, Scope(Role.EDITOR, "prod", (PAY,))).post(f"changes/{both}/undo", {"reason": "r"}), 403
    )
    assert asker.post(f"changes/{mine}/undo", {"reason": "r"}).status == 202


def test_history__of_a_change_with_others__leaves_out_its_message(environments: None) -> None:
    edits = [Put(parsed(cluster(name))) for name in ("pay", "shop")]
    change_apply(environment_key="prod", edits=edits, actor=SYSTEM, message="shop moves to 10.1.1.1")
    change_apply(environment_key="prod", edits=[Delete(by_word["cluster"], "pay")], actor=SYSTEM, message="pay leaves")

    revisions = limited().get(f"{CLUSTERS}/pay/revisions").json["results"]

    assert [each["message"] for each in revisions] == ["pay leaves", ""]


def test_deleting__what_others_refer_to__tells_nothing_of_them(environments: None) -> None:
    stored("pay")
    change_apply(environment_key="prod", edits=[Put(parsed(route("front", "pay")))], actor=SYSTEM)

    told = caller(SEEING_ALL, Scope(Role.EDITOR, "prod", (PAY,))).post(
        "environments/prod/apply?dry_run=true", {"delete": [{"type": "cluster", "name": "pay"}]}
    )
    answer = limited().delete(f"{CLUSTERS}/pay")

    assert b"front" in told.content
    assert answer.status == 202
    assert b"front" not in answer.content


def test_change_set__with_entries_outside__is_acted_upon_by_nobody_with_limits(api: Caller) -> None:
    dana = caller(SEEING_ALL, Scope(Role.EDITOR, "prod", (PAY,)))
    mine = dana.post("environments/prod/change-sets", {"title": "mine", "resources": [cluster("pay")]}).json
    both = {"title": "both", "resources": [cluster("pay"), cluster("shop")]}
    assert_problem(dana.post("environments/prod/change-sets", both), 403)
    theirs = api.post("environments/prod/change-sets", both).json

    assert_problem(dana.patch(f"change-sets/{mine['id']}", {"resources": [cluster("shop")]}), 403)
    for act in ("submit", "approve", "reject", "schedule", "publish", "cancel"):
        body = {"reason": "r", **({"not_before": "2040-01-01T00:00:00Z"} if act == "schedule" else {})}
        refused = dana.post(f"change-sets/{theirs['id']}/{act}", body)
        assert_problem(refused, 403, "XDS3003")
        assert [each["resource"]["name"] for each in refused.json["errors"]] == ["shop"]
    assert_problem(dana.patch(f"change-sets/{theirs['id']}", {"title": "x"}), 403)
    assert_problem(dana.delete(f"change-sets/{theirs['id']}"), 403)
    assert dana.post(f"change-sets/{theirs['id']}/comment", {"reason": "not ours"}).status == 200
    assert dana.post(f"change-sets/{mine['id']}/publish", {"reason": "r"}).status == 202


def test_change_sets__limits_alone__refused_as_they_are_about_the_environment(api: Caller) -> None:
    made = api.post("environments/prod/change-sets", {"title": "t", "resources": [cluster("pay")]}).json["id"]
    asker = limited()

    assert_problem(asker.get("environments/prod/change-sets"), 403)
    assert_problem(asker.post("environments/prod/change-sets", {"title": "t"}), 403)
    assert_problem(asker.get(f"change-sets/{made}"), 404)
    assert_problem(asker.post(f"change-sets/{made}/approve", {"reason": "r"}), 404)


def test_operator_with_everything__rolls_back_and_undoes_as_before(
    as_role: Callable[[str, str | None], Caller],
) -> None:
    change = stored("shop")

    assert as_role("operator", "prod").post(f"changes/{change}/undo", {"reason": "r"}).status == 202


def test_key__rights_have_other_limits_since__the_old_answer_is_not_told(environments: None) -> None:
    asker = limited()
    body = [cluster("pay")]
    first = asker.post("environments/prod/apply", body, Idempotency_Key="k")
    again = asker.post("environments/prod/apply", body, Idempotency_Key="k")

    ApiToken.objects.update(scopes=[{"role": "editor", "environment": "prod", "names": ["shop*"]}])
    later = asker.post("environments/prod/apply", body, Idempotency_Key="k")

    assert (first.status, again.status, again.json["id"]) == (202, 202, first.json["id"])
    assert later.status == 409
    assert first.json["id"].encode() not in later.content


ASKED = (
    *("resources", "resources?manifests=true", "resources?status=waiting", "resources?name=o", "resources?owner=shop"),
    *("resources/cluster/pay", "resources/cluster/pay?status=true", "resources/cluster/pay/revisions"),
    *("resources/cluster/shop", "resources/cluster/shop?status=true", "resources/cluster/shop/revisions"),
    *("resources/route/front", "graph", "rules", "client-groups", "rollouts", "change-sets", "snapshots", "series"),
    *("access/review", "diff?from=live", "access/cases"),
)


def told(asker: Caller, change: str) -> list[tuple[int, Any]]:
    """Everything that somebody is told who asks for everything, less what tells one request from another and the
    numbers that count the writes of the whole environment.
    """
    answers = [asker.get(f"environments/prod/{way}") for way in ASKED]
    answers += [asker.get(way) for way in ("environments", "clients", "incidents", "notifications", "audit", "whoami")]
    answers.append(asker.get(f"changes/{change}"))
    deletion = {"delete": [{"type": "cluster", "name": "pay"}]}
    answers.append(asker.post("environments/prod/apply?dry_run=true", deletion))
    answers.append(asker.post("environments/prod/apply?dry_run=true", [cluster("pay", connect_timeout="2s")]))
    answers.append(asker.post("environments/prod/apply", [cluster("shop")]))
    answers.append(asker.put(f"{CLUSTERS}/pay", cluster("pay", connect_timeout="3s"), If_Match='"r7"'))
    answers.append(asker.post(f"{CLUSTERS}/shop/revisions/1/restore"))
    return [(each.status, _plain(json.loads(each.content))) for each in answers]


def _plain(value: Any) -> Any:
    """A JSON value without what differs from one answer to the next."""
    differs = {"instance", "generation", "epoch"}
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key not in differs}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def test_two_worlds__that_differ_in_what_one_may_not_see__look_the_same(api: Caller) -> None:
    change = stored("pay")
    asker = limited()

    before = told(asker, change)
    # Another world: others write, own, delete and refer to what is ours, and say so.
    stored("shop", "other", owner="shop")
    stored("pay", word="endpoint")
    edits: list[Edit] = [Put(parsed(route("front", "pay"))), Delete(by_word["cluster"], "other")]
    change_apply(environment_key="prod", edits=edits, actor=SYSTEM, message="front leads to pay")
    group = {"key": "edge", "matchers": [{"node_id": "e-*"}], "trust": "declared"}
    assert api.post("environments/prod/client-groups", group).status == 201
    assert api.post("environments/prod/rules", {"pattern": "shop", "effect": "hide"}).status == 201
    assert api.post("environments/prod/change-sets", {"title": "s", "resources": [cluster("pay-9")]}).status == 201
    after = told(asker, change)

    assert after == before


def test_two_worlds__on_hold__says_so_without_its_reason(api: Caller) -> None:
    assert api.patch("environments/prod", {"hold": "shop is broken"}).status == 200

    answer = limited().put(f"{CLUSTERS}/pay", cluster())

    assert_problem(answer, 409)
    assert "on hold" in answer.json["detail"]
    assert "shop" not in answer.json["detail"]
