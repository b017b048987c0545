"""Somebody narrows a list, sorts it, keeps what they see as a view and opens it again, in a real browser: by pointer,
with keys alone, and without scripts.
"""

from collections.abc import Callable

import pytest
from django.test import Client
from playwright.sync_api import expect

from controlplane.accounts.principal import Role
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from controlplane.listing.models import SavedView
from tests.services.incidents.fleet import Fleet
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.manifests import cluster, parsed
from tests.support.page_checks import Watch, axe_faults, focus_faults, width_faults
from tests.support.web_thread import serving_web
from tests.web.conftest import DANA
from tests.web.test_change_sets_in_browser import faults, sitting

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
WIDE = 1440


@pytest.fixture
def owned(fleet: Fleet) -> None:
    """Some resources of a team."""
    edits = [Put(parsed(cluster(f"bill-{number}"))) for number in range(3)]
    change_apply(environment_key="default", edits=edits, actor=DANA, message="why", terms=Terms("billing"))


@pytest.mark.parametrize("kind", [Pointer, Keyboard, Plain], ids=lambda each: each.__name__.lower())
def test_list__narrowed_sorted_kept_and_opened_again(kind: type[Pointer], admin: Client, owned: None) -> None:
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, admin, kind, watch) as hand:
            main = hand.page.locator("main")
            rows = main.locator("tbody tr")
            hand.page.set_viewport_size({"width": WIDE, "height": 900})
            hand.page.goto(f"{base}/e/default/resources")
            expect(rows).to_have_count(4)
            hand.write(main.get_by_label("Owner"), "billing")
            hand.send(main.get_by_role("button", name="Filter"))
            expect(rows).to_have_count(3)
            head = main.get_by_role("columnheader", name="Name")
            hand.send(head.get_by_role("link"))
            expect(head).to_have_attribute("aria-sort", "ascending")
            hand.send(head.get_by_role("link"))
            expect(head).to_have_attribute("aria-sort", "descending")
            expect(rows.first).to_contain_text("bill-2")
            hand.send(main.get_by_role("button", name="Dense rows"))
            expect(hand.page.locator("html")).to_have_attribute("data-rows", "dense")
            expect(rows.first).to_contain_text("bill-2")
            hand.press(main.locator("summary", has_text="Views"))
            hand.send(main.get_by_role("link", name="Keep this as a view"))
            hand.write(main.get_by_label("Name", exact=True), "what we own")
            hand.press(main.get_by_label("Offer it to everybody"))
            hand.press(main.get_by_label("Open the list with it"))
            hand.send(main.get_by_role("button", name="Keep the view"))
            expect(main.get_by_text("View: what we own")).to_be_visible()
            hand.page.goto(f"{base}/e/default/resources")
            expect(rows).to_have_count(3)
            hand.send(main.get_by_role("link", name="Clear filters"))
            expect(rows).to_have_count(4)
            hand.write(main.get_by_label("Since"), "1 h")
            hand.choose(main.get_by_label("Status"), "refused")
            if not hand.scripts:
                hand.send(main.get_by_role("button", name="Filter"))
            expect(rows).to_have_count(1)
            expect(main.get_by_label("Since")).to_have_value("1 h")
            assert watch.taken() == []
            hand.page.set_viewport_size({"width": 390, "height": 844})
            assert faults(hand) == []
    view = SavedView.objects.get()
    assert (view.query, view.shared) == ("owner=billing&sort=-name", True)


def test_lists_and_views__wide_narrow_light_and_dark__are_accessible(
    admin: Client, person: Callable[..., Client], owned: None
) -> None:
    views = "/e/default/views/resources"
    shared = {"action": "save", "name": "what we own", "query": "owner=billing", "shared": "1"}
    person(Role.EDITOR).post(views, shared)
    admin.post(views, {"action": "save", "name": "all that changed lately", "query": "since=2h&sort=-changed"})
    pages = (
        *(f"/e/default/{each}" for each in ("resources", "changes?author=dana", "clients", "incidents", "rollouts")),
        *("/e/default/change-sets", "/e/default/snapshots", "/messages", views, f"{views}?query=owner%3Dbilling"),
        *("/e/default/resources?since=yesterday", "/e/default/changes?sort=taste", "/audit?sort=time"),
        *("/e/default/access?effect=deny", "/e/default/access/groups", "/tokens?kind=client", "/users?state=active"),
    )
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, admin, Pointer, watch) as hand:
            page = hand.page
            found: dict[tuple[str, int, str], list[str]] = {}
            for path in pages:
                for width in (WIDE, 390):
                    page.set_viewport_size({"width": width, "height": 900})
                    page.goto(base + path)
                    for scheme in ("light", "dark"):
                        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                        expect(page.locator("html")).to_have_attribute("data-bs-theme", scheme)
                        wrong = [*axe_faults(page), *width_faults(page, width)]
                        if wrong:
                            found[path, width, scheme] = wrong
                if wrong := list(focus_faults(page)):
                    found[path, 390, "focus"] = wrong
    assert found == {}
