"""Somebody imports files and exposes a service, by pointer, by keys and without scripts: seen before it is stored."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from controlplane.catalog.models import Change, Resource
from controlplane.changesets.models import ChangeSetEntry
from controlplane.database.aliases import READER
from tests.services.undo.hands import put
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.manifests import cluster
from tests.support.page_checks import Watch
from tests.support.web_thread import serving_web
from tests.web.conftest import SignIn
from tests.web.test_change_sets_in_browser import faults, sitting
from tests.web.test_importing import BOOTSTRAP

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
HANDS = [Pointer, pytest.param(Keyboard, marks=pytest.mark.nightly), Plain]
LIST = "/e/default/resources"


def present() -> list[str]:
    return list(Resource.objects.filter(deleted=False).order_by("type", "name").values_list("name", flat=True))


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_import__of_two_files__is_seen_chosen_and_stored(kind: type[Pointer], sign_in: SignIn, tmp_path: Path) -> None:
    put(cluster("shop"))
    mixed = [cluster("shop", connect_timeout="9s"), cluster("fresh"), cluster("wrong", connect_timeout="never")]
    (tmp_path / "edge.yaml").write_text(BOOTSTRAP)
    (tmp_path / "shop.json").write_text(json.dumps(mixed))
    root = sign_in(None, "")
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, root, kind, watch) as hand:
            main = hand.page.locator("main")
            hand.page.goto(base + LIST)
            hand.send(main.get_by_role("link", name="Import", exact=True))
            expect(main.get_by_role("heading", name="Import manifests")).to_be_visible()
            assert faults(hand) == []
            main.get_by_label("Files", exact=True).set_input_files([tmp_path / "edge.yaml", tmp_path / "shop.json"])
            # Enter in a field decides nothing.
            hand.write(main.get_by_role("textbox", name="Owner (optional)"), "team")
            main.get_by_role("textbox", name="Owner (optional)").press("Enter")
            expect(main.get_by_role("textbox", name="Owner (optional)")).to_have_value("team")
            hand.send(main.get_by_role("button", name="Check"))
            watch.taken()  # that something is turned down is an answer, which a browser reports as an error, too
            expect(
                main.get_by_role("heading", name="1 manifest is turned down; 3 resources would change")
            ).to_be_visible()
            expect(main.get_by_text("The section 'admin' holds nothing that Parley serves.")).to_be_visible()
            expect(main.get_by_text("edge.yaml, line 1")).to_be_visible()
            assert faults(hand) == []

            hand.press(main.get_by_label("Take cluster fresh", exact=True))
            hand.press(main.get_by_text("What changes of cluster shop"))
            expect(main.get_by_text("connect_timeout: 9s").first).to_be_visible()
            hand.write(main.get_by_label("What changes, and why"), "from the edge")
            hand.send(main.get_by_role("button", name="Import and publish"))
            expect(main.get_by_text("from the edge").first).to_be_visible()
            assert watch.taken() == []
    assert present() == ["pay", "shop"]


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_expose__a_service__is_mended_seen_and_proposed(kind: type[Pointer], sign_in: SignIn) -> None:
    put(cluster("pay"))
    before, root = Change.objects.count(), sign_in(None, "")
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, root, kind, watch) as hand:
            main = hand.page.locator("main")
            hand.page.goto(base + LIST)
            hand.send(main.get_by_role("link", name="Expose a service"))
            expect(main.get_by_role("heading", name="Expose a service")).to_be_visible()
            assert faults(hand) == []
            hand.write(main.get_by_label("Name", exact=True), "pay")
            hand.write(main.get_by_label("Hosts"), "pay.example.org")
            hand.write(main.get_by_label("Addresses", exact=True), "10.0.0.7")
            hand.write(main.get_by_label("Port of a new listener"), "8080")
            hand.send(main.get_by_role("button", name="Show what it comes to"))
            watch.taken()
            expect(main.get_by_role("link", name="The cluster 'pay' is there already.")).to_be_visible()
            assert faults(hand) == []

            hand.write(main.get_by_label("Name", exact=True), "pay-v2")
            hand.write(main.get_by_label("Addresses", exact=True), "10.0.0.7:8080")
            hand.send(main.get_by_role("button", name="Show what it comes to"))
            expect(main.get_by_role("heading", name="Sound; 4 resources would change")).to_be_visible()
            expect(main.get_by_text("No connected client loses anything.")).to_be_visible()
            for word in ("cluster", "endpoint"):
                hand.press(main.get_by_text(f"The manifest of {word} pay-v2"))
            assert faults(hand) == []
            hand.press(main.get_by_text("Propose it as a change set"))
            hand.write(main.get_by_label("Title of a new one"), "Expose pay")
            hand.send(main.get_by_role("button", name="Propose as change set"))
            expect(main.get_by_role("heading", name="Expose pay")).to_be_visible()
            assert watch.taken() == []
    assert Change.objects.count() == before
    assert set(ChangeSetEntry.objects.values_list("type", "name")) == {
        (word, "pay-v2") for word in ("cluster", "endpoint", "listener", "route")
    }
