"""Somebody exposes a service, imports it changed, and looks at what was done in their own time, in a real browser: by
pointer, with keys alone, and without scripts.
"""

import json

import pytest
from django.test import Client
from playwright.sync_api import expect

from controlplane.catalog.models import Change, Resource
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.manifests import cluster
from tests.support.page_checks import Watch
from tests.support.web_thread import serving_web
from tests.web.test_change_sets_in_browser import faults, sitting

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
FACTS = {
    "Name": "wishlist",
    "Hosts": "wishlist.example.org",
    "Addresses": "10.0.0.7:8080",
    "Port of a new listener": "8080",
}


@pytest.mark.parametrize("kind", [Pointer, Keyboard, Plain], ids=lambda each: each.__name__.lower())
def test_service__exposed_imported_changed_and_looked_at_in_ones_own_time(
    kind: type[Pointer], admin: Client, fleet: Fleet
) -> None:
    before = Change.objects.count()
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, admin, kind, watch) as hand:
            main = hand.page.locator("main")
            hand.page.goto(f"{base}/e/default/resources/expose")
            for label, text in FACTS.items():
                hand.write(main.get_by_label(label, exact=True), text)
            hand.send(main.get_by_role("button", name="Show what it comes to"))
            expect(main.get_by_text("4 resources would change")).to_be_visible()
            assert faults(hand) == []
            hand.send(main.get_by_role("button", name="Save as one change"))
            expect(main.get_by_role("heading", name="Expose wishlist")).to_be_visible()

            hand.page.goto(f"{base}/e/default/import")
            hand.write(main.locator("#text"), json.dumps(cluster("wishlist", connect_timeout="9s")))
            hand.send(main.get_by_role("button", name="Check", exact=True))
            expect(main.get_by_text("1 resource would change")).to_be_visible()
            assert faults(hand) == []
            hand.send(main.get_by_role("button", name="Import and publish"))
            expect(main.get_by_role("heading", name="What the fleet made of it")).to_be_visible()

            hand.page.goto(f"{base}/account")
            hand.write(main.get_by_label("Time zone"), "Europe/Berlin")
            hand.send(main.locator("section", has=hand.page.locator("#times")).get_by_role("button", name="Save"))
            hand.page.goto(f"{base}/audit")
            expect(main.get_by_label("Since, Europe/Berlin")).to_be_visible()
            assert faults(hand) == []
        assert watch.taken() == []
    assert Change.objects.count() == before + 2
    assert Resource.objects.filter(name="wishlist", deleted=False).count() == len(FACTS)
