"""Groups of users: made, filled, given roles and deleted on their pages; what their people may by them."""

import re

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import Role
from controlplane.accounts.selectors import user_principal
from controlplane.journal.models import AuditEvent
from tests.web.conftest import HOSTILE, USERS, SignIn, assert_harmless, page

pytestmark = pytest.mark.django_db
WHY = {"reason": "on call"}


@pytest.fixture
def root(sign_in: SignIn) -> Client:
    return sign_in(None, "")


@pytest.fixture
def group(environments: None) -> Group:
    return Group.objects.create(name="operators")


def act(browser: Client, group: Group, action: str, **fields: object) -> int:
    return browser.post(f"/users/groups/{group.pk}", {"action": action, **WHY, **fields}).status_code


def test_group__made_filled_and_given_a_role__its_user_has_it_until_it_is_taken(root: Client) -> None:
    other = Client()
    other.force_login(USERS.objects.create_user("eve"))

    made = root.post("/users/groups", {"name": "operators", **WHY})
    group = Group.objects.get(name="operators")
    assert made["Location"] == f"/users/groups/{group.pk}"
    assert act(root, group, "add", username="eve") == 302
    assert act(root, group, "give", role="viewer", environment="prod") == 302
    inside = other.get("/e/prod/resources").status_code
    listed, own = page(root, "/users/groups"), page(other, "/account")
    grant = RoleGrant.objects.get(group=group)
    assert act(root, group, "take", grant=grant.pk) == 302

    assert (inside, other.get("/e/prod/resources").status_code) == (200, 404)
    assert "viewer in prod" in listed
    assert "by the group operators" in own
    told = {each.verb: (each.actor, each.subject, each.detail.get("reason")) for each in AuditEvent.objects.all()}
    for verb in ("people-group.created", "people-group.joined", "role.granted", "role.taken"):
        assert told[verb] == ("admin", "operators", "on call")


def test_group__given_a_role_for_some_resources__its_user_has_it_within_that_alone(root: Client, group: Group) -> None:
    user = USERS.objects.create_user("eve")
    user.groups.add(group)
    limits = ({"limit_owner": "pay", "limit_names": "pay*"}, {"limit_types": ["route"]}, {"limit_types": ["route"]})

    for limit in limits:
        assert act(root, group, "give", role="editor", environment="prod", **limit) == 302
    principal = user_principal(user)
    shown = page(root, f"/users/groups/{group.pk}")

    assert principal is not None
    assert not principal.may(Role.EDITOR, "prod")
    assert {limit.text for scope in principal.scopes for limit in scope.limits} == {
        each.within for each in RoleGrant.objects.filter(group=group)
    }
    assert RoleGrant.objects.filter(group=group).count() == 2  # the second time says nothing new
    assert "only resources &#x27;pay*&#x27; of owner &#x27;pay&#x27;" in shown
    assert AuditEvent.objects.filter(verb="role.granted", detail__owner="pay", subject="operators").count() == 1


def test_group__user_taken_out_renamed_and_deleted__ends_what_it_gave(root: Client, group: Group) -> None:
    user = USERS.objects.create_user("eve")
    user.groups.add(group)
    RoleGrant.objects.create(group=group, role="viewer", environment="prod")

    assert act(root, group, "out", user=user.pk) == 302
    assert not user.groups.exists()
    assert act(root, group, "rename", name="night shift") == 302
    assert Group.objects.get(pk=group.pk).name == "night shift"
    assert act(root, group, "delete") == 302

    assert not Group.objects.exists()
    assert not RoleGrant.objects.filter(group__isnull=False).exists()
    assert "is deleted" in page(root, "/users/groups")


@pytest.mark.parametrize(
    ("action", "fields", "status", "says"),
    [
        ("add", {"username": "nobody"}, 422, "nobody called"),
        ("give", {"role": "king", "environment": "prod"}, 422, "Choose a role"),
        ("give", {"role": "viewer", "environment": "absent"}, 422, "There is no environment"),
        (
            "give",
            {"role": "operator", "environment": "prod", "limit_owner": "pay"},
            422,
            "only editor and viewer can be limited",
        ),
        ("rename", {"name": " "}, 422, "one line"),
        ("rename", {"name": "taken"}, 409, "already"),
        ("take", {"grant": "x"}, 404, "does not exist"),
        ("burn", {}, 422, "no such action"),
        ("add", {"username": "eve", "reason": ""}, 422, "Say why"),
    ],
)
def test_group__form_with_a_mistake__says_which_and_changes_nothing(
    action: str, fields: dict[str, str], status: int, says: str, root: Client, group: Group
) -> None:
    Group.objects.create(name="taken")
    USERS.objects.create_user("eve")

    answer = root.post(f"/users/groups/{group.pk}", {"action": action, **WHY, **fields})

    assert answer.status_code == status
    assert says in answer.content.decode()
    assert Group.objects.get(pk=group.pk).name == "operators"
    assert not RoleGrant.objects.exists()
    assert not group.user_set.exists()


def test_administrator_by_a_group__ends_that_of_themselves__is_refused(environments: None, group: Group) -> None:
    user, browser = USERS.objects.create_user("eve"), Client()
    browser.force_login(user)
    user.groups.add(group)
    grant = RoleGrant.objects.create(group=group, role="admin", environment="")

    codes = [
        act(browser, group, "out", user=user.pk),
        act(browser, group, "take", grant=grant.pk),
        act(browser, group, "delete"),
    ]

    assert codes == [409] * 3
    assert browser.get("/users/groups").status_code == 200


def test_groups__administrator_of_one_environment__is_refused(sign_in: SignIn, group: Group) -> None:
    browser = sign_in(Role.ADMIN, "default")

    assert browser.get("/users/groups").status_code == 403
    assert act(browser, group, "give", role="admin", environment="*") == 403
    assert not RoleGrant.objects.filter(group=group).exists()


def test_group__hostile_name_or_none__is_harmless(root: Client) -> None:
    group = Group.objects.create(name=HOSTILE)

    assert_harmless(page(root, "/users/groups"))
    # What is edited stays exact, in its field.
    assert_harmless(re.sub(r' value="[^"]*"', "", page(root, f"/users/groups/{group.pk}")))
    assert "There is no group of users 987654." in page(root, "/users/groups/987654", 404)
    assert root.post("/users/groups", {"name": "two\nlines", **WHY}).status_code == 422
