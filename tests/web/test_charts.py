"""Pictures on pages: what they say and hold without scripts, and what a browser makes of them."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from django.db import connection
from django.test import Client
from playwright.sync_api import Page, expect

from controlplane.accounts.principal import Role
from controlplane.catalog.models import Environment
from controlplane.clients.models import Client as Row
from controlplane.clients.models import HoldingMove
from controlplane.console import charts
from controlplane.database.aliases import READER
from controlplane.history.services import fleet_sample_add, tallies_add
from controlplane.history.values import FleetStates, Tallied, What
from controlplane.incidents.models import Incident
from controlplane.snapshots.models import SnapshotRow
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.hands import PATIENCE_MS
from tests.support.manifests import cluster
from tests.support.page_checks import Watch, axe_faults, focus_faults, live_faults, width_faults, zoom_faults
from tests.support.web_thread import serving_web
from tests.web.conftest import SignIn, page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

NOW: Final = datetime(2026, 7, 1, 12, 0, 30, tzinfo=UTC)
MINUTES: Final = 170
# Clients that nobody counted: the worker was away.
AWAY: Final = range(60, 80)


@pytest.fixture
def past(environments: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly three hours of `default`: a storm of NACKs an hour ago, and a worker that was away for a while. It stays
    the same minute.
    """
    now, pk = NOW, Environment.objects.get(key="default").pk
    monkeypatch.setattr(charts, "database_now", lambda: now)
    with connection.cursor() as cursor:
        for minute in range(1, MINUTES):
            storm = 40 if 50 <= minute < 56 else 0
            tallies = [
                Tallied("default", What.NACKS, "cluster", "envoy 1.40", storm, 0.0),
                Tallied("default", What.NACKS, "listener", "grpc-go 1.76", storm // 4, 0.0),
                Tallied("default", What.ERRORS, "cluster", "NOT_FOUND", minute % 7, 0.0),
            ]
            tallies_add(cursor, [each for each in tallies if each.times], now - timedelta(minutes=minute))
            if minute not in AWAY:
                states = FleetStates(nacked=storm, acked=200 - storm, disconnected=12)
                fleet_sample_add(states={pk: states}, now=now - timedelta(minutes=minute))


def test_change__its_page__draws_how_it_spread_and_has_it_as_a_table(admin: Client) -> None:
    clients = Fleet(3)
    change = publish(cluster("shop"))
    clients.accept(held("shop", 1), who=slice(0, 2))
    HoldingMove.objects.update(at=SnapshotRow.objects.latest("at").at + timedelta(seconds=2.25))

    text = page(admin, f"/changes/{change}")

    assert "2 of 3 clients took it: half after 2.25 s, 99 % not yet" in text
    assert "by seconds since it was published" in text


def test_change__nobody_was_connected__has_no_picture(admin: Client) -> None:
    change = publish(cluster("shop"))

    assert "How the change spread" not in page(admin, f"/changes/{change}")


def test_pages__of_a_refusal__say_how_often_and_when(admin: Client, fleet: Fleet) -> None:
    incident, client = Incident.objects.get(), Row.objects.get(node_id="node-1")
    steady = Row.objects.get(node_id="node-2")
    name = "/e/default/resource?type=cluster&name=pay&tab=incidents"

    for address in (f"/clients/{client.pk}", f"/incidents/{incident.public_id}", name):
        shown = page(admin, address)

        assert "1 NACK from" in shown
        assert "there may have been more" in shown
        assert '<td class="number">1</td>' in shown
    assert "No NACK from" in page(admin, f"/clients/{steady.pk}")
    assert "of the time" not in page(admin, f"/clients/{steady.pk}")


def test_home__of_somebody_who_may_see_another_environment_only__tells_nothing_of_this_one(
    sign_in: SignIn, past: None
) -> None:
    stranger, viewer = sign_in(Role.VIEWER, "prod"), sign_in(Role.VIEWER, "default")

    assert "300 NACKs from" in page(viewer, "/?part=charts")
    assert "300 NACKs from" in page(viewer, "/e/default/over-time")
    assert "NACKs from" not in page(stranger, "/")
    assert "Clients were not counted" in page(stranger, "/?part=charts")
    page(stranger, "/e/default/over-time", status=404)


@pytest.mark.skipif(not CHROMIUM, reason=MISSING)
@pytest.mark.xdist_group("browser")
def test_over_time__in_a_browser__is_drawn_walked_by_keys_and_a_table_without_scripts(
    sign_in: SignIn, past: None
) -> None:
    expect.set_options(timeout=PATIENCE_MS)
    cookie = {"name": "sessionid", "value": sign_in(None, "default").cookies["sessionid"].value}
    with serving_web() as base, chromium() as browser:
        address, cookies = f"{base}/e/default/over-time", [{**cookie, "url": base}]
        with browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce") as context:
            context.add_cookies(cookies)  # type: ignore[arg-type]  # a dict as playwright takes it
            watch, shown = Watch(base), context.new_page()
            watch.attend(context)
            shown.goto(address)
            walked(shown)
            moved = float(shown.evaluate(_SHIFTED))
            faults = [*axe_faults(shown), *live_faults(shown), *zoom_faults(shown), *width_faults(shown, 390)]
            faults += focus_faults(shown)
            shown.emulate_media(color_scheme="dark", reduced_motion="reduce")
            expect(shown.locator("html")).to_have_attribute("data-bs-theme", "dark")
            faults += [*axe_faults(shown, contrast_only=True), *watch.taken()]
        with browser.new_context(java_script_enabled=False) as context:
            context.add_cookies(cookies)  # type: ignore[arg-type]
            plain = context.new_page()
            plain.goto(address)
            tables(plain)

    assert faults == []
    assert moved < 0.01  # of a layout shift nobody notices; 0.1 is called good


# How far the page moved while the pictures came in.
_SHIFTED: Final = """() => new Promise((resolve) => {
  new PerformanceObserver((list) => resolve(list.getEntries().reduce((sum, each) => sum + each.value, 0)))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => resolve(0), 200);
})"""
# Whether something is drawn on each canvas.
_DRAWN: Final = """() => [...document.querySelectorAll("figure[data-chart] canvas")].map((each) =>
  new Set(new Uint32Array(each.getContext("2d").getImageData(0, 0, each.width, each.height).data.buffer)).size > 4)"""


def walked(shown: Page) -> None:
    """The pictures are drawn, and the arrow keys say what stands where."""
    pictures = shown.locator("figure[data-chart]")
    expect(pictures.locator("canvas")).to_have_count(4)
    assert shown.evaluate(_DRAWN) == [True] * 4
    nacks = shown.get_by_role("application", name="NACKs a minute, by type")
    here = pictures.nth(1).get_by_role("status")
    nacks.focus()
    nacks.press("End")
    expect(here).to_have_text("11:59: cluster 0, listener 0")
    for _ in range(49):
        nacks.press("ArrowLeft")
    expect(here).to_have_text("11:10: cluster 40, listener 10")
    clients = shown.get_by_role("application", name="Clients by state")
    clients.focus()
    clients.press("End")
    for _ in range(6):
        clients.press("PageUp")
    expect(pictures.first.get_by_role("status")).to_have_text(
        "10:59: nacked not known, acked not known, disconnected not known"
    )


def tables(plain: Page) -> None:
    """Without scripts: no empty box, and every number in a table that opens."""
    expect(plain.locator(".chart-plot").first).to_be_hidden()
    plain.get_by_text("The same as a table").nth(1).click()
    expect(
        plain.get_by_role("region", name="NACKs a minute, by type, as a table").get_by_text("40", exact=True)
    ).to_have_count(6)
