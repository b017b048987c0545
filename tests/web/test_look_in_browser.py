"""How environments stand, what differs between snapshots, settings in sections, folded repeats and times in the zone of
the reader, in a real browser: accessible in both widths and themes, and nothing moves while a page comes in.
"""

from collections.abc import Iterator
from typing import Final

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from controlplane.catalog.models import Environment
from controlplane.clients.models import Client as ClientRow
from controlplane.database.aliases import READER
from controlplane.journal.services import audit_record
from tests.services.incidents.fleet import DANA, Fleet, publish
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS
from tests.support.manifests import cluster
from tests.support.page_checks import Watch, axe_faults, focus_faults, width_faults
from tests.support.web_thread import serving_web
from tests.web.test_charts import _SHIFTED as SHIFTED

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
WIDTHS = (1440, 390)
PHONES = (430, 390, 375, 360, 320)
STILL = ("/account", "/e/prod", "/e/default/freezes", "/e/default/compare")  # without "3 seconds ago", which grows

_BAR_AT_THE_END: Final = """() => {
  scrollTo(0, document.documentElement.scrollHeight);
  const top = document.querySelector(".topbar").getBoundingClientRect().top;
  scrollTo(0, 0);
  return top;
}"""


@pytest.fixture
def compared(fleet: Fleet) -> str:
    """The address that compares two snapshots."""
    before = Environment.objects.get(key="default").epoch
    publish(cluster("comes"), cluster("pay", connect_timeout="7s"))
    for _ in range(3):
        audit_record(actor=DANA, verb="thing.done", subject="pay", environment="default")
    return f"/e/default/compare?from={before}&to=live"


def looks(page: Page, base: str, paths: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with these pages in each width and theme, a line for each."""
    for path in paths:
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(base + path)
            moved = float(page.evaluate(SHIFTED))
            if path in STILL and moved >= 0.01:
                yield f"{path} {width}: it moved by {moved}"
            if width == max(WIDTHS) and page.evaluate(_BAR_AT_THE_END) != 0:
                yield f"{path} {width}: the bar above the page is gone at its end"
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                expect(page.locator("html")).to_have_attribute("data-bs-theme", scheme)
                wrong = [*axe_faults(page), *width_faults(page, width)]
                yield from (f"{path} {width} {scheme}: {each}" for each in wrong)
        yield from (f"{path} focus: {each}" for each in focus_faults(page))


def test_pages__in_berlin_wide_narrow_light_and_dark__are_accessible_still_and_in_its_time(
    admin: Client, compared: str
) -> None:
    expect.set_options(timeout=PATIENCE_MS)
    paths = (
        *("/", "/environments", "/e/default", "/e/prod", compared, f"{compared}&open=all", "/e/default/compare"),
        *("/audit?actor=dana", "/account", f"/clients/{ClientRow.objects.first().pk}", "/e/default/freezes"),  # type: ignore[union-attr]
    )
    session = admin.cookies["sessionid"].value
    with serving_web() as base, chromium() as browser, browser.new_context(timezone_id="Europe/Berlin") as context:
        context.add_cookies([{"name": "sessionid", "value": session, "url": base}])
        watch, page = Watch(base), context.new_page()
        watch.attend(context)
        page.goto(base)
        expect(page.get_by_role("link", name="Times in UTC")).to_be_visible()
        wrong = list(looks(page, base, paths))
        expect(page.get_by_role("link", name="Times in Europe/Berlin")).to_be_visible()
        page.goto(base + compared)
        line = page.locator(".compare-list details", has_text="pay")
        line.locator("summary").click()
        expect(line.locator(".diff")).to_contain_text("connect_timeout: 7s")
        wrong += watch.taken()

    assert wrong == []


def test_top_bar__on_phones__nothing_of_it_lies_over_another_part(admin: Client) -> None:
    over = """() => {
      const box = (e) => {
        const within = document.createRange();
        within.selectNodeContents(e);
        return within.getBoundingClientRect();
      };
      const parts = [...document.querySelectorAll(".topbar > *")].filter((e) => e.checkVisibility());
      const boxes = parts.map((e) => (e.matches(".brand") ? box(e) : e.getBoundingClientRect()));
      return boxes.some((a, i) => boxes.slice(i + 1).some((b) =>
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
    }"""
    session = admin.cookies["sessionid"].value
    with serving_web() as base, chromium() as browser, browser.new_context() as context:
        context.add_cookies([{"name": "sessionid", "value": session, "url": base}])
        page = context.new_page()
        page.goto(base)
        expect(page.get_by_role("button", name="Command palette")).to_be_visible()
        overlapping = []
        for width in PHONES:
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate(over):
                overlapping.append(width)

    assert overlapping == []
