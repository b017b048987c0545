"""What clients lost by a change, on every page that says how things stand."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.core.cache import cache
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.catalog.guarding import Loser, LostName
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from controlplane.incidents.values import IncidentState
from controlplane.notify.services import notify
from tests.services.incidents.fleet import Fleet, publish, rebuild
from tests.support.losses import LOSS, lose, take_back
from tests.support.manifests import cluster
from tests.web.conftest import HOSTILE, assert_harmless, page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def change(two_environments: None) -> str:
    """A change that deletes `pay`, by which three of five clients lost something; not published yet."""
    publish(cluster("pay"), cluster("other"))
    return lose(publish(delete=("pay",), built=False))


def lost_now() -> str:
    """It is published and digested; its incident."""
    rebuild()
    digest()
    return str(Incident.objects.get(cause="loss").public_id)


def box(shown: str) -> str:
    """The part of a change's page that tells what clients lost."""
    start = shown.find("connected clients los")
    return shown[shown.rfind('<div class="alert', 0, start) : shown.index("</div></div>", start)] if start >= 0 else ""


def test_change__not_published_yet__warns_of_what_clients_lose(admin: Client, change: str) -> None:
    told = box(page(admin, f"/changes/{change}"))

    assert "alert-warning" in told
    assert "3 of 5 connected clients lose 2 names once this is published" in told
    assert f'href="/changes/{change}/undo"' in told
    assert "/incidents/" not in told


def test_change__published__says_who_lost_what_and_leads_to_the_incident_and_the_way_back(
    admin: Client, change: str
) -> None:
    incident = lost_now()

    shown = page(admin, f"/changes/{change}")

    told = box(shown)
    assert "alert-danger" in told
    assert "3 of 5 connected clients lost 2 names" in told
    assert re.search(r'name=pay">pay</a>\s+\(3 clients\)', told)
    assert re.search(r'name=other">other</a>\s+\(1 client\)', told)
    assert '<a class="foreign" href="/clients/c0000003">node-3</a>' in told
    assert "2 envoy 1.40, 1 grpc-go 1.70" in told
    assert f'href="/incidents/{incident}"' in told
    assert f'href="/changes/{change}/undo"' in told
    assert '<div class="page-head mb-2"><span class="state state-bad">' in shown
    assert "<span>lost</span>" in shown
    assert "is refused by" not in shown
    assert told == box(page(admin, f"/changes/{change}?part=progress"))


def test_change__taken_back__is_not_lost_any_more(admin: Client, change: str) -> None:
    incident = lost_now()
    take_back(change, by=publish(cluster("pay"), built=False))
    lost_now()
    cache.clear()

    told = box(page(admin, f"/changes/{change}"))

    assert "alert-danger" not in told
    assert "The incident tells what ended it." in told
    assert "Take it back" not in told
    assert f'href="/incidents/{incident}"' in told


def test_change__taken_back_before_it_was_published__has_no_box(admin: Client, change: str) -> None:
    take_back(change, by=publish(cluster("pay"), built=False))
    rebuild()
    digest()

    assert box(page(admin, f"/changes/{change}")) == ""


def test_change__by_which_nobody_lost_anything__has_no_box(admin: Client, two_environments: None) -> None:
    assert box(page(admin, f"/changes/{publish(cluster('pay'))}")) == ""


def test_changes__lists_it_as_lost_until_it_is_taken_back(admin: Client, change: str) -> None:
    lost_now()
    line = '<span>lost</span></span><div class="quiet">lost by 3 clients</div>'
    assert line in page(admin, "/e/default/changes")

    take_back(change, by=publish(cluster("pay")))
    digest()

    assert line not in page(admin, "/e/default/changes")


def test_home__lost_and_refused__shows_the_loss_first_with_its_author_and_the_way_back(
    admin: Client, fleet: Fleet
) -> None:
    change = lose(publish(cluster("pay", connect_timeout="7s"), built=False))
    incident = lost_now()
    refused = str(Incident.objects.get(cause="nack").public_id)

    shown = page(admin, "/")

    assert "1 loss is open: clients do not have what they had" in shown
    assert "What clients lost or refuse" in shown
    assert shown.index(f'href="/incidents/{incident}"') < shown.index(f'href="/incidents/{refused}"')
    assert "<b>3</b> of 5" in shown
    assert f'<a href="/changes/{change}/undo">Take it back</a>' in shown
    assert_harmless(shown)


def test_incidents__filtered_by_cause__shows_those(admin: Client, fleet: Fleet) -> None:
    lose(publish(cluster("pay", connect_timeout="7s"), built=False))
    incident, refused = lost_now(), str(Incident.objects.get(cause="nack").public_id)

    for question, found in {"": (True, True), "?cause=loss": (True, False), "?cause=nack": (False, True)}.items():
        shown = page(admin, f"/e/default/incidents{question}")

        assert (incident in shown, refused in shown) == found, question
        assert ("Clear filters" in shown) is bool(question)


def test_incident__of_a_loss__says_what_who_and_by_whom_and_offers_the_way_back_but_no_quarantine(
    admin: Client, change: str
) -> None:
    shown = page(admin, f"/incidents/{lost_now()}")

    assert "<h1>3 of 5 connected clients lost 2 names</h1>" in shown
    assert f'href="/changes/{change}/undo"' in shown
    assert "“why”" in shown
    assert "/x?e=default&amp;t=cluster&amp;n=pay&amp;c=c0000001" in shown
    assert "node-3" in shown
    assert "uarantine" not in shown
    assert "refus" not in shown.partition("<main")[2]
    assert "snapshot 2" in shown


def test_incident__of_a_loss__quarantine_is_refused_and_resolving_it_says_that_it_is_meant(
    admin: Client, change: str
) -> None:
    path = f"/incidents/{lost_now()}"

    refused = admin.post(path, {"action": "quarantine", "reason": "no"})
    resolved = admin.post(path, {"action": "resolved"}, follow=True)

    assert (refused.status_code, "refuse nothing" in refused.content.decode()) == (409, True)
    assert "The incident is resolved." in resolved.content.decode()
    assert Incident.objects.get().state == IncidentState.RESOLVED
    assert "Take the change back" not in page(admin, path)


def test_incident__of_a_loss__a_viewer_may_look(person: Callable[..., Client], change: str) -> None:
    shown = page(person(Role.VIEWER), f"/incidents/{lost_now()}")

    assert "Acting on incidents needs the role operator in default." in shown


def test_resource__lost_by_clients__says_so_without_a_word_of_refusing(admin: Client, change: str) -> None:
    incident = lost_now()

    for name in ("pay", "other"):  # each name of the loss, not only the first
        shown = page(admin, f"/e/default/resource?type=cluster&name={name}")

        assert "Clients lost it: 3 of 5 connected clients lost 2 names" in shown, name
        assert f'href="/incidents/{incident}"' in shown
        assert "refuse it:" not in shown
    tab = page(admin, "/e/default/resource?type=cluster&name=other&tab=incidents")
    assert "3 of 5 clients lost something by a change" in tab


def test_messages__say_what_was_lost_and_lead_to_the_change(admin: Client, change: str) -> None:
    lost_now()
    notify()

    shown = page(admin, "/messages")

    assert f'/changes/{change}">3 of 5 connected clients lost 2 names in &#x27;default&#x27;</a>' in shown
    assert "urgent" in shown


def test_pages__of_a_loss_in_hostile_words__are_harmless(admin: Client, change: str) -> None:
    names = tuple(LostName("cluster", f"{HOSTILE}{number}", 1) for number in range(12))
    who = tuple(Loser(f"c{number}", HOSTILE, HOSTILE) for number in range(12))
    lose(change, replace(LOSS, clients=40, kinds={HOSTILE: 40}, names=names, who=who, truncated=True, doubtful=2))
    incident = lost_now()

    shown = page(admin, f"/changes/{change}")

    assert "40 of 5 connected clients (2 of them perhaps) lost more than 12 names" in shown
    assert "<li>and more</li>" in shown
    assert "and 30 more" in shown
    assert_harmless(shown)
    for path in (f"/incidents/{incident}", "/", "/e/default/incidents", "/e/default/changes", "/search?q=cluster"):
        assert_harmless(page(admin, path))
