"""Taking a change back on its page: what that would do, what stands in the way, and what both changes say then."""

import html

import pytest
from django.test import Client

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change
from controlplane.catalog.selectors import resource_get
from controlplane.catalog.services import change_apply, environment_create
from controlplane.catalog.values import EnvironmentPolicy, Put
from tests.support.manifests import cluster, parsed
from tests.web.conftest import DANA, SignIn, page
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def admin(sign_in: SignIn) -> Client:
    return sign_in(None, "default")


def shown(client: Client, path: str) -> str:
    return html.unescape(" ".join(page(client, path).split()))


def revision() -> int:
    return resource_get(environment_key="default", kind=CLUSTER, name="pay").revision


def test_change__somebody_may_take_it_back__one_click_leads_to_a_form_with_a_reason(
    sign_in: SignIn, written: str
) -> None:
    operator = sign_in(Role.OPERATOR, "default")

    change = shown(operator, f"/changes/{written}")
    form = shown(operator, f"/changes/{written}/undo")
    made = operator.post(f"/changes/{written}/undo", {"reason": "too patient"})

    assert f'href="/changes/{written}/undo"' in change
    assert "The cluster 'pay' becomes what r1 was." in form
    assert 'name="reason"' in form
    undo = Change.objects.get(undoes=written)
    assert (made.status_code, made["Location"]) == (302, f"/changes/{undo.public_id}")
    assert revision() == 3


def test_change__taken_back__says_so_in_the_list_too_and_both_lead_to_each_other(admin: Client, written: str) -> None:
    admin.post(f"/changes/{written}/undo", {"reason": HOSTILE.replace("\u202e", "")})
    undo = str(Change.objects.get(undoes=written).public_id)

    old, new = shown(admin, f"/changes/{written}"), shown(admin, f"/changes/{undo}")
    rows = page(admin, "/e/default/changes").partition("<tbody>")[2].split("</tr>")

    assert f'Taken back by <a href="/changes/{undo}">' in old
    assert f"/changes/{written}/undo" not in old
    assert f'<a href="/changes/{written}">' in new.partition("What it took back")[2]
    assert f"/changes/{undo}/undo" in new
    assert ["<span>taken back</span>" in row for row in rows[:3]] == [False, True, False]
    assert "<img src=x" not in page(admin, f"/changes/{written}") + "".join(rows)
    again = shown(admin, f"/changes/{written}/undo")
    assert "It is not in force any more" in again
    assert 'name="reason"' not in again


def test_undo__of_a_rule_without_preview__is_one_form_away(sign_in: SignIn, written: str) -> None:
    editor = sign_in(Role.ACCESS_EDITOR, "default")
    made = rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "*"), actor=DANA)

    assert f"Access rule {made.id} is deleted." in shown(editor, f"/changes/{made.change_id}/undo")
    editor.post(f"/changes/{made.change_id}/undo", {"reason": "it emptied the fleet"})

    assert f"access rule {made.id}" not in page(editor, "/e/default/access")
    assert Change.objects.get(undoes=made.change_id).message.endswith("it emptied the fleet")


def test_undo__written_again_since__names_who_and_offers_no_form(admin: Client, written: str) -> None:
    later = Put(parsed(cluster("pay", connect_timeout="3s")))
    newer = change_apply(environment_key="default", edits=[later], actor=DANA).change_id

    form = shown(admin, f"/changes/{written}/undo")
    sent = admin.post(f"/changes/{written}/undo", {"reason": "why"})

    said = f"The cluster 'pay' was written again since: r3 by dana in change {newer[:8]}."
    assert said in form
    assert f'<a href="/changes/{newer}">' in form
    assert 'name="reason"' not in form
    assert sent.status_code == 409
    assert html.unescape(sent.content.decode()).count(said) == 1
    assert revision() == 3


def test_undo__without_a_reason__says_so_and_keeps_the_form(admin: Client, written: str) -> None:
    sent = admin.post(f"/changes/{written}/undo", {"reason": "  "})

    assert sent.status_code == 422
    assert "Say why" in sent.content.decode()
    assert 'name="reason"' in sent.content.decode()
    assert revision() == 2


def test_undo__of_what_cannot_be_taken_back__says_what_to_do_instead(admin: Client, written: str) -> None:
    made = environment_create(key="staging", policy=EnvironmentPolicy(), actor=DANA).change_id

    form = shown(admin, f"/changes/{made}/undo")

    assert "delete the environment if that is meant" in form
    assert 'name="reason"' not in form


def test_undo__sent_twice__the_second_leads_to_the_first(admin: Client, written: str) -> None:
    first = admin.post(f"/changes/{written}/undo", {"reason": "why"})
    second = admin.post(f"/changes/{written}/undo", {"reason": "why"}, follow=True)

    assert second.redirect_chain == [(first["Location"], 302)]
    assert "had been taken back already" in second.content.decode()
    assert revision() == 3


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ACCESS_EDITOR, Role.REPORTER])
def test_undo__whoever_may_not_write_it__is_refused_and_shown_no_button(
    sign_in: SignIn, written: str, role: Role
) -> None:
    client = sign_in(role, "default")

    change = page(client, f"/changes/{written}")
    form = client.get(f"/changes/{written}/undo")
    sent = client.post(f"/changes/{written}/undo", {"reason": "why"})

    assert "/undo" not in change
    assert (form.status_code, sent.status_code) == (403, 403)
    assert revision() == 2
