"""The page of the live tail: its filter, and in a browser what it shows, when it is paused and when it is cut off."""

import json
from collections.abc import Iterator
from typing import Literal

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.facts import content, rejected, respond, stream
from tests.support.page_checks import axe_faults, width_faults
from tests.support.tails import Telling, telling
from tests.support.web_thread import serving_web
from tests.web.conftest import HOSTILE, page

pytestmark = pytest.mark.django_db(transaction=True)


def test_page__filter_in_its_address__asks_the_api_for_the_same_and_for_nothing_else(admin: Client) -> None:
    text = page(admin, "/e/default/tail?client=n%26x&type=cluster&kind=nacked&kind=pondered&name=%3Cimg")
    strange = page(admin, "/e/default/tail?type=colour&kind=pondered")

    api = "/api/v1/environments/default/tail"
    assert f'data-source="{api}?client=n%26x&amp;type=cluster&amp;name=%3Cimg&amp;kind=nacked"' in text
    assert f'data-source="{api}"' in strange
    assert "xdsctl tail -e default" in strange


@pytest.fixture
def told() -> Iterator[Telling]:
    with telling() as found:
        yield found


@pytest.fixture
def live(admin: Client, told: Telling) -> Iterator[Page]:
    """The page, in a browser of somebody signed in, which is told what happens."""
    with serving_web() as base, chromium() as browser, browser.new_context() as context:
        context.add_cookies([{"name": "sessionid", "value": admin.cookies["sessionid"].value, "url": base}])
        shown = context.new_page()
        shown.goto(f"{base}/e/default/tail")
        expect(shown.locator("#tail-state")).to_have_text("Live: 1 ADS process tells.")
        told.watched("default")
        yield shown


@pytest.mark.nightly
@pytest.mark.skipif(not CHROMIUM, reason=MISSING)
def test_page__in_a_browser__shows_the_newest_first_waits_while_paused_and_says_when_it_is_cut_off(
    live: Page, told: Telling
) -> None:
    events, one = live.locator("#tail-list > li"), stream(1, node_id=HOSTILE)
    button = live.get_by_role("button", name="Pause")
    told.facts.opened(one)
    told.facts.learnt(one, rejected(respond(content("pay")), message=f"no: {HOSTILE}"))
    expect(events).to_have_count(2)
    expect(events.first).to_contain_text("pay")
    expect(events.first).to_contain_text("<img src=x onerror=alert(1)>")
    assert live.locator("#tail-list img").count() == 0

    button.press("Enter")
    told.facts.closed(one, "bye")
    expect(live.locator("#tail-state")).to_contain_text("Paused: 1 waiting.")
    expect(events).to_have_count(2)
    live.get_by_role("button", name="Go on").press("Enter")
    expect(events.first).to_contain_text("bye")

    looks: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1440, "light"), (390, "dark"))
    for width, theme in looks:
        live.set_viewport_size({"width": width, "height": 900})
        live.emulate_media(color_scheme=theme, reduced_motion="reduce")
        expect(live.locator("html")).to_have_attribute("data-bs-theme", theme)
        assert [*axe_faults(live), *width_faults(live, width)] == []

    told.broker.kill()
    expect(live.locator("#tail-state")).to_contain_text("The broker (Redis) does not answer")


@pytest.mark.nightly
@pytest.mark.skipif(not CHROMIUM, reason=MISSING)
def test_page__a_thousand_events_at_once__holds_some_hundreds_and_says_how_many_more(live: Page) -> None:
    about = {"kind": "sent", "at": "2026-01-01T00:00:00Z", "client": "c", "type": "", "version": "", "text": ""}
    lists: dict[str, object] = {"names": [], "name_count": 0, "removed": [], "errors": [], "wildcard": False}
    many = [json.dumps({**about, **lists, "node_id": f"n{number}"}) for number in range(1_000)]
    body = "".join(f"event: sent\nid: 1\ndata: {each}\n\n" for each in many)
    live.route("**/api/v1/**", lambda route: route.fulfill(body=body, content_type="text/event-stream"), times=1)

    live.reload()

    expect(live.locator("#tail-list > li").first).to_contain_text("n999")
    expect(live.get_by_text("700 more were not shown")).to_have_count(0)
    assert live.locator("#tail-list > li").count() == 300
