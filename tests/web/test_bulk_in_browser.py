"""Somebody chooses resources in the list, by pointer, by keys and without scripts, and does one thing with all."""

import pytest
from playwright.sync_api import expect

from controlplane.catalog.models import Change, Resource
from controlplane.database.aliases import READER
from tests.services.undo.hands import put
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.manifests import cluster
from tests.support.page_checks import Watch
from tests.support.web_thread import serving_web
from tests.web.conftest import SignIn
from tests.web.test_change_sets_in_browser import faults, sitting

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
    return list(Resource.objects.filter(deleted=False).order_by("name").values_list("name", flat=True))


@pytest.mark.parametrize("kind", HANDS, ids=lambda each: each.__name__.lower())
def test_resources__chosen_in_the_list__are_labelled_found_again_and_deleted_as_one(
    kind: type[Pointer], sign_in: SignIn, written: str
) -> None:
    put(cluster("shop"), cluster("shop-eu"))
    before, root = Change.objects.count(), sign_in(None, "")
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, root, kind, watch) as hand:
            main = hand.page.locator("main")
            hand.page.goto(base + LIST)
            for name in ("shop", "shop-eu"):
                hand.press(main.get_by_label(f"Choose cluster {name}", exact=True))
            if hand.scripts:
                expect(main.get_by_text("2 chosen")).to_be_visible()
            assert faults(hand) == []
            hand.send(main.get_by_role("button", name="Set labels"))
            expect(main.get_by_role("heading", name="Set labels: 2 resources")).to_be_visible()
            assert faults(hand) == []

            # Enter in a field decides nothing.
            hand.write(main.get_by_label("Labels"), "team=shop")
            main.get_by_label("Labels").press("Enter")
            expect(main.get_by_label("Labels")).to_have_value("team=shop")
            hand.send(main.get_by_role("button", name="Set labels: 2 resources"))
            expect(main.get_by_text("+team=shop").first).to_be_visible()
            assert faults(hand) == []

            # Found again by what they were labelled with, and all of them deleted.
            hand.page.goto(f"{base}{LIST}?label=team%3Dshop")
            expect(main.get_by_label("Choose cluster shop-eu", exact=True)).to_be_visible()
            expect(main.get_by_label("Choose cluster pay", exact=True)).to_have_count(0)
            if hand.scripts:
                hand.press(main.get_by_role("button", name="All on this page"))
            else:
                for name in ("shop", "shop-eu"):
                    hand.press(main.get_by_label(f"Choose cluster {name}", exact=True))
            hand.send(main.get_by_role("button", name="Delete", exact=True))
            expect(main.get_by_text("No connected client loses anything.")).to_be_visible()
            assert faults(hand) == []
            hand.write(main.get_by_label("Why"), "the shop moved")
            hand.send(main.get_by_role("button", name="Delete: 2 resources"))
            expect(main.get_by_text("the shop moved").first).to_be_visible()
    assert present() == [name for name in present() if not name.startswith("shop")]
    assert Change.objects.count() == before + 2


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_list__shift_and_click__chooses_a_range(width: int, theme: str, sign_in: SignIn) -> None:
    names = [f"c-{number}" for number in range(8)]
    put(*(cluster(name) for name in names))
    root = sign_in(None, "")
    with (
        serving_web() as base,
        chromium() as browser,
        sitting(browser, base, root, Pointer, Watch(base)) as hand,
    ):
        hand.page.context.add_cookies([{"name": "theme", "value": theme, "url": base}])
        hand.page.set_viewport_size({"width": width, "height": 900})
        main = hand.page.locator("main")
        hand.page.goto(base + LIST)
        main.get_by_label("Choose cluster c-2", exact=True).click()
        main.get_by_label("Choose cluster c-5", exact=True).click(modifiers=["Shift"])
        expect(main.get_by_text("4 chosen")).to_be_visible()
        main.get_by_label("Choose cluster c-4", exact=True).focus()
        hand.page.keyboard.press("Space")
        expect(main.get_by_text("3 chosen")).to_be_visible()
        hand.send(main.get_by_role("button", name="Set owner"))
        expect(main.get_by_role("heading", name="Set owner: 3 resources")).to_be_visible()
