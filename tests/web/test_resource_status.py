"""How resources stand, as the console shows it: the list, its filter and the page of one."""

from collections.abc import Callable

import pytest
from django.test import Client

from controlplane.accounts.principal import ADMIN_SCOPES, Role
from controlplane.catalog.models import Quarantine
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import incident_quarantine
from controlplane.status.values import Status
from tests.services.incidents.fleet import Fleet, publish, rebuild
from tests.support.manifests import TYPE, Tree, cluster, route
from tests.support.principals import somebody
from tests.web.conftest import page

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

DANA = somebody("dana", ADMIN_SCOPES)


def row_of(shown: str, name: str) -> str:
    return shown.partition(f">{name}</a>")[2].partition("</tr>")[0]


def badge(shown: str) -> str:
    """The first state that is shown."""
    return shown.partition('class="state state-')[2].partition("<span>")[2].partition("</span>")[0]


def quarantine() -> str:
    incident = str(Incident.objects.get().public_id)
    incident_quarantine(public_id=incident, reason="breaks <pay>", actor=DANA, request_id="")
    rebuild()
    return incident


def test_list__resources_of_every_status__each_says_which_and_why(admin: Client, fleet: Fleet) -> None:
    publish(route("shop", "nowhere"))
    publish(cluster("saved"), built=False)
    incident = str(Incident.objects.get().public_id)

    shown = page(admin, "/e/default/resources")

    found = {name: badge(row_of(shown, name)) for name in ("pay", "shop", "saved")}
    assert found == {"pay": "refused", "shop": "stalled", "saved": "waiting"}
    assert "1 of 3 clients refuses r2." in row_of(shown, "pay")
    assert f'<a href="/incidents/{incident}">Incident</a>' in row_of(shown, "pay")
    assert "It refers to a Cluster that does not exist." in row_of(shown, "shop")
    assert "r1 is saved and waits for the next build." in row_of(shown, "saved")
    assert "state-good" not in "".join(row_of(shown, name) for name in found)


def test_list__published__is_green_only_once_a_client_acknowledged_it(admin: Client, fleet: Fleet) -> None:
    publish(cluster("nobody-has-it"))

    shown = page(admin, "/e/default/resources?status=published")

    row = row_of(shown, "nobody-has-it")
    assert badge(row) == "published"
    assert "not acknowledged yet" in row
    assert "state-good" not in row
    assert ">pay</a>" not in shown


@pytest.mark.parametrize("status", Status)
def test_list__filtered_by_status__shows_those_and_says_what_it_filters_by(
    admin: Client, fleet: Fleet, status: Status
) -> None:
    quarantine()

    shown = page(admin, f"/e/default/resources?status={status.value}")

    assert (">pay</a>" in shown) is (status is Status.QUARANTINED)
    assert f'<option value="{status.value}" selected>' in shown
    assert "Clear filters" in shown


def test_page__resource_with_a_ttl__says_when_clients_drop_it(admin: Client, fleet: Fleet) -> None:
    wrapper = TYPE + "envoy.service.discovery.v3.Resource"
    wrapped: Tree = {"@type": wrapper, "ttl": "30s", "resource": cluster("brief")}
    publish(wrapped)

    brief, pay = (page(admin, f"/e/default/resource?type=cluster&name={name}") for name in ("brief", "pay"))

    assert '<dt>Ttl</dt><dd>30s <span class="quiet">after the last renewal' in brief
    assert "-ttl30000</code>" in brief
    assert "<dt>Ttl</dt>" not in pay


def test_list__filter_that_is_no_status__says_which_there_are_and_lists_nothing(admin: Client, fleet: Fleet) -> None:
    shown = page(admin, "/e/default/resources?status=sound", 422)

    assert "&#x27;Status&#x27; cannot be &#x27;sound&#x27;. Choices: published, waiting" in shown
    assert ">pay</a>" not in shown
    assert "Clear filters" in shown


def test_page__quarantined__says_so_who_refused_it_and_what_clients_get(admin: Client, fleet: Fleet) -> None:
    incident = quarantine()

    shown = " ".join(page(admin, "/e/default/resource?type=cluster&name=pay").partition("<h1>pay</h1>")[2].split())

    assert badge(shown) == "quarantined"
    assert "refused by 1 of 3</span>" in shown
    assert shown.count("r2 is out of service; clients get r1. Why: breaks &lt;pay&gt;.") == 2
    assert "<dt>Accepted</dt><dd>False: Refused" in shown
    assert "<dt>Published</dt><dd>False: Quarantined" in shown
    assert f"1 of 3 clients refuses r2. Incident: {incident}." in shown


def test_page__quarantined__leads_an_operator_to_the_release_which_asks_first(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    quarantine()
    path = "/e/default/resource?type=cluster&name=pay"

    shown = page(admin, path)
    asked = admin.post("/e/default/resources/bulk", {"pick": "cluster r2 pay", "act": "release"})

    assert 'action="/e/default/resources/bulk"' in shown.partition("Write a new revision, or release this one")[2]
    assert 'value="cluster r2 pay"><button class="btn" name="act" value="release">' in shown
    assert asked.status_code == 200
    assert "Why" in asked.content.decode()
    assert Quarantine.objects.get().released_at is None
    assert 'value="release"' not in page(person(Role.EDITOR), path)
    assert 'value="quarantine"' not in shown


def test_page__leads_an_operator_to_a_quarantine_which_asks_first(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    path = "/e/default/resource?type=cluster&name=pay"

    shown = page(admin, path)
    asked = admin.post("/e/default/resources/bulk", {"pick": "cluster r2 pay", "act": "quarantine"})

    offered = 'name="pick" value="cluster r2 pay"><button class="btn" name="act" value="quarantine">'
    assert offered in shown
    assert "Why" in asked.content.decode()
    assert not Quarantine.objects.exists()
    assert offered not in page(person(Role.EDITOR), path)


def test_change__what_it_wrote_is_held_back__has_the_word_of_the_list(admin: Client, fleet: Fleet) -> None:
    change = publish(route("shop", "nowhere"))

    shown = page(admin, f"/changes/{change}").partition("Not served as written")[2]

    assert badge(shown) == "stalled"
    assert "nothing is served" in shown
