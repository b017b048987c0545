"""Times in the zone of whoever looks: which zone that is, what pages show, and what forms mean."""

import re
from collections.abc import Mapping

import pytest
from django.test import Client

from controlplane.catalog.models import Environment
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from tests.services.incidents.fleet import publish
from tests.support.manifests import cluster
from tests.web.conftest import page

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]
BERLIN: Mapping[str, str] = {"browser_zone": "Europe/Berlin"}


def looking(browser: Client, cookies: Mapping[str, str]) -> Client:
    for name, value in cookies.items():
        browser.cookies[name] = value
    return browser


@pytest.mark.parametrize(
    ("cookies", "zone"),
    [
        ({}, "UTC"),
        (BERLIN, "Europe/Berlin"),
        ({**BERLIN, "zone": "Asia/Kolkata"}, "Asia/Kolkata"),
        ({**BERLIN, "zone": ""}, "Europe/Berlin"),
        ({"browser_zone": "../../etc/passwd", "zone": "<b>"}, "UTC"),
    ],
)
def test_zone__chosen_then_of_the_browser_then_utc__is_said_on_each_page(
    admin: Client, cookies: Mapping[str, str], zone: str
) -> None:
    assert f">Times in {zone}</a>" in page(looking(admin, cookies), "/environments")


def test_time__in_a_zone__is_shown_there_and_in_utc_on_hover_and_to_programs(admin: Client) -> None:
    publish(cluster("pay"))
    SnapshotRow.objects.update(at="2026-07-01T10:30:00Z")

    shown = page(looking(admin, BERLIN), "/e/default/snapshots/1")
    listed = admin.get("/e/default/snapshots?file=csv").content.decode()

    assert re.search(
        r'<time datetime="2026-07-01T10:30:00Z" title="2026-07-01 10:30:00 UTC">2026-07-01 12:30:00 CEST'
        r'<span class="visually-hidden"> \(2026-07-01 10:30:00 UTC\)</span></time>',
        shown,
    )
    assert 'title="2026-07-01 12:30:00 CEST, 2026-07-01 10:30:00 UTC" data-relative>' in shown
    assert "2026-07-01T10:30:00Z" in listed


def test_list__times_typed_in_a_zone__are_meant_there_in_whosever_browser(admin: Client) -> None:
    publish(cluster("pay"))
    SnapshotRow.objects.update(at="2026-07-01T10:30:00Z")
    asked = "/e/default/snapshots?since=2026-07-01+12:20&until=2026-07-01+12:40"

    form = page(looking(admin, BERLIN), "/e/default/snapshots")
    there, utc = page(admin, f"{asked}&times_in=Europe/Berlin"), page(admin, asked)
    wrong = admin.get("/e/default/snapshots?since=2026-10-25+02:30&times_in=Europe/Berlin")

    assert '<input type="hidden" name="times_in" value="Europe/Berlin">' in form
    assert ">Since, Europe/Berlin</label>" in form
    assert "served now" in there
    assert "No snapshot fits these filters" in utc
    assert ">Since, UTC</label>" in utc
    assert wrong.status_code == 422
    assert "show 02:30 twice" in wrong.content.decode()


def test_freeze__typed_in_a_zone__is_of_that_time_and_one_that_never_is_loses_nothing(admin: Client) -> None:
    looking(admin, BERLIN)
    typed = {"action": "once", "until": "2027-01-02T00:00", "reason": "year's end", "times_in": "Europe/Berlin"}

    form = page(admin, "/e/default/freezes")
    wrong = admin.post("/e/default/freezes", {**typed, "from": "2026-03-29T02:30"})
    answer = admin.post("/e/default/freezes", {**typed, "from": "2026-12-31T00:00"})

    assert "From, in Europe/Berlin" in form
    assert wrong.status_code == 422
    assert "never show 02:30" in wrong.content.decode()
    assert 'value="2026-03-29T02:30"' in wrong.content.decode()
    assert answer.status_code == 302
    (stored,) = Environment.objects.get(key="default").freezes
    assert (stored["from"], stored["until"]) == ("2026-12-30T23:00:00Z", "2027-01-01T23:00:00Z")
    assert "2026-12-31 00:00 CET" in page(admin, "/e/default/freezes")


def test_account__zone_is_chosen__is_kept_and_one_that_there_is_not_is_asked_for_again(admin: Client) -> None:
    wrong = admin.post("/zone", {"zone": "Europe/Berlyn"}, follow=True)
    kept = admin.post("/zone", {"zone": "Asia/Kolkata"}, follow=True)
    hidden = kept.client.cookies["zone"]
    back = admin.post("/zone", {"zone": ""}, follow=True)

    assert "There is no such time zone" in wrong.content.decode()
    assert 'value="Europe/Berlyn"' in wrong.content.decode()
    assert ">Times in Asia/Kolkata</a>" in kept.content.decode()
    assert hidden["httponly"]
    assert ">Times in UTC</a>" in back.content.decode()
