"""Rules and groups in change sets, in the console: proposed from every form that writes them, shown and edited in the
set, and asked for where the environment asks for review.
"""

from typing import Any

import pytest
from django.test import Client

from controlplane.access.models import AccessRule, ClientGroup
from controlplane.access.services import group_create, rule_create, rule_update
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import Role
from controlplane.changesets.models import ChangeSet
from controlplane.changesets.selectors import SetDetail, change_set_get
from controlplane.database.aliases import READER
from controlplane.journal.models import DomainEvent
from tests.web.conftest import DANA, SignIn, page
from tests.web.proposals import HERE, forms, newest, review, send, version
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

ACCESS = f"{HERE}/access"
RULE = f"{ACCESS}/rule"
TYPED = {"effect": "deny", "pattern": "pay*", "message": "ask payments", "enabled": "on", "place": "first"}
GROUP = {"before": "", "key": "edge", "trust": "declared", "matchers": "cluster=edge"}
EDGE = GroupDraft("edge", (Selector(node_cluster="edge"),), Trust.DECLARED)


@pytest.fixture
def keeper(sign_in: SignIn) -> Client:
    return sign_in(Role.ACCESS_EDITOR, "default")


def stored(pattern: str = "pay*") -> int:
    draft = RuleDraft(Effect.DENY, pattern, client_groups=())
    return rule_create(environment_key="default", draft=draft, actor=DANA).id


def detail() -> SetDetail:
    return change_set_get(public_id=str(newest().public_id))


def proposed(who: Client, path: str, **typed: Any) -> SetDetail:
    """Send a form, which asks into which set it goes, and answer that with a new one."""
    asked = who.post(path, typed)
    assert "Nothing was changed; what you filled in is kept" in asked.content.decode()
    [form] = [each for each in forms(asked.content.decode()) if "set_title" in each]
    assert not ChangeSet.objects.exists()
    answer = who.post(path, {**form, "set_into": "", "action": "propose"})
    assert answer.status_code == 302, answer.content.decode()[:3000]
    return detail()


def test_rule__proposed_from_its_form__is_in_a_set_with_what_was_typed(keeper: Client) -> None:
    assert 'value="propose"' in page(keeper, RULE)

    found = proposed(keeper, RULE, **TYPED, action="propose", types=["cluster", "route"])

    [wish] = found.wishes
    assert wish.after == RuleDraft(Effect.DENY, "pay*", 0, types=("cluster", "route"), message="ask payments").as_json()
    assert found.view.title == "All clients may not read clusters and routeconfigurations named pay*, and are told so."
    assert not AccessRule.objects.exists()


def test_rule__that_opens_to_everybody__is_proposed_only_once_that_is_confirmed(keeper: Client) -> None:
    answer = keeper.post(RULE, {**TYPED, "effect": "allow", "action": "propose"})

    assert answer.status_code == 422
    assert "every client is meant" in answer.content.decode()
    assert not ChangeSet.objects.exists()


def test_group__proposed_from_its_form__is_in_a_set_and_bad_input_is_said(keeper: Client) -> None:
    assert keeper.post(ACCESS, {**GROUP, "key": "No!", "act": "group", "action": "propose"}).status_code == 422

    found = proposed(keeper, ACCESS, **GROUP, act="group", action="propose")

    assert [(each.key, each.after) for each in found.wishes] == [(("group", "edge"), EDGE.as_json())]


@pytest.mark.parametrize("act", ["up", "down", "switch", "delete", "group", "group-delete", "rule"])
def test_review__each_form_that_writes_access__leads_to_a_set_that_does_the_same(keeper: Client, act: str) -> None:
    first, second = stored("a"), stored("b")
    group_create(environment_key="default", draft=EDGE, actor=DANA)
    review()
    of_group = {"key": "edge"} if act == "group-delete" else {**GROUP, "before": "edge", "matchers": "cluster=e"}
    typed: dict[str, Any] = {"action": act, "id": str(second if act == "up" else first)}
    path = ACCESS
    if act.startswith("group"):
        typed = {"action": act, **of_group}
    if act == "rule":
        path, typed = RULE, {**TYPED, "id": str(first)}

    found = proposed(keeper, path, **typed)

    assert AccessRule.objects.count() == 2
    done = {each.key: (each.before, each.after) for each in found.wishes}
    match act:
        case "up" | "down":
            positions = {key: (was["position"], new["position"]) for key, (was, new) in done.items() if was and new}
            assert positions == {("rule", str(first)): (10, 20), ("rule", str(second)): (20, 10)}
        case "switch":
            assert [new["enabled"] for _, new in done.values() if new] == [False]
        case "delete":
            assert done[("rule", str(first))][1] is None
        case "group":
            assert [new["matchers"] for _, new in done.values() if new] == [[{"node_cluster": "e"}]]
        case "group-delete":
            assert done[("group", "edge")][1] is None
        case _:
            [(_, new)] = done.values()
            assert new is not None
            assert (new["pattern"], new["position"]) == ("pay*", 10)
    keeper.post(f"/change-sets/{found.view.id}", {"action": "submit", "version": found.view.version})
    assert detail().view.state.value == "review"


def test_review__going_past_it__writes_and_tells_everybody(sign_in: SignIn) -> None:
    review()
    admin = sign_in(Role.ADMIN, "default")

    asked = admin.post(ACCESS, {"action": "group", **GROUP}).content.decode()
    [breaking] = [each for each in forms(asked) if "break_glass" in each]
    answer = admin.post(ACCESS, {**breaking, "break_glass": "fire"})

    assert answer.status_code == 302
    assert ClientGroup.objects.count() == 1
    assert DomainEvent.objects.get(kind="review.broken").payload["reason"] == "fire"


def test_review__undo_of_a_rule__offers_no_set_but_says_where_to_propose(sign_in: SignIn) -> None:
    change = rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "a"), actor=DANA).change_id
    review()
    admin = sign_in(Role.ADMIN, "default")

    asked = admin.post(f"/changes/{change}/undo", {"reason": "wrong"}).content.decode()
    [breaking] = [each for each in forms(asked) if "break_glass" in each]

    assert "Propose what it becomes" in asked
    assert admin.post(f"/changes/{change}/undo", {**breaking, "break_glass": "fire"}).status_code == 302
    assert not AccessRule.objects.exists()


def test_page_of_a_set__shows_rules_and_groups_with_their_differences_and_takes_them_out(keeper: Client) -> None:
    number = stored()
    found = proposed(keeper, RULE, **{**TYPED, "id": str(number), "message": "never"}, action="propose")
    here = f"/change-sets/{found.view.id}"
    into = {"set_into": f"{found.view.id}:{found.view.version}", "action": "propose"}
    assert keeper.post(ACCESS, {**GROUP, **into, "act": "group"}).status_code == 302

    shown = page(keeper, here)

    assert "client group" in shown
    assert "never" in shown
    assert f"{here}/rule?name={number}" in shown
    assert (
        keeper.post(
            here,
            {"action": "comment", "version": version(found.view.id), "type": "rule", "name": number, "text": "why?"},
        ).status_code
        == 302
    )
    assert "why?" in page(keeper, here)
    send(keeper, found.view.id, "remove", type="rule", name=str(number))
    assert [each.key for each in detail().wishes] == [("group", "edge")]
    twice = keeper.post(
        ACCESS, {**GROUP, "act": "group", "action": "propose", "set_into": f"{found.view.id}:{version(found.view.id)}"}
    )
    assert twice.status_code == 409
    assert "writes or deletes the group" in twice.content.decode()


def test_edit_in_the_set__of_a_rule_and_a_group__keeps_place_and_what_was_typed(keeper: Client) -> None:
    found = proposed(keeper, RULE, **TYPED, action="propose")
    here = f"/change-sets/{found.view.id}"
    into = {"set_into": f"{found.view.id}:{found.view.version}", "action": "propose"}
    keeper.post(ACCESS, {**GROUP, **into, "act": "group"})
    rule, group = f"{here}/rule?name=new-1", f"{here}/group?name=edge"

    shown = page(keeper, rule)
    assert 'value="edge"' in shown, "a group that the set makes can be chosen"
    typed = {**TYPED, "pattern": "shop", "groups": ["edge"], "place": "last", "version": "2"}
    assert keeper.post(rule, typed).status_code == 302
    wrong = keeper.post(group, {**GROUP, "matchers": "what is this", "version": version(found.view.id)})
    old = keeper.post(group, {**GROUP, "matchers": "cluster=mine", "version": "1"})

    assert wrong.status_code == 422
    assert "what is this" in wrong.content.decode()
    assert old.status_code == 409
    assert "cluster=mine" in old.content.decode()
    after = {each.key: each.after for each in detail().wishes}
    assert (
        after[("rule", "new-1")]
        == RuleDraft(Effect.DENY, "shop", client_groups=("edge",), message="ask payments").as_json()
    )
    assert page(keeper, f"{here}/rule?name=new-2", status=404)


def test_moved__rule__is_decided_about_on_the_page(keeper: Client) -> None:
    number = stored()
    found = proposed(keeper, RULE, **{**TYPED, "id": str(number)}, action="propose")
    rule_update(environment_key="default", rule_id=number, draft=RuleDraft(Effect.HIDE, "pay*", message=""), actor=DANA)

    shown = page(keeper, f"/change-sets/{found.view.id}")
    assert "edit 1 → edit 2" in shown
    send(keeper, found.view.id, "merge", moved_type="rule", moved_name=str(number), **{"take-0": "ours"})

    assert detail().view.state.value == "draft"


def test_set_with_rules__seen_by_an_editor__has_no_buttons_that_would_be_refused(
    keeper: Client, sign_in: SignIn
) -> None:
    found = proposed(keeper, RULE, **TYPED, action="propose")

    editor = sign_in(Role.EDITOR, "default")
    shown = page(editor, f"/change-sets/{found.view.id}")

    assert 'value="publish"' not in shown
    assert 'value="remove"' not in shown
    assert send(editor, found.view.id, "publish").status_code == 403
