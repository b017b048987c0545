"""Views of lists in the console: kept, opened, shared and left to whose they are."""

from collections.abc import Callable

import pytest
from django.test import Client as Browser

from controlplane.accounts.principal import Role
from controlplane.database.aliases import READER
from controlplane.listing.models import SavedView
from tests.services.incidents.fleet import Fleet
from tests.web.conftest import HOSTILE, page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
VIEWS = "/e/default/views/resources"
Person = Callable[..., Browser]


def keep(browser: Browser, name: str = "clusters", query: str = "type=cluster&sort=-changed", **more: str) -> str:
    """Keep a view; where that leads."""
    answer = browser.post(VIEWS, {"action": "save", "name": name, "query": query, **more})
    assert answer.status_code == 302, answer.content.decode()
    return answer["Location"]


def act(browser: Browser, action: str, status: int = 302, **more: str) -> str:
    view = str(SavedView.objects.get().public_id)
    answer = browser.post(VIEWS, {"action": action, "view": view, **more})
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def test_view__kept__is_in_the_menu_and_is_what_is_shown(admin: Browser, fleet: Fleet) -> None:
    offered = page(admin, "/e/default/resources?sort=-changed&type=cluster")

    assert 'href="/e/default/views/resources?query=type%3Dcluster%26sort%3D-changed"' in offered
    assert keep(admin) == "/e/default/resources?type=cluster&sort=-changed"
    shown = page(admin, "/e/default/resources?type=cluster&sort=-changed")
    assert 'View: <span class="foreign">clusters</span>' in shown
    assert "View: " not in page(admin, "/e/default/resources?type=route")


def test_view__default__opens_the_list_and_everything_is_one_link_away(admin: Browser, fleet: Fleet) -> None:
    keep(admin, default="1")

    opened = admin.get("/e/default/resources")
    assert (opened.status_code, opened["Location"]) == (302, "/e/default/resources?type=cluster&sort=-changed")
    everything = page(admin, "/e/default/resources?view=all")
    assert "Clear filters" not in everything
    act(admin, "open-with-all")
    assert admin.get("/e/default/resources").status_code == 200


def test_view__shared__is_offered_and_not_to_be_changed_by_others(person: Person, fleet: Fleet) -> None:
    editor, viewer = person(Role.EDITOR), person(Role.VIEWER)
    keep(editor, shared="1")

    shown = page(viewer, VIEWS)
    assert ">clusters</a>" in shown
    assert "editor-default" in shown
    assert "everybody who reads" not in shown  # a reader may share nothing
    assert 'value="delete"' not in shown
    for action in ("rename", "share", "unshare", "delete"):
        act(viewer, action, 403, name="stolen")
    act(viewer, "default")
    assert viewer.get("/e/default/resources").status_code == 302
    assert (
        "Keep it for yourself"
        in viewer.post(VIEWS, {"action": "save", "name": "x", "query": "", "shared": "1"}).content.decode()
    )
    assert SavedView.objects.count() == 1


def test_view__of_another_environment__is_not_there(person: Person, fleet: Fleet) -> None:
    keep(person(Role.EDITOR), shared="1")
    stranger = person(Role.ADMIN, "prod")

    assert "clusters" not in page(stranger, VIEWS, 404)
    assert "clusters" not in page(stranger, "/e/prod/views/resources")
    view = str(SavedView.objects.get().public_id)
    answer = stranger.post("/e/prod/views/resources", {"action": "delete", "view": view})
    assert answer.status_code == 404
    assert SavedView.objects.count() == 1


def test_view__renamed_shared_and_deleted(admin: Browser, fleet: Fleet) -> None:
    keep(admin)

    act(admin, "rename", name="all clusters")
    act(admin, "share")
    assert (SavedView.objects.get().name, SavedView.objects.get().shared) == ("all clusters", True)
    act(admin, "unshare")
    act(admin, "delete")
    assert "No view is kept of this list" in page(admin, VIEWS)


@pytest.mark.parametrize(
    ("form", "status", "says"),
    [
        ({"action": "save", "name": "", "query": "type=cluster"}, 422, "A view needs a name."),
        ({"action": "save", "name": "x", "query": "next=//evil.example"}, 422, "cannot keep &#x27;next&#x27;"),
        ({"action": "save", "name": "x", "query": "type=fruit"}, 422, "cannot be &#x27;fruit&#x27;"),
        ({"action": "save", "name": "y" * 61, "query": "owner=pay"}, 422, "at most 60"),
        ({"action": "paint"}, 422, "There is nothing called &#x27;paint&#x27;"),
        ({"action": "delete", "view": "none"}, 404, "This list has no view"),
        ({"action": "rename", "view": "00000000-0000-4000-8000-000000000000"}, 404, "This list has no view"),
    ],
)
def test_form__what_cannot_be__is_said_and_what_was_typed_stays(
    form: dict[str, str], status: int, says: str, admin: Browser
) -> None:
    answer = admin.post(VIEWS, form)
    shown = answer.content.decode()

    assert answer.status_code == status
    assert says in shown
    assert f'name="query" value="{form.get("query", "")}"' in shown
    assert not form.get("name") or form["name"] in shown
    assert SavedView.objects.count() == 0


def test_view__hostile_name__is_turned_down_and_escaped(admin: Browser) -> None:
    assert admin.post(VIEWS, {"action": "save", "name": HOSTILE[:50], "query": ""}).status_code == 422

    keep(admin, "<script>alert(1)</script>")

    for path in (VIEWS, "/e/default/resources?view=all"):
        assert "<script>alert" not in page(admin, path)


def test_views__of_no_list__are_not_there(admin: Browser) -> None:
    for path in ("/e/default/views/fruit", "/e/default/views/audit", "/views/resources", "/views/fruit"):
        page(admin, path, 404)


def test_views__of_the_audit_log__are_ones_own(admin: Browser) -> None:
    made = admin.post("/views/audit", {"action": "save", "name": "today", "query": "since=24h"})

    assert made["Location"] == "/audit?since=24h"
    assert ">today</a>" in page(admin, "/views/audit")
    assert "Offer it to everybody" not in page(admin, "/views/audit")
