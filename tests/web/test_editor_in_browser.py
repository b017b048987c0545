"""The editor in a real browser: names and the form by the pointer, by keys, and without scripts."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import CHROMIUM, MISSING, chromium, sign_in
from tests.support.manifests import cluster
from tests.support.page_checks import axe_faults
from tests.support.stack import Parley, running_up

pytestmark = [pytest.mark.skipif(not CHROMIUM, reason=MISSING), pytest.mark.xdist_group("browser")]

PATIENCE_MS = 30_000  # a bound for a machine that is busy, not a time anything takes
expect.set_options(timeout=PATIENCE_MS)
ROUTE = """\
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: {}
virtual_hosts:
- name: all
  domains: ["*"]  # everybody
  routes:
  - match: {{prefix: /}}
    route:
      cluster: """


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    with running_up(tmp_path_factory.mktemp("editor") / "home") as running:
        for name in ("billing", "billing-2", "shop"):
            running.apply(cluster(name))
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def opened(browser: Browser, parley: Parley, *, scripts: bool = True, width: int = 1440) -> Page:
    context = browser.new_context(java_script_enabled=scripts, viewport={"width": width, "height": 1000})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    base = f"http://127.0.0.1:{parley.web_port}"
    sign_in(page, base, (parley.home / "admin.password").read_text().strip())
    page.goto(f"{base}/e/default/resources/new?type=route")
    return page


def write(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Manifest, YAML or JSON").focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def text_of(page: Page) -> str:
    return str(page.evaluate("document.getElementById('text').value"))


def test_editor__by_keys__completes_a_name_fills_in_the_form_and_saves(browser: Browser, parley: Parley) -> None:
    page = opened(browser, parley)
    write(page, ROUTE.format("walked"))

    page.keyboard.type("bil")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    assert text_of(page).endswith("cluster: billing-2")
    page.get_by_text("Form for the common fields").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("To cluster")).to_have_value("billing-2")
    timeout = page.get_by_label("Timeout")
    timeout.focus()
    page.keyboard.type("3s")
    page.keyboard.press("Tab")

    expect(page.locator("#text")).to_have_value(ROUTE.format("walked") + "billing-2\n      timeout: '3s'")
    expect(page.locator("#verdict").get_by_text("Sound; saving creates route")).to_be_visible()
    page.get_by_label("What changes, and why").focus()
    page.keyboard.type("by keys")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Save and publish")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/changes/*")


def test_editor__by_the_pointer__writes_a_listed_name_and_shows_text_and_form_alike(
    browser: Browser, parley: Parley
) -> None:
    page = opened(browser, parley)
    write(page, ROUTE.format("by-pointer"))
    page.get_by_text("Names you can refer to").click()
    page.get_by_label("A part of the name").fill("sho")
    page.get_by_role("button", name="List names").click()
    page.get_by_role("button", name="shop", exact=True).click()
    expect(page.locator("#text")).to_have_value(ROUTE.format("by-pointer") + "shop")

    page.get_by_text("Form for the common fields").click()
    expect(page.get_by_label("To cluster")).to_have_value("shop")
    page.get_by_label("Domains").fill("pay.example")
    page.get_by_role("button", name="Add a route").click()
    expect(page.get_by_role("heading", name="Route 1.2")).to_be_visible()
    text = text_of(page)
    assert 'domains: ["pay.example"]  # everybody' in text
    # What is changed in the text is in the form.
    write(page, text.replace("cluster: shop", "cluster: billing"))
    expect(page.get_by_label("To cluster").first).to_have_value("billing")
    page.get_by_role("button", name="Remove route 1.2").click()
    expect(page.get_by_role("heading", name="Route 1.2")).to_have_count(0)
    page.get_by_label("Timeout").fill("soon")
    page.get_by_label("Redirect to host").click()
    expect(page.get_by_label("Timeout")).to_have_attribute("aria-invalid", "true")
    assert list(axe_faults(page)) == []


def test_editor__without_scripts__lists_names_and_applies_the_form(browser: Browser, parley: Parley) -> None:
    page = opened(browser, parley, scripts=False, width=390)
    page.get_by_label("Manifest").fill(ROUTE.format("plain") + "shop\n")
    page.get_by_text("Names you can refer to").click()
    page.get_by_role("button", name="List names").click()
    expect(page.locator("#names-found").get_by_text("billing-2")).to_be_visible()
    page.get_by_text("Form for the common fields").click()
    page.get_by_label("To cluster").fill("billing")
    page.get_by_role("button", name="Apply to the text").click()

    expect(page.get_by_label("Manifest")).to_have_value(ROUTE.format("plain") + "billing\n")
    expect(page.get_by_label("To cluster")).to_have_value("billing")
    page.get_by_role("button", name="Save and publish").click()
    page.wait_for_url("**/changes/*")
