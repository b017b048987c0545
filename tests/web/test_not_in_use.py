"""What clients hold and do not use yet, on the pages of a change, a client and a resource (truth.md H5)."""

import html

import pytest
from django.test import Client

from controlplane.clients.models import Client as Row
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet, held, publish
from tests.services.incidents.unused import a_while_later, asks, pay
from tests.support.browser import CHROMIUM, MISSING
from tests.support.manifests import cluster, endpoints
from tests.web.conftest import page
from tests.web.test_every_page import sweep

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

SENTENCE = "2 clients took cluster 'pay' and did not ask for endpoint 'pay-hosts'."
UNUSED = "Held, not in use yet: it has not asked for endpoint 'pay-hosts'."
REFRESHES = 'hx-trigger="every 2s"'


def shown(browser: Client, path: str) -> str:
    return html.unescape(page(browser, path))


def test_pages__held_and_not_in_use__say_it_of_the_change_the_client_and_the_resource(admin: Client) -> None:
    fleet = Fleet(3)
    change = publish(pay(), endpoints("pay-hosts", 80))
    fleet.accept(held("pay", 1))
    asks(fleet, "pay-hosts", who=slice(0, 1))

    at_once = shown(admin, f"/changes/{change}")
    a_while_later(60)

    of_change = shown(admin, f"/changes/{change}")
    assert "not in use" not in at_once
    assert "Every client that was sent it runs it." in at_once
    assert (REFRESHES in at_once, REFRESHES in of_change) == (True, False)
    assert SENTENCE in of_change
    assert "2 clients</a> acknowledged it and do not use all of it yet:" in of_change
    assert "runs it." not in of_change
    listed = shown(admin, f"/e/default/clients?change={change}&answer=not_in_use")
    assert [name for name in ("node-1", "node-2", "node-3") if f">{name}<" in listed] == ["node-2", "node-3"]
    of_resource = shown(admin, "/e/default/resource?type=cluster&name=pay&tab=clients")
    assert SENTENCE in of_resource
    assert of_resource.count(UNUSED) == 2
    assert UNUSED in shown(admin, f"/clients/{Row.objects.get(node_id='node-2').pk}/resources")


@pytest.mark.skipif(not CHROMIUM, reason=MISSING)
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(600)
@pytest.mark.nightly
def test_pages__held_and_not_in_use_of_two_resources__are_accessible(admin: Client) -> None:
    fleet = Fleet(3)
    change = publish(pay(), cluster("shop", eds=True), endpoints("pay-hosts", 80))
    fleet.accept(held("pay", 1), held("shop", 1))
    a_while_later(60)
    asked = f"change={change}&answer=not_in_use"

    sweep(
        admin,
        [f"/changes/{change}", "/e/default/resource?type=cluster&name=pay&tab=clients", f"/e/default/clients?{asked}"],
    )


def test_change_page__needs_nothing_else__ends_refreshing_once_everybody_answered(admin: Client) -> None:
    fleet = Fleet(1)
    change = publish(cluster("static"))
    fleet.accept(held("static", 1))

    assert REFRESHES not in shown(admin, f"/changes/{change}")
