"""The box that suggests and the palette in a real browser: by pointer, with keys alone, and without scripts."""

import re

import pytest
from django.test import Client
from playwright.sync_api import Locator, Page, expect

from controlplane.catalog.models import Change, Quarantine
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from tests.services.incidents.fleet import Fleet
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS, Keyboard, Plain, Pointer
from tests.support.page_checks import Watch, axe_faults, live_faults, width_faults
from tests.support.web_thread import serving_web
from tests.web.test_change_sets_in_browser import sitting

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)


def palette(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Command palette")


def chosen(page: Page) -> Locator:
    return page.locator(".options").get_by_role("option", selected=True)


def test_palette__with_keys_alone__finds_chooses_and_gives_the_focus_back(admin: Client, fleet: Fleet) -> None:
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, admin, Keyboard, watch) as hand:
            page = hand.page
            page.goto(f"{base}/e/default/resources")
            page.get_by_label("Name contains").focus()
            page.keyboard.press("Control+k")
            box = palette(page).get_by_role("combobox")
            expect(box).to_be_focused()
            expect(chosen(page)).to_contain_text("go to PAGE")
            page.keyboard.press("Escape")
            expect(palette(page)).to_be_hidden()
            expect(page.get_by_label("Name contains")).to_be_focused()

            page.keyboard.press("Control+k")
            page.keyboard.type("pay")
            expect(chosen(page)).to_contain_text("pay")
            expect(box).to_have_attribute("aria-activedescendant", str(chosen(page).get_attribute("id")))
            expect(palette(page).get_by_role("status")).to_contain_text("suggestions")
            page.keyboard.press("ArrowDown")
            expect(chosen(page)).to_have_count(1)
            page.keyboard.press("ArrowUp")
            page.keyboard.press("Enter")
            page.wait_for_url("**/e/default/resource?type=cluster&name=pay")

            page.keyboard.press("Control+k")
            page.keyboard.type("quar")
            expect(chosen(page)).to_contain_text("quarantine NAME")
            page.keyboard.press("Enter")
            expect(box).to_have_value("quarantine ")
            page.keyboard.type("pay")
            expect(chosen(page)).to_contain_text("Quarantine cluster pay r2")
            page.keyboard.press("Enter")
            page.wait_for_url(re.compile(r"/incidents/[^/]+#reason-q"))
            expect(page.get_by_role("button", name="Quarantine r2")).to_be_visible()
        assert watch.taken() == []
    assert not Quarantine.objects.exists()


@pytest.mark.parametrize("kind", [Pointer, Keyboard, Plain], ids=lambda each: each.__name__.lower())
def test_walk__from_a_command_to_a_quarantine(kind: type[Pointer], admin: Client, fleet: Fleet) -> None:
    incident = Incident.objects.get()
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, admin, kind, watch) as hand:
            page = hand.page
            page.goto(f"{base}/e/default/clients")
            if kind is Pointer:
                page.get_by_role("button", name="Command palette").click()
                palette(page).get_by_role("combobox").fill("quarantine pay")
                with page.expect_navigation():
                    palette(page).get_by_role("option", name="Quarantine cluster pay r2").click()
            else:
                hand.search("quarantine pay")
                hand.send(page.locator("main").get_by_role("link", name="Quarantine cluster pay r2"))
            expect(page).to_have_url(f"{base}/incidents/{incident.public_id}#reason-q")
            main = page.locator("main")
            hand.write(main.locator("#reason-q"), "Envoy does not take it")
            hand.send(main.get_by_role("button", name="Quarantine r2"))
            expect(main.get_by_text("is out of service with the next build")).to_be_visible()
        assert watch.taken() == []
    assert Quarantine.objects.get().reason == "Envoy does not take it"


def test_box__while_somebody_types__suggests_and_enter_alone_still_searches(admin: Client, fleet: Fleet) -> None:
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with sitting(browser, base, admin, Pointer, watch) as hand:
            page = hand.page
            page.goto(f"{base}/e/default/clients")
            box = page.get_by_role("combobox", name="Search")
            box.press_sequentially("node")
            listed = page.locator("#search-options")
            expect(listed.get_by_role("option", name=re.compile("node-2"))).to_be_visible()
            expect(box).to_have_attribute("aria-expanded", "true")
            expect(chosen(page)).to_have_count(0)
            box.press("Escape")
            expect(listed).to_be_hidden()
            expect(box).to_have_attribute("aria-expanded", "false")
            box.press("ArrowDown")
            expect(listed.get_by_role("option").first).to_be_visible()
            box.press("ArrowDown")
            expect(chosen(page)).to_have_count(1)
            box.press("Escape")
            with page.expect_navigation():
                box.press("Enter")
            expect(page.get_by_role("heading", name="Clients")).to_be_visible()
        assert watch.taken() == []


def test_box__newer_words_while_an_answer_is_on_its_way__show_what_was_typed_last(admin: Client, fleet: Fleet) -> None:
    with serving_web() as base, chromium() as browser, sitting(browser, base, admin, Pointer, Watch(base)) as hand:
        page = hand.page
        page.goto(f"{base}/e/default/clients")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "part=options" in request.url else None)
        page.get_by_role("combobox", name="Search").press_sequentially("node-2", delay=20)
        expect(page.locator("#search-options [data-for]")).to_have_attribute("data-for", "node-2")
        assert len(asked) < len("node-2")  # it waits for a pause


def test_box__server_does_not_answer__says_so_and_searches(admin: Client, fleet: Fleet) -> None:
    with serving_web() as base, chromium() as browser, sitting(browser, base, admin, Pointer, Watch(base)) as hand:
        page = hand.page
        page.goto(f"{base}/e/default/clients")
        page.route("**/search?part=options*", lambda route: route.fulfill(status=429, body="slow"))
        page.get_by_role("button", name="Command palette").click()
        expect(palette(page).get_by_text("There are no suggestions at present")).to_have_count(2)
        palette(page).get_by_role("combobox").fill("pay")
        with page.expect_navigation():
            palette(page).get_by_role("combobox").press("Enter")
        expect(page.get_by_role("heading", name="Resources")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages__with_list_or_palette_open__have_no_fault_at_any_width(admin: Client, fleet: Fleet, theme: str) -> None:
    found: list[str] = []
    change = Change.objects.latest("pk").generation
    with serving_web() as base, chromium() as browser:
        watch = Watch(base)
        with browser.new_context(color_scheme=theme) as context:  # type: ignore[arg-type]  # one of its words
            context.set_default_timeout(PATIENCE_MS)
            context.add_cookies([{"name": "sessionid", "value": admin.cookies["sessionid"].value, "url": base}])
            watch.attend(context)
            page = context.new_page()
            for width in (1440, 390):
                page.set_viewport_size({"width": width, "height": 844})
                page.goto(f"{base}/search?q=pay")
                found += [f"search at {width}: {each}" for each in (*axe_faults(page), *live_faults(page))]
                page.locator("#search").fill("node")
                expect(page.locator("#search-options").get_by_role("option").first).to_be_visible()
                found += [f"list at {width}: {each}" for each in (*width_faults(page, width), *axe_faults(page))]
                for text in ("", "pay", f"undo {change}", "release pay", "nothing-is-called-so"):
                    page.keyboard.press("Control+k")
                    palette(page).get_by_role("combobox").fill(text)
                    expect(page.locator("#palette-options [data-for]")).to_have_attribute("data-for", text)
                    found += [f"palette '{text}' at {width}: {each}" for each in axe_faults(page)]
                    found += [f"palette '{text}' at {width}: {each}" for each in width_faults(page, width)]
                    page.keyboard.press("Escape")
                page.goto(f"{base}/search?q=%3F")
                found += [f"commands at {width}: {each}" for each in (*width_faults(page, width), *axe_faults(page))]
        assert found == []
        assert watch.taken() == []
