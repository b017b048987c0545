"""The walk that once emptied a fleet by one click under a green page, with a real Envoy and a real browser (issue 23,
"Done when" 1): "all clients, deny, *" ends before the loss; done nevertheless, it is an incident, and one click back.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import CHROMIUM, MISSING, chromium, sign_in
from tests.support.envoy import envoy
from tests.support.figures import measured, seconds
from tests.support.manifests import cluster, listener, route
from tests.support.ports import free_ports
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason=MISSING),
    pytest.mark.timeout(180),
]

ENVIRONMENT: Final = "default"
LISTENERS: Final = "listener_manager.total_listeners_active"
# Issue 23: a loss is told within a minute.
TOLD_S: Final = 60.0


@pytest.fixture
def parley(tmp_path: Path) -> Iterator[Parley]:
    """A site of its own, with a listener, its route and its cluster."""
    (port,) = free_ports(1)
    with running_up(tmp_path / "home") as running:
        running.apply_and_publish(listener("web", "web-routes", port), route("web-routes", "back"), cluster("back"))
        yield running


@pytest.fixture
def page(parley: Parley) -> Iterator[Page]:
    with chromium() as browser, browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        sign_in(page, f"http://127.0.0.1:{parley.web_port}", (parley.home / "admin.password").read_text().strip())
        yield page


def test_walk__everybody_is_denied_everything__ends_before_the_loss_or_in_an_incident_and_one_click_back(
    parley: Parley, page: Page, tmp_path: Path
) -> None:
    base = f"http://127.0.0.1:{parley.web_port}"
    with envoy(tmp_path, ads_port=parley.ads_port, node_id="walk-1", api_type="DELTA_GRPC") as proxy:
        eventually(lambda: proxy.stat(LISTENERS), lambda active: active == 1, within_s=30)
        # What clients have is written down up to 2 s after they have it.
        eventually(lambda: _foreseen(parley), lambda clients: clients == 1, within_s=10)
        page.goto(f"{base}/e/{ENVIRONMENT}/access/rule")
        page.get_by_role("radio", name="deny").check()
        page.get_by_role("radio", name="before all other rules").check()
        page.get_by_label("Names", exact=True).press_sequentially("*")
        expect(page.get_by_text("1 of 1 connected client would lose something")).to_be_visible()
        page.get_by_role("button", name="Add the rule").click()

        # It ends here, unless somebody types the number.
        expect(page.get_by_role("heading", name="1 connected client loses something by this")).to_be_visible()
        expect(page.get_by_role("link", name="walk-1")).to_be_visible()
        assert parley.call("GET", f"/environments/{ENVIRONMENT}/rules").body["count"] == 0
        assert proxy.stat(LISTENERS) == 1

        page.get_by_label("How many clients lose something by it?").fill("1")
        page.get_by_role("button", name="Do it nevertheless").click()
        eventually(lambda: proxy.stat(LISTENERS), lambda active: active == 0, within_s=30)
        told = seconds(lambda: eventually(lambda: _incidents(parley, "open"), within_s=TOLD_S))
        (incident,) = _incidents(parley, "open")
        page.goto(base)
        expect(page.get_by_role("row", name=re.compile(r"1 of 1 connected client lost .* of admin"))).to_be_visible()
        expect(page.get_by_text("all published")).to_have_count(0)
        assert "lost" in parley.call("GET", f"/environments/{ENVIRONMENT}").body["status"]
        eventually(lambda: _messages(page, base), lambda text: "1 of 1 connected client lost" in text, within_s=TOLD_S)
        page.goto(f"{base}/changes/{incident['change']}")
        expect(page.get_by_text("1 of 1 connected client lost")).to_be_visible()

        page.get_by_role("link", name="Take it back").click()
        page.get_by_label("Reason").fill("not meant")
        page.get_by_role("button", name="Take back").click()
        back = seconds(lambda: eventually(lambda: proxy.stat(LISTENERS), lambda active: active == 1, within_s=30))
        eventually(lambda: _incidents(parley, "open"), lambda found: not found, within_s=TOLD_S)

    measured(told_s=told, back_s=back)


def _incidents(parley: Parley, state: str) -> list[dict[str, str]]:
    path = f"/incidents?environment={ENVIRONMENT}&state={state}&cause=loss"
    found: list[dict[str, str]] = parley.call("GET", path).body["results"]
    return found


def _foreseen(parley: Parley) -> int:
    everything = {"effect": "deny", "pattern": "*"}
    answer = parley.call("POST", f"/environments/{ENVIRONMENT}/rules?dry_run=true", everything)
    clients: int = answer.body["loss"]["clients"]
    return clients


def _messages(page: Page, base: str) -> str:
    page.goto(f"{base}/messages")
    return page.get_by_role("main").inner_text()
