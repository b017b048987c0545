"""Exposing a service: what is shown before, what is stored, and what is said of facts that cannot be."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.review import ReviewSettings
from controlplane.changesets.models import ChangeSet, ChangeSetEntry
from controlplane.database.aliases import READER
from tests.services.undo.hands import put, settings
from tests.support.manifests import cluster, listener, route
from tests.web.conftest import HOSTILE, SignIn, assert_harmless
from tests.web.test_importing import Sent

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

EXPOSE = "/e/default/resources/expose"
FACTS = {
    "name": "pay",
    "clients": "envoy",
    "domains": "pay.example.org\npay",
    "prefix": "/",
    "addresses": "10.0.0.7:8080\r\n10.0.0.8:8080",
    "port": "8080",
    "owner": "team-pay",
    "labels": "team=pay tier=1",
    "action": "check",
}


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in(Role.EDITOR, "default")


def shown(answer: Any) -> str:
    return html.unescape(" ".join(answer.content.decode().split()))


def sent(answer: Any) -> dict[str, Any]:
    """The form of the page as a browser would send it."""
    page = answer.content.decode()
    return dict(Sent(page[page.index('id="expose"') :]).fields)


def present() -> list[tuple[str, str, str, str]]:
    rows = Resource.objects.filter(deleted=False).order_by("type", "name")
    return list(rows.values_list("type", "name", "owner", "labels"))


def test_expose__facts__are_shown_as_manifests_and_stored_as_one_change(editor: Client) -> None:
    asked = editor.post(EXPOSE, FACTS)
    page = shown(asked)

    assert asked.status_code == 200
    assert "Sound; 4 resources would change" in page
    assert "<code>route_config_name: pay</code>" in page.replace("  ", " ").replace("<code> ", "<code>")
    assert present() == []

    done = editor.post(EXPOSE, {**sent(asked), "action": "save"})

    assert done.status_code == 302
    assert present() == [
        (word, "pay", "team-pay", "\nteam=pay\ntier=1\n") for word in ("cluster", "endpoint", "listener", "route")
    ]
    assert Change.objects.latest("pk").message == "Expose pay"


def test_expose__behind_a_listener__changes_its_route_and_leaves_its_owner(editor: Client) -> None:
    put(listener("edge", "routes", 80), route("routes", "shop", domain="shop.example.org"), cluster("shop"))
    Resource.objects.update(owner="platform")
    asked = editor.post(EXPOSE, {**FACTS, "port": "", "listener": "edge", "addresses": "", "cluster": "shop"})

    assert "It changes the route" in shown(asked)
    assert "Sound; 1 resource would change" in shown(asked)
    assert editor.post(EXPOSE, {**sent(asked), "action": "save"}).status_code == 302
    assert ("route", "routes", "platform", "") in present()


def test_expose__proposed__is_a_change_set_and_nothing_is_published(editor: Client) -> None:
    settings(review=ReviewSettings(required=True))
    form = {**sent(editor.post(EXPOSE, FACTS)), "set_title": "expose pay"}

    asked = editor.post(EXPOSE, {**form, "action": "save"})
    assert asked.status_code == 409
    assert "Into which change set" in shown(asked) or "set_into" in shown(asked)
    done = editor.post(EXPOSE, {**form, "action": "propose"})

    assert (done.status_code, present()) == (302, [])
    assert ChangeSet.objects.get().title == "expose pay"
    assert sorted(ChangeSetEntry.objects.values_list("type", flat=True)) == ["cluster", "endpoint", "listener", "route"]


def test_expose__something_moved_since_it_was_seen__says_what_and_stores_nothing(editor: Client) -> None:
    put(listener("edge", "routes", 80), route("routes", "shop", domain="shop.example.org"))
    facts = {**FACTS, "port": "", "listener": "edge"}
    form = sent(editor.post(EXPOSE, facts))
    put(route("routes", "shop", domain="other.example.org"))
    before = Change.objects.count()

    moved = editor.post(EXPOSE, {**form, "action": "save"})
    assert moved.status_code == 409
    assert "The route 'routes' was at r1 when you looked, and is at r2." in shown(moved)
    put(cluster("pay"))
    taken = editor.post(EXPOSE, {**form, "action": "save"})
    assert (taken.status_code, "The cluster 'pay' is there already." in shown(taken)) == (422, True)
    other = editor.post(EXPOSE, {**form, "name": "pay-2", "action": "save"})
    assert other.status_code == 409
    assert Change.objects.count() == before + 1


def test_expose__save_of_what_was_never_seen__shows_it_first(editor: Client) -> None:
    answer = editor.post(EXPOSE, {**FACTS, "action": "save"})

    assert answer.status_code == 200
    assert "Save as one change" in shown(answer)
    assert present() == []


def test_expose__facts_that_cannot_be__are_said_at_their_fields_and_stay(editor: Client) -> None:
    put(cluster("pay"), listener("edge", "routes", 8080))
    wrong = {"timeout": "soon", "labels": "no label", "owner": "x" * 151, "prefix": "pay", "domains": "a/b"}

    answer = editor.post(EXPOSE, {**FACTS, **wrong})

    page = shown(answer)
    assert answer.status_code == 422
    for field in (*wrong, "name"):
        assert f'id="{field}-wrong"' in page
        assert f'href="#{field}"' in page
    assert 'value="soon"' in page
    assert "10.0.0.7:8080" in page
    port = editor.post(EXPOSE, {**FACTS, "name": "other"})
    assert port.status_code == 200  # that listener is on loopback
    every = {"socket_address": {"address": "0.0.0.0", "port_value": 8080}}  # noqa: S104 - nobody binds it
    put({**listener("all", "routes", 8080), "address": every})
    assert "The listener 'all' has this port already." in shown(editor.post(EXPOSE, {**FACTS, "name": "other"}))


def test_expose__hostile_facts__are_harmless(editor: Client) -> None:
    for clients in ("envoy", "grpc", HOSTILE):
        words = dict.fromkeys(("domains", "addresses", "cluster", "listener", "secret", "timeout", "owner"), HOSTILE)
        answer = editor.post(EXPOSE, {**FACTS, **words, "name": HOSTILE, "clients": clients, "prefix": HOSTILE})

        assert answer.status_code == 422
        assert_harmless(_without_typed(answer))
    assert_harmless(_without_typed(editor.post(EXPOSE, {**FACTS, "name": "a <b>", "message": HOSTILE})))


def _without_typed(answer: Any) -> str:
    """The page without what stands in its fields, which is as it was typed."""
    page = re.sub(r' (value|placeholder)="[^"]*"', "", answer.content.decode())
    return re.sub(r"(?s)(<textarea[^>]*>).*?</textarea>", r"\1</textarea>", page)


def test_expose__page__costs_little_and_is_for_editors(
    sign_in: SignIn, editor: Client, django_assert_max_num_queries: Any
) -> None:
    assert sign_in(Role.VIEWER, "default").get(EXPOSE).status_code == 403
    assert "Expose a service" in shown(editor.get("/e/default/resources"))
    with django_assert_max_num_queries(25):
        assert editor.get(EXPOSE).status_code == 200
