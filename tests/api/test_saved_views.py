"""Views of the console's lists over REST: the same as in the console, by the same rights."""

from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client as Browser

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import Role, Scope
from controlplane.accounts.selectors import user_principal
from controlplane.accounts.services import api_token_create
from controlplane.database.aliases import READER
from controlplane.listing.models import SavedView
from tests.api.conftest import Caller, assert_problem, caller

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
VIEW = {"environment": "default", "list": "resources", "name": "mine", "query": "sort=-changed&type=cluster"}


def test_view__of_a_person__is_the_same_by_a_token_and_on_the_page(environments: None) -> None:
    user = get_user_model().objects.create_user("pia")
    RoleGrant.objects.create(user=user, environment="default", role="editor")
    principal = user_principal(user)
    assert principal is not None
    token = api_token_create(name="pia", scopes=principal.scopes, actor=principal)[1]
    by_token, by_page = Caller(token), Browser()
    by_page.force_login(user)

    made = by_token.post("views", {**VIEW, "default": True})
    assert made.status == 201, made.content
    assert made.headers["Location"].endswith(f"/views/{made.json['id']}")
    opened = by_page.get("/e/default/resources")
    assert opened["Location"] == "/e/default/resources?type=cluster&sort=-changed"
    by_page.post("/e/default/views/clients", {"action": "save", "name": "gone", "query": "state=gone"})

    listed = by_token.get("views?environment=default").json
    assert [(each["list"], each["name"], each["own"], each["default"]) for each in listed["results"]] == [
        ("clients", "gone", True, False),
        ("resources", "mine", True, True),
    ]
    assert by_token.get("views?environment=default&list=clients").json["count"] == 1
    assert by_token.get("views").json["results"] == []


def test_view__changed__all_or_nothing_and_what_is_not_given_stays(api: Caller) -> None:
    made = api.post("views", VIEW).json
    one = f"views/{made['id']}"

    changed = api.patch(one, {"query": "type=route", "shared": True, "default": True})
    assert_problem(api.patch(one, {"name": "other", "query": "taste=sweet"}), 422)
    assert_problem(api.patch(one, {}), 422)

    assert changed.json == {**made, "query": "type=route", "shared": True, "default": True}
    assert api.get(one).json == changed.json
    assert api.patch(one, {"default": False}).json["default"] is False
    assert api.delete(one).status == 204
    assert_problem(api.get(one), 404)


def test_view__shared__is_read_by_who_reads_the_environment_and_changed_by_its_owner(environments: None) -> None:
    editor, viewer = caller(Scope(Role.EDITOR, "default")), caller(Scope(Role.VIEWER, "default"))
    stranger, admin = caller(Scope(Role.ADMIN, "prod")), caller(Scope(Role.ADMIN, "default"))
    shared, own = (editor.post("views", {**VIEW, "name": name, "shared": name == "s"}).json["id"] for name in "so")

    assert [each["name"] for each in viewer.get("views?environment=default").json["results"]] == ["s"]
    assert_problem(viewer.post("views", {**VIEW, "shared": True}), 403)
    for verb, body in (("GET", None), ("PATCH", {"name": "n"}), ("DELETE", None)):
        assert_problem(viewer(verb, f"views/{own}", body), 404)
        assert_problem(stranger(verb, f"views/{shared}", body), 404)
        assert_problem(stranger(verb, f"views/{uuid4()}", body), 404)
    assert_problem(viewer.patch(f"views/{shared}", {"name": "n"}), 403)
    assert viewer.patch(f"views/{shared}", {"default": True}).json["default"] is True
    assert_problem(viewer.delete(f"views/{shared}"), 403)
    assert_problem(stranger.get("views?environment=default"), 404)
    assert_problem(stranger.post("views", VIEW), 404)
    assert admin.delete(f"views/{shared}").status == 204
    assert SavedView.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**VIEW, "list": "dreams"}, 404),
        ({**VIEW, "list": "tokens"}, 404),
        ({"list": "resources", "name": "n", "query": ""}, 404),
        ({"list": "tokens", "name": "n", "query": "", "shared": True}, 422),
        ({**VIEW, "query": "taste=sweet"}, 422),
        ({**VIEW, "query": "status=tired"}, 422),
        ({**VIEW, "name": "x" * 61}, 422),
        ({**VIEW, "name": " "}, 422),
        ({"list": "resources"}, 422),
        ({**VIEW, "environment": "nowhere"}, 404),
    ],
)
def test_view__that_cannot_be__is_not_kept(api: Caller, body: object, status: int) -> None:
    assert_problem(api.post("views", body), status)
    assert not SavedView.objects.exists()
