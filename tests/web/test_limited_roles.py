"""Roles limited to some resources, in the console: given and shown, what is offered, and what is refused with why."""

from typing import Any

import pytest
from django.test import Client

from controlplane.accounts.models import ApiToken, RoleGrant
from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change
from controlplane.changesets.selectors import change_set_get
from controlplane.common.limits import Limit
from controlplane.journal.models import AuditEvent
from tests.web.conftest import HOSTILE, USERS, SignIn, assert_harmless, page
from tests.web.proposals import EDIT, HERE, NEW, PAY, proposed, submitted, text

pytestmark = pytest.mark.django_db
EDGE = f"{HERE}/resource?type=route&name=edge"
LIMIT = {"limit_owner": "pay", "limit_types": ["cluster", "route"], "limit_names": "pay*\n refund \n"}
WITHIN = Limit("pay", ("cluster", "route"), ("pay*", "refund"))


def team_pay(*, sees_all: bool = True) -> Client:
    """Somebody who edits clusters `pay*`, and reads the environment as a whole."""
    user = USERS.objects.create_user("pia")
    limit = Limit(types=("cluster",), names=("pay*",))
    RoleGrant.objects.create(user=user, environment="default", role="editor", within=limit.text)
    if sees_all:
        RoleGrant.objects.create(user=user, environment="default", role="viewer")
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def pia(written: str) -> Client:
    return team_pay()


def give(browser: Client, **fields: Any) -> Any:
    eve = USERS.objects.get_or_create(username="eve")[0]
    form = {"action": "give", "role": "editor", "environment": "default", "reason": "team pay", **fields}
    return browser.post(f"/users/{eve.pk}", form)


def test_role__given_with_a_limit__is_stored_shown_and_in_the_audit_log(sign_in: SignIn) -> None:
    browser = sign_in(None, "")

    answer = give(browser, **LIMIT)

    grant = RoleGrant.objects.get(user__username="eve")
    assert (answer.status_code, grant.within) == (302, WITHIN.text)
    shown = page(browser, f"/users/{grant.user_id}")
    assert "only cluster, route &#x27;pay*&#x27;, &#x27;refund&#x27; of owner &#x27;pay&#x27;" in shown
    event = AuditEvent.objects.filter(verb="role.granted").latest("pk")
    assert event.detail["names"] == ["pay*", "refund"]
    eve = Client()
    eve.force_login(USERS.objects.get(username="eve"))
    assert "only cluster, route" in page(eve, "/account")


def test_role__same_with_another_limit__is_another_grant_and_taken_by_itself(sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    for names in ("pay*", "pay*", "shop*"):
        give(browser, limit_names=names)
    grants = RoleGrant.objects.filter(user__username="eve").order_by("pk")

    assert [each.within for each in grants] == [Limit(names=(name,)).text for name in ("pay*", "shop*")]
    taken = {"action": "take", "grant": grants[0].pk, "reason": "moved"}
    browser.post(f"/users/{grants[0].user_id}", taken)
    assert grants.get().within == Limit(names=("shop*",)).text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"role": "operator", "limit_owner": "pay"}, "only editor and viewer can be limited"),
        ({"limit_names": "a*b*"}, "at most one star"),
        ({"limit_types": "wheel"}, "Types are one or more of"),
        ({"limit_names": "*"}, "leave names out instead"),
    ],
)
def test_role__with_a_limit_that_cannot_be__says_why_and_keeps_what_was_typed(
    sign_in: SignIn, fields: dict[str, str], words: str
) -> None:
    answer = give(sign_in(None, ""), **fields)

    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not RoleGrant.objects.filter(user__username="eve").exists()
    typed = fields.get("limit_names") or fields.get("limit_owner")
    assert typed is None or typed in answer.content.decode()


def test_limit__with_a_hostile_owner__is_shown_as_text(sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    eve = USERS.objects.create_user("eve")
    RoleGrant.objects.create(user=eve, environment="", role="viewer", within=Limit(owner=HOSTILE).text)

    assert_harmless(page(browser, f"/users/{eve.pk}"))
    assert_harmless(page(browser, "/users"))


def test_token__made_with_a_limit__has_it_in_each_scope_and_says_so(sign_in: SignIn) -> None:
    browser = sign_in(None, "")
    form = {"action": "make-api", "name": "ci", "role-1": "editor", "environment-1": "default", "days": "90"}

    made = browser.post("/tokens", {**form, **LIMIT})
    refused = browser.post("/tokens", {**form, **LIMIT, "name": "ci2", "role-2": "operator", "environment-2": "*"})

    scope = {"role": "editor", "environment": "default", **WITHIN.as_json()}
    assert (made.status_code, ApiToken.objects.get(name="ci").scopes) == (201, [scope])
    assert "editor in default, only cluster, route" in page(browser, "/tokens")
    assert refused.status_code == 422
    assert "The role operator is about a whole environment" in refused.content.decode()


def test_resource__outside_the_limit__offers_no_edit_and_within_it_does(pia: Client) -> None:
    mine, theirs = page(pia, PAY), page(pia, EDGE)

    assert "Delete this resource" in mine
    assert "Delete this resource" not in theirs
    assert "/resource/edit" not in theirs
    assert "Restore r" in page(pia, f"{PAY}&tab=history")


def test_editor__of_a_resource_outside__says_which_right_is_missing(pia: Client) -> None:
    answer = pia.get(f"{HERE}/resource/edit?type=route&name=edge")

    assert answer.status_code == 403
    assert "pia has it for cluster &#x27;pay*&#x27; only" in answer.content.decode()
    assert pia.get(EDIT).status_code == 200


def test_editor__checked_and_saved__within_is_done_and_outside_refused(pia: Client) -> None:
    before = Change.objects.count()

    checked = pia.post(NEW, {"text": text("shop"), "action": "check"})
    refused = pia.post(NEW, {"text": text("shop"), "action": "save"})
    done = pia.post(NEW, {"text": text("pay-2"), "action": "save"})

    assert (checked.status_code, refused.status_code, done.status_code) == (403, 403, 302)
    assert "may not write the cluster &#x27;shop&#x27;" in refused.content.decode()
    assert "name: shop" in refused.content.decode()
    assert Change.objects.count() == before + 1


def test_deletion_and_restore__outside__are_refused_with_why(pia: Client) -> None:
    before = Change.objects.count()

    answers = [pia.post(EDGE, {"delete": "1"}), pia.post(EDGE, {"restore": "1"})]

    assert [each.status_code for each in answers] == [403, 403]
    assert Change.objects.count() == before


def test_import__of_some_outside__is_refused_as_a_whole_naming_them(pia: Client) -> None:
    manifests = f"{text('pay-2')}---\n{text('shop')}"

    answers = [pia.post(f"{HERE}/import", {"text": manifests, "action": each}) for each in ("check", "save")]

    for answer in answers:
        assert answer.status_code == 403
        assert "may not write the cluster &#x27;shop&#x27;" in answer.content.decode()
        assert "may not write the cluster &#x27;pay-2&#x27;" not in answer.content.decode()


def test_change_set__outside__shows_no_buttons_but_the_comment(pia: Client) -> None:
    theirs, mine = submitted("shop"), proposed("pay")

    shown, own = page(pia, f"/change-sets/{theirs}"), page(pia, f"/change-sets/{mine}")
    refused = pia.post(f"/change-sets/{theirs}", {"action": "approve", "version": 2})

    assert 'value="approve"' not in shown
    assert 'value="comment"' in shown
    assert 'value="submit"' in own
    assert refused.status_code == 403
    assert change_set_get(public_id=theirs).view.approvals == 0


def test_undo__of_a_change_with_others__is_not_offered(pia: Client, written: str) -> None:
    first = str(Change.objects.order_by("pk").filter(revisions__resource__name="edge").first().public_id)  # type: ignore[union-attr]

    assert "/undo" not in page(pia, f"/changes/{first}")
    assert pia.get(f"/changes/{first}/undo").status_code == 403
    assert "/undo" in page(pia, f"/changes/{written}")


def test_limits_alone__home_says_so_and_pages_of_the_environment_are_refused(written: str) -> None:
    browser = team_pay(sees_all=False)

    home, answer = page(browser, "/"), browser.get(f"{HERE}/resources")

    assert "You may see some resources only" in home
    assert HERE not in home
    assert answer.status_code == 403
    assert "This needs the role viewer in environment" in answer.content.decode()
    assert browser.get("/e/prod/resources").status_code == 404


def test_everything__of_an_editor_without_limits__is_as_before(sign_in: SignIn, written: str) -> None:
    browser = sign_in(Role.EDITOR, "default")

    assert "Delete this resource" in page(browser, EDGE)
    assert browser.post(EDGE, {"delete": "1"}).status_code == 302
