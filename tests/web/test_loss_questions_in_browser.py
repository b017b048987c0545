"""The question before a loss, and what a form says while somebody fills it in: in a real browser."""

import pytest
from django.test import Client
from playwright.sync_api import Page, Request, expect

from controlplane.access.selectors import rule_list
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults
from tests.support.web_thread import serving_web

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
NARROW = 390


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])
def test_rule__would_take_something__is_foreseen_asked_about_and_kept_once_its_number_is_typed(
    scripts: bool, admin: Client, fleet: Fleet
) -> None:
    with (
        serving_web() as base,
        chromium() as browser,
        browser.new_context(viewport={"width": NARROW, "height": 844}, java_script_enabled=scripts) as context,
    ):
        context.add_cookies([{"name": "sessionid", "value": admin.cookies["sessionid"].value, "url": base}])
        watch = Watch(base)
        watch.attend(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{base}/e/default/access/rule")
        page.get_by_role("radio", name="deny").check()
        previews: list[Request] = []
        page.on("request", lambda asked: previews.append(asked) if "x-parley-part" in asked.headers else None)

        page.get_by_label("Names", exact=True).press_sequentially("pay", delay=30)
        if scripts:
            _is_foreseen(page, previews, watch)
        page.get_by_role("button", name="Add the rule").click()

        number = page.get_by_label("How many clients lose something by it?")
        expect(page.get_by_role("heading", name="3 connected clients lose something by this")).to_be_visible()
        expect(number).to_be_focused()
        expect(number).to_have_value("")
        if scripts:
            assert _faults(page) == []
        number.press_sequentially("2")
        number.press("Enter")
        expect(page.get_by_role("heading", name="There is a problem")).to_be_visible()
        expect(number).to_be_focused()
        if scripts:
            assert _faults(page) == []
        number.press_sequentially("3")
        number.press("Enter")

        page.wait_for_url("**/access#rule-*")
        expect(page.get_by_role("listitem").filter(has_text="may not read whatever is named pay")).to_be_visible()
        assert watch.taken() == []
    assert [row.pattern for row in rule_list(environment_key="default")] == ["pay"]


def _is_foreseen(page: Page, previews: list[Request], watch: Watch) -> None:
    foreseen = page.locator("[data-foreseen]")
    expect(foreseen).to_contain_text("3 of 3 connected clients would lose something")
    expect(foreseen.get_by_role("link", name="node-1")).to_be_visible()
    assert len(previews) == 1  # three letters, and one pause after them
    assert _faults(page) == []
    page.get_by_label("Names", exact=True).fill("nobody-has-it")
    expect(foreseen).to_have_text("No connected client loses anything.")
    page.get_by_label("Names", exact=True).fill("a*b*c*")
    expect(foreseen).to_contain_text("It would be refused.")
    assert watch.taken() == []
    page.route("**/access/rule", lambda route: route.abort())
    page.get_by_label("Names", exact=True).fill("pa*")
    expect(foreseen).to_contain_text("What clients would lose is not known at present")
    page.unroute("**/access/rule")
    watch.taken()  # that there was no answer is said in the console, too
    page.get_by_label("Names", exact=True).fill("pay")
    expect(foreseen).to_contain_text("3 of 3")


def _faults(page: Page) -> list[str]:
    return [*axe_faults(page), *focus_faults(page), *live_faults(page), *width_faults(page, NARROW)]
