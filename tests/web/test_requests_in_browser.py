"""The page that says where a request goes in a real browser: accessible, wide and narrow, light and dark."""

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from controlplane.database.aliases import READER
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults, zoom_faults
from tests.support.web_thread import serving_web
from tests.web.test_requests import LINE, PAGE, published

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]
expect.set_options(timeout=PATIENCE_MS)
__all__ = ["published"]  # the fixture
WIDE, NARROW = 1440, 390
LONG = "x" * 300


def faults_of(page: Page) -> list[str]:
    found: list[str] = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width in (WIDE, NARROW):
            page.set_viewport_size({"width": width, "height": 900})
            for field in ("#request-scheme", "#request-method"):
                expect(page.locator(field)).to_be_visible()
            found += [*axe_faults(page), *width_faults(page, width)]
    page.set_viewport_size({"width": WIDE, "height": 900})
    return [*found, *focus_faults(page), *live_faults(page), *zoom_faults(page)]


@pytest.mark.parametrize(
    ("address", "line", "headline"),
    [
        ("", "", "Where does this request go?"),
        ("?authority=shop.example&path=/pay&without=authorization", "", "It goes to cluster pay"),
        (f"?authority={LONG}.example&path=/{LONG}&headers=x-a:{LONG}", "", "404: nothing takes it"),
        ("", LINE, "404: nothing takes it"),
        ("", "no line", "There is a problem"),
    ],
    ids=["form", "answer", "long", "line", "no line"],
)
def test_page__as_it_may_look__is_accessible_at_every_width_and_in_both_themes(
    admin: Client, published: None, address: str, line: str, headline: str
) -> None:
    with serving_web() as base, chromium() as browser, browser.new_context() as context:
        watch = Watch(base)
        watch.attend(context)
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([{"name": "sessionid", "value": admin.cookies["sessionid"].value, "url": base}])
        page = context.new_page()
        page.goto(f"{base}{PAGE}{address}")
        if line:
            page.get_by_label("The line").fill(line)
            page.get_by_role("button", name="Read the line").click()
        expect(page.locator("main").get_by_text(headline).first).to_be_visible()

        watch.taken()  # that a line is none is an answer, which a browser reports as an error, too
        assert faults_of(page) == []
        assert watch.taken() == []
