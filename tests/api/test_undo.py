"""Taking a change back over REST."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Change
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from tests.api.conftest import DANA, Answer, Caller, assert_problem, caller
from tests.support.manifests import cluster, parsed

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "environments/default"


@pytest.fixture
def api(environments: None) -> Caller:
    return caller(*ADMIN_SCOPES)


def put(**fields: object) -> str:
    edits = [Put(parsed(cluster("pay") | fields))]
    return change_apply(environment_key="default", edits=edits, actor=DANA, message="m").change_id


def undo(api: Caller, change: str, **headers: str) -> Answer:
    return api.post(f"changes/{change}/undo", {"reason": "it broke"}, **headers)


def test_undo__of_resources__202_with_the_change_and_both_name_each_other(api: Caller) -> None:
    put()
    change = put(connect_timeout="2s")

    answer = undo(api, change)

    assert (answer.status, answer.json["changed"], answer.json["undoes"]) == (202, True, change)
    assert answer.headers["Location"].endswith(f"/changes/{answer.json['id']}")
    assert answer.json["message"] == f"take back change {change[:8]}: it broke"
    assert [(each["name"], each["action"], each["revision"]) for each in answer.json["edits"]] == [
        ("pay", "updated", 3)
    ]
    back = api.get(f"changes/{change}").json
    assert (back["undone_by"], back["undoes"]) == (answer.json["id"], None)
    [event] = api.get("audit?verb=change.undone").json["results"]
    assert (event["subject"], event["detail"]) == (change, {"by": answer.json["id"], "reason": "it broke"})


def test_undo__a_second_time__200_with_the_first_undo(api: Caller) -> None:
    change = put()
    first = undo(api, change).json["id"]

    again = undo(api, change)

    assert (again.status, again.json["changed"], again.json["id"]) == (200, False, first)
    assert Change.objects.filter(undoes=change).count() == 1


def test_undo__under_an_idempotency_key__is_answered_alike_and_done_once(api: Caller) -> None:
    change = put()

    first, second = (undo(api, change, Idempotency_Key="k") for _ in range(2))

    assert (second.status, second.content) == (first.status, first.content)
    assert second.headers["Idempotency-Replayed"] == "true"


def test_undo__written_again_since__409_with_each_resource_and_who_wrote_it(api: Caller) -> None:
    change = put()
    later = put(connect_timeout="2s")

    answer = undo(api, change)

    assert_problem(answer, 409, "XDS3009")
    [error] = answer.json["errors"]
    assert error["resource"] == {"type": "cluster", "name": "pay"}
    assert f"r2 by dana in change {later[:8]}" in error["detail"]
    assert error["hint"]
    assert Change.objects.count() == Change.objects.filter(undoes="").count()


def test_undo__of_a_rule_a_setting_and_a_group__each_is_what_it_was(api: Caller) -> None:
    group = {"key": "edge", "matchers": [{"node_id": "e-*"}], "trust": "declared"}
    made = [
        api.post(f"{HERE}/rules", {"pattern": "*", "effect": "deny"}).json["change"],
        api.patch(HERE, {"hold": "freeze"}).json["change"],
        api.post(f"{HERE}/client-groups", group).json["change"],
    ]

    statuses = [undo(api, change).status for change in made]

    assert statuses == [202, 202, 202]
    assert api.get(f"{HERE}/rules").json["results"] == api.get(f"{HERE}/client-groups").json["results"] == []
    assert api.get(HERE).json["hold"] is None


def test_undo__without_a_reason_or_with_more__422(api: Caller) -> None:
    change = put()

    assert_problem(api.post(f"changes/{change}/undo", {}), 422)
    assert_problem(api.post(f"changes/{change}/undo", {"reason": "r", "force": True}), 422)
    assert_problem(api.post(f"changes/{change}/undo?force=true", {"reason": "r"}), 422)
    assert api.get(f"changes/{change}").json["undone_by"] is None


def test_undo__of_an_environment_s_making__409_says_what_to_do(api: Caller) -> None:
    change = api.post("environments", {"key": "staging"}).json["change"]

    answer = undo(api, change)

    assert_problem(answer, 409)
    assert "delete the environment if that is meant" in answer.json["detail"]


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (Role.EDITOR, {"resources"}),
        (Role.OPERATOR, {"resources", "hold"}),
        (Role.ACCESS_EDITOR, {"rule"}),
        (Role.ADMIN, {"resources", "rule", "hold", "selectors"}),
        (Role.VIEWER, set()),
        (Role.REPORTER, set()),
    ],
)
def test_undo__role__may_take_back_what_it_may_write(api: Caller, role: Role, allowed: set[str]) -> None:
    changes = {
        "resources": put(),
        "rule": api.post(f"{HERE}/rules", {"pattern": "a", "effect": "deny"}).json["change"],
        "hold": api.patch(HERE, {"hold": "freeze"}).json["change"],
        "selectors": api.patch(HERE, {"selectors": [{"node_id": "e-*"}]}).json["change"],
    }
    api.patch(HERE, {"hold": None})  # a hold stops editors, whatever their role
    somebody = caller(Scope(role, "default"))

    answers = {name: undo(somebody, change) for name, change in changes.items()}

    assert {name for name, answer in answers.items() if answer.status != 403} == allowed
    for name in changes.keys() - allowed:
        assert_problem(answers[name], 403, "XDS3003")


def test_undo__of_another_environment__is_not_found_as_if_there_were_none(api: Caller) -> None:
    change = put()
    stranger = caller(Scope(Role.ADMIN, "prod"))
    never = "00000000-0000-0000-0000-000000000000"

    foreign, absent = undo(stranger, change), undo(stranger, never)

    assert_problem(foreign, 404, "XDS3004")
    assert foreign.json["detail"].replace(change, never) == absent.json["detail"]


def test_undo__of_an_undo__puts_the_change_in_force_again(api: Caller) -> None:
    change = put()
    first = undo(api, change).json["id"]

    second = undo(api, first).json

    assert api.get(f"changes/{first}").json["undone_by"] == second["id"]
    assert api.get(f"changes/{change}").json["undone_by"] is None
