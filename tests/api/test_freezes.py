"""Freezes over REST: what they refuse, what goes through, and who breaks them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.access.models import AccessRule
from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Change, Resource
from controlplane.database.aliases import READER
from controlplane.journal.models import DomainEvent
from tests.api.conftest import Answer, Caller, assert_problem, caller
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HERE = "environments/default"
RULE = {"effect": "deny", "pattern": "pay*"}
AsRole = Callable[[str, str | None], Caller]


@pytest.fixture
def api(environments: None) -> Caller:
    return caller(*ADMIN_SCOPES)


def around_now(hours: float = 1.0, reason: str = "the year's end") -> dict[str, Any]:
    now = datetime.now(UTC)
    return {"from": spelled(now - timedelta(hours=1)), "until": spelled(now + timedelta(hours=hours)), "reason": reason}


def spelled(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def freeze(api: Caller, *freezes: dict[str, Any], **more: Any) -> Answer:
    answer = api.patch(HERE, {"freezes": list(freezes), **more})
    assert answer.status == 200, answer.json
    return answer


def test_environment__with_freezes__tells_them_and_which_one_holds(api: Caller) -> None:
    held = around_now()
    later: dict[str, Any] = {"from": None, "until": None, "reason": "nobody is there"}
    later["weekly"] = {"days": ["saturday"], "from": "00:00", "until": "00:01", "zone": "Pacific/Kiritimati"}

    answer = freeze(api, held, later, review={"break_glass_role": "admin"})

    assert answer.json["freezes"] == [held, later]
    assert answer.json["review"]["break_glass_role"] == "admin"
    assert answer.json["frozen"] == {**held, "ends_at": held["until"]}
    assert api.get(HERE).json["frozen"]["reason"] == "the year's end"
    assert freeze(api).json["frozen"] is None


def test_settings__that_are_wrong__422_with_all_of_it_at_its_place(api: Caller) -> None:
    wrong = {"freezes": [{"from": "soon", "until": None}], "review": {"break_glass_role": "viewer"}}

    answer = api.patch(HERE, wrong)

    assert_problem(answer, 422)
    assert set(answer.pointers) == {
        "/freezes/0/from",
        "/freezes/0/until",
        "/freezes/0/reason",
        "/review/break_glass_role",
    }
    assert api.get(HERE).json["freezes"] == []


@pytest.mark.parametrize("role", ["operator", "editor", "access-editor"])
def test_settings__of_anybody_but_an_administrator__403(api: Caller, as_role: AsRole, role: str) -> None:
    assert_problem(as_role(role, "default").patch(HERE, {"freezes": []}), 403)
    assert_problem(as_role(role, "default").patch(HERE, {"review": {}}), 403)


def test_frozen__what_is_written_of_resources_and_access__409_and_nothing_is_stored(api: Caller) -> None:
    api.put(f"{HERE}/resources/cluster/pay", cluster("pay"))
    rule = api.post(f"{HERE}/rules", RULE).json["id"]
    group = {"key": "edge", "matchers": [{"node_cluster": "edge"}], "trust": "declared"}
    api.post(f"{HERE}/client-groups", group)
    held = around_now()
    freeze(api, held)
    before = Change.objects.count()

    refused = [
        api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="2s")),
        api.delete(f"{HERE}/resources/cluster/pay"),
        api.post(f"{HERE}/apply", {"resources": [cluster("shop")]}),
        api.post(f"{HERE}/rules", {**RULE, "pattern": "shop*"}),
        api.patch(f"{HERE}/rules/{rule}", {"pattern": "shop*"}),
        api.delete(f"{HERE}/rules/{rule}"),
        api.post(f"{HERE}/client-groups", {**group, "key": "other"}),
        api.patch(f"{HERE}/client-groups/edge", {"matchers": [{"node_cluster": "rim"}]}),
        api.delete(f"{HERE}/client-groups/edge"),
        api.patch(HERE, {"default_effect": "deny"}),
        api.patch(HERE, {"selectors": [{"node_id": "x"}]}),
    ]

    for answer in refused:
        assert_problem(answer, 409, "XDS3030")
        assert answer.json["freeze"] == {**held, "ends_at": held["until"]}
        assert "frozen until" in answer.json["detail"]
        assert "the role operator" in answer.json["detail"]
    assert Change.objects.count() == before
    assert (Resource.objects.get().name, AccessRule.objects.get().pattern) == ("pay", "pay*")


def test_frozen__what_is_so_already_and_what_leads_back__goes_through(api: Caller) -> None:
    api.put(f"{HERE}/resources/cluster/pay", cluster("pay"))
    change = api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="2s")).json["id"]
    freeze(api, around_now())

    assert api.put(f"{HERE}/resources/cluster/pay", cluster("pay", connect_timeout="2s")).status == 200
    assert api.post(f"changes/{change}/undo", {"reason": "it broke"}).status == 202
    assert api.patch(HERE, {"quarantine": "off"}).status == 200


def test_frozen__dry_runs__say_so_and_refuse_nothing(api: Caller) -> None:
    freeze(api, around_now())

    applied = api.post(f"{HERE}/apply?dry_run=true", {"resources": [cluster("shop")]})
    ruled = api.post(f"{HERE}/rules?dry_run=true", RULE)
    denied = api.patch(f"{HERE}?dry_run=true", {"default_effect": "deny"})

    for answer in (applied, ruled, denied):
        assert answer.status == 200
        assert ("XDS3030", "warning") in [(each["code"], each["severity"]) for each in answer.json["findings"]]


def test_break_glass__by_an_operator_who_may_write_it__is_done_and_told_everybody(api: Caller) -> None:
    freeze(api, around_now())
    both = caller(Scope(Role.EDITOR, "default"), Scope(Role.OPERATOR, "default"))

    answer = both.put(f"{HERE}/resources/cluster/pay?break_glass=the+shop+is+down&message=now", cluster("pay"))

    assert answer.status == 202
    assert answer.json["message"] == "now: broke the freeze: the shop is down"
    [event] = api.get("audit?verb=freeze.broken").json["results"]
    assert event["detail"]["reason"] == "the shop is down"
    assert event["detail"]["freeze"]["reason"] == "the year's end"
    told = DomainEvent.objects.get(kind="freeze.broken")
    assert (told.environment, told.payload["reason"]) == ("default", "the shop is down")


def test_break_glass__of_a_rule__stands_in_its_change(api: Caller) -> None:
    freeze(api, around_now())

    made = api.post(f"{HERE}/rules?break_glass=a+leak", RULE)

    assert made.status == 201
    assert api.get(f"changes/{made.json['change']}").json["message"].endswith("broke the freeze: a leak")


def test_break_glass__without_the_role__403_and_nothing_is_told(api: Caller, as_role: AsRole) -> None:
    freeze(api, around_now())

    answer = as_role("editor", "default").put(f"{HERE}/resources/cluster/pay?break_glass=please", cluster("pay"))

    assert_problem(answer, 403)
    assert "operator" in answer.json["detail"]
    assert not DomainEvent.objects.filter(kind="freeze.broken").exists()
    assert not Resource.objects.exists()


def test_break_glass__where_nothing_is_frozen__is_a_write_like_any_other(api: Caller) -> None:
    answer = api.put(f"{HERE}/resources/cluster/pay?break_glass=in+case", cluster("pay"))

    assert (answer.status, answer.json["message"]) == (202, "")
    assert not DomainEvent.objects.filter(kind="freeze.broken").exists()


def test_environment__frozen__is_deleted_only_by_who_breaks_it(api: Caller) -> None:
    api.post("environments", {"key": "gone", "freezes": [around_now()]})

    assert_problem(api.delete("environments/gone"), 409, "XDS3030")
    assert api.delete("environments/gone?break_glass=it+was+a+mistake").status == 204


def test_freezes__are_of_one_environment(api: Caller) -> None:
    freeze(api, around_now())

    assert api.put("environments/prod/resources/cluster/pay", cluster("pay")).status == 202
