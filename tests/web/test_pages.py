"""Every page, found by the table of paths: only for whoever may, nothing of others (costs: test_page_costs)."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern

from controlplane.accounts.principal import Role
from controlplane.console.urls import urlpatterns
from tests.web.conftest import SignIn

pytestmark = pytest.mark.django_db

# Who is not signed in, or nobody's data.
OPEN = {
    "login",
    "login-oidc",
    "login-oidc-callback",
    "login-second-factor",
    "login-second-factor-setup",
    "logout",
    "theme",
    "rows",
    "zone",
    "invitation",
    "invitation-link",
}
_QUESTIONS = {
    "resource": "?type=cluster&name=pay",
    "resource-edit": "?type=cluster&name=pay",
    "change-set-resource": "?type=cluster&name=pay",
    "change-set-rule": "?name=new-1",
    "change-set-group": "?name=edge",
    "compare": "?from=1&to=live",
    "rollback": "?to=1",
}
# The pages of one environment, by route; whoever adds one names what it needs here, or the first test fails.
NEEDS: dict[str, Role | None] = {
    "home": None,
    "explain": None,
    "search": None,
    "code": None,
    "incidents": Role.VIEWER,
    "incident": None,
    "clients": Role.VIEWER,
    "over-time": Role.VIEWER,
    "client": None,
    "tail": Role.VIEWER,
    "client-resources": None,
    "audit": None,
    "inbox": None,
    "channels": None,
    "channel": None,
    "channel-new": None,
    "channel-edit": None,
    "tokens": None,
    "comment": None,
    "comments": None,
    "ticket-links": None,
    "users": None,
    "user": None,
    "user-access": None,
    "own-access": None,
    "invitations": None,
    "people-groups": None,
    "people-group": None,
    "account": None,
    "second-factor": None,
    "setup": Role.VIEWER,
    "access": Role.VIEWER,
    "access-rule": Role.ACCESS_EDITOR,
    "client-groups": Role.VIEWER,
    "clients-bulk": Role.OPERATOR,
    "environments": None,
    "environment": Role.VIEWER,
    "resources": Role.VIEWER,
    "graph": Role.VIEWER,
    "request": Role.VIEWER,
    "resource-new": Role.EDITOR,
    "resource": Role.VIEWER,
    "resource-edit": Role.EDITOR,
    "import": Role.EDITOR,
    "expose": Role.EDITOR,
    "resources-bulk": Role.VIEWER,
    "export": Role.VIEWER,
    "route-cases": Role.VIEWER,
    "route-case-new": Role.EDITOR,
    "route-case": Role.VIEWER,
    "rollouts": Role.VIEWER,
    "rollout": None,
    "rollout-settings": Role.VIEWER,
    "freezes": Role.VIEWER,
    "review": Role.VIEWER,
    "change-sets": Role.VIEWER,
    "change-set": None,
    "change-set-resource": None,
    "change-set-rule": None,
    "change-set-group": None,
    "changes": Role.VIEWER,
    "change": None,
    "change-undo": None,
    "snapshots": Role.VIEWER,
    "snapshot": Role.VIEWER,
    "compare": Role.VIEWER,
    "rollback": Role.OPERATOR,
    "builds": Role.VIEWER,
    "views": Role.VIEWER,
    "views-anywhere": None,
}


def _routes() -> Iterator[URLPattern]:
    return (each for each in urlpatterns if each.name not in OPEN)


def _path(route: str, *, environment: str = "default", change: str = "") -> str:
    pattern = next(str(each.pattern) for each in urlpatterns if each.name == route)
    for part, value in (
        ("<str:environment_key>", environment),
        ("<uuid:change_id>", change or "00000000-0000-4000-8000-000000000000"),
        ("<uuid:change_set_id>", "00000000-0000-4000-8000-000000000000"),
        ("<uuid:rollout_id>", "00000000-0000-4000-8000-000000000000"),
        ("<uuid:comment_id>", "00000000-0000-4000-8000-000000000000"),
        ("<uuid:channel_id>", "00000000-0000-4000-8000-000000000000"),
        ("<int:epoch>", "1"),
        ("<str:listed>", "audit" if route == "views-anywhere" else "changes"),
        ("<str:incident_id>", "00000000-0000-4000-8000-000000000000"),
        ("<str:client_id>", "absent"),
        ("<str:code>", "XDS2002"),
        ("<int:route_case_id>", "1"),
        ("<int:user_id>", "1"),
        ("<int:group_id>", "1"),
    ):
        pattern = pattern.replace(part, value)
    assert "<" not in pattern, f"say in this test what stands for {pattern}"
    return f"/{pattern}{_QUESTIONS.get(route, '')}"


def test_pages__all_of_them__are_in_the_table_of_rights() -> None:
    assert {each.name for each in _routes()} == NEEDS.keys()


@pytest.mark.parametrize("route", NEEDS)
def test_page__nobody_signed_in__leads_to_the_sign_in(route: str) -> None:
    answer = Client().get(_path(route))

    assert answer.status_code == 302
    assert answer["Location"].startswith("/login?next=/")


@pytest.mark.parametrize("route", [route for route, role in NEEDS.items() if role is not None])
def test_page__somebody_of_another_environment__is_not_found_and_says_the_same_as_for_none(
    route: str, sign_in: SignIn, written: str
) -> None:
    browser = sign_in(Role.ADMIN, "prod")

    foreign = browser.get(_path(route, change=written))
    absent = browser.get(_path(route, environment="absent"))

    assert (foreign.status_code, absent.status_code) == (404, 404)
    page = foreign.content.decode()
    assert "There is no environment &#x27;default&#x27;." in page
    assert "edge" not in page
    assert "twice the patience" not in page


@pytest.mark.parametrize("page", ["", "/undo"])
def test_change__of_another_environment__is_not_found(sign_in: SignIn, written: str, page: str) -> None:
    answer = sign_in(Role.ADMIN, "prod").get(f"/changes/{written}{page}")

    assert answer.status_code == 404
    assert "twice the patience" not in answer.content.decode()


@pytest.mark.parametrize("route", [route for route, role in NEEDS.items() if role not in (None, Role.VIEWER)])
def test_page__viewer__is_refused_where_more_is_needed(route: str, sign_in: SignIn, written: str) -> None:
    answer = sign_in(Role.VIEWER, "default").get(_path(route))

    assert answer.status_code == 403
    assert "There is a problem" in answer.content.decode()


@pytest.mark.parametrize("path", ["/e/default/resources/new", "/e/default/import", "/e/default/rollback?to=1"])
def test_write__viewer__is_refused_and_nothing_is_stored(path: str, sign_in: SignIn, written: str) -> None:
    before = sign_in(None, "").get("/e/default/changes").content.decode().count("/changes/")

    answer = sign_in(Role.VIEWER, "default").post(path, {"action": "save", "text": "name: x", "reason": "why"})

    assert answer.status_code == 403
    assert sign_in(None, "").get("/e/default/changes").content.decode().count("/changes/") == before
