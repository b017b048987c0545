"""The pages of route cases in a real browser: wide and narrow, light and dark, and a case that is kept by hand."""

import pytest
from django.test import Client
from playwright.sync_api import expect

from controlplane.database.aliases import READER
from controlplane.routecases.models import RouteCase
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS
from tests.support.web_thread import serving_web
from tests.web.test_every_page import faults_of
from tests.web.test_route_cases import CASES, kept, shop  # noqa: F401 - a fixture

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
]


def test_pages__in_a_browser__are_without_faults_and_keep_a_case(shop: Client) -> None:  # noqa: F811
    one = kept(shop)
    kept(shop, name="elsewhere", clusters="other", note="why")
    session = shop.cookies["sessionid"].value
    link = f"{CASES}/new?authority=shop.example&path=/pay/{'x' * 300}&scheme=http&headers=x-a:%201"
    with serving_web() as base, chromium() as browser, browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([{"name": "sessionid", "value": session, "url": base}])
        page = context.new_page()
        found = {path: list(faults_of(page, base + path)) for path in (CASES, f"{CASES}/{one.pk}", link)}
        assert not any(found.values()), found

        page.get_by_label("Name", exact=True).fill("by hand")
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Keep the case").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("by hand")
    assert RouteCase.objects.filter(name="by hand", holds=True).exists()
