"""The pages that say what each client has of each resource: a client's resources, and a resource's clients."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from adsserver.engine.body import Body
from adsserver.engine.holdings import BodyGround, Holdings
from controlplane.accounts.principal import Role
from controlplane.clients.models import Client as Row
from controlplane.clients.models import HoldingMove, Stream, Subscription
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet, publish, revision
from tests.support.manifests import cluster
from tests.web.conftest import HOSTILE, assert_harmless, page
from xdscore.holdings import Holding, HoldingState
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

NOTHING = Body((), {}, (), "")
PAY = "/e/default/resource?type=cluster&name=pay&tab=clients"


def version(number: int) -> str:
    return revision("pay", number).version


def having(fleet: Fleet, number: int, **holdings: Holding) -> None:
    """What the client with this number has, as its stream says it."""
    said = Holdings(BodyGround(NOTHING, tells=True), {name.replace("_", "-"): each for name, each in holdings.items()})
    fleet.buffer.holds(fleet.streams[number - 1], CLUSTER, said)


@pytest.fixture
def differing(fleet: Fleet) -> Fleet:
    """Of `pay`, r2 is published: node-1 refused it and goes on with r1, node-2 has it, node-3 still has r1."""
    having(fleet, 1, pay=Holding(HoldingState.NACKED, version(2), version(1)))
    told = Holding(HoldingState.ERROR_SENT, code="XDS2101", message=f"NOT_FOUND [XDS2101]: {HOSTILE}")
    having(fleet, 2, pay=Holding(HoldingState.ACKED, version(2), version(2)), gone=told)
    having(fleet, 3, pay=Holding(HoldingState.ACKED, version(1), version(1)))
    fleet.write()
    return fleet


def resources_of(browser: Client, number: int, question: str = "") -> str:
    return page(browser, f"/clients/{Row.objects.get(node_id=f'node-{number}').pk}/resources{question}")


def cells(shown: str, first: str) -> str:
    """The row of the table that begins with this, from its name on."""
    return shown.partition("<tbody>")[2].partition(first)[2].partition("</tr>")[0]


def test_client_resources__one_was_refused__says_what_it_has_what_is_published_and_its_own_words(
    admin: Client, differing: Fleet
) -> None:
    shown = resources_of(admin, 1)

    row = cells(shown, ">pay</a>")
    assert ">NACKED<" in row
    assert '<td data-label="Has">r1</td><td data-label="Published">r2' in row
    assert "It refused r2." in row
    assert "Error adding/updating cluster(s) pay" in row
    assert "tab=history&amp;from=1&amp;to=2" in row
    assert "/x?e=default&amp;t=cluster&amp;n=pay&amp;c=" in row
    assert_harmless(shown)


def test_client__a_response_is_not_answered_that_changes_nothing_it_has__says_of_a_type_what_its_resources_say(
    admin: Client, differing: Fleet
) -> None:
    stream = Stream.objects.get(client__node_id="node-3")
    Subscription.objects.filter(stream=stream, type="cluster").update(state="sent")

    resources = resources_of(admin, 3)
    of_type = page(admin, f"/clients/{stream.client_id}").partition('id="type-1"')[2].partition("</div>")[0]

    assert (">ACKED<" in cells(resources, ">pay</a>"), ">SENT<" in resources.partition("<tbody>")[2]) == (True, False)
    assert (">ACKED<" in of_type, ">SENT<" in of_type) == (True, False)


def test_client_resources__filtered__shows_what_fits(admin: Client, differing: Fleet) -> None:
    found = {
        question: [name for name in ("pay", "gone") if f">{name}</a>" in resources_of(admin, 2, question)]
        for question in ("", "?state=ERROR_SENT", "?state=ACKED", "?name=GO", "?type=route", "?state=nonsense")
    }

    both = ["pay", "gone"]
    assert list(found.values()) == [both, ["gone"], ["pay"], ["gone"], [], both]


def test_client_resources__told_an_error__shows_it_word_for_word_and_harmlessly(
    admin: Client, differing: Fleet
) -> None:
    shown = resources_of(admin, 2)

    row = cells(shown, ">gone</a>")
    assert "It was told why it does not get this." in row
    assert "NOT_FOUND [XDS2101]" in row
    assert '<td data-label="Has">nothing</td><td data-label="Published">nothing' in row
    assert_harmless(shown)


def test_client_resources__more_than_a_page__the_next_link_leads_to_the_rest(admin: Client, fleet: Fleet) -> None:
    many = {f"c_{number:02}": Holding(HoldingState.REQUESTED) for number in range(51)}
    having(fleet, 1, **many)
    fleet.write()

    first, last = resources_of(admin, 1), resources_of(admin, 1, "?after=cluster/c-49")

    assert first.count("<span>REQUESTED<") == 50
    assert "after=cluster/c-49" in first.replace("%2F", "/")
    assert ">c-50</a>" in last
    assert last.count('data-label="State"') == 1


def test_client_resources__at_an_earlier_time__shows_what_it_had_then(admin: Client, differing: Fleet) -> None:
    hour = timedelta(hours=1)
    Stream.objects.update(opened_at=timezone.now() - 2 * hour)
    Subscription.objects.update(held_at=timezone.now() - hour)
    HoldingMove.objects.update(at=timezone.now() - hour)
    having(differing, 3, pay=Holding(HoldingState.ACKED, version(2), version(2)))
    differing.write()

    now = resources_of(admin, 3)
    then = resources_of(admin, 3, f"?at={timezone.now() - timedelta(minutes=30):%Y-%m-%dT%H:%M}")

    assert '<td data-label="Has">r2</td>' in cells(now, ">pay</a>")
    assert '<td data-label="Has">r1</td>' in cells(then, ">pay</a>")
    assert "What it had at" in then


def test_client_resources__at_what_is_no_time__says_so_and_shows_what_it_has_now(
    admin: Client, differing: Fleet
) -> None:
    shown = resources_of(admin, 3, "?at=%3Cb%3Eyesterday")

    assert "&lt;b&gt;yesterday</span>” is no time" in shown
    assert '<td data-label="Has">r1</td>' in cells(shown, ">pay</a>")


def test_client_resources__client_of_another_environment__is_not_found(
    person: Callable[..., Client], differing: Fleet
) -> None:
    path = f"/clients/{Row.objects.get(node_id='node-1').pk}/resources"

    shown = page(person(Role.ADMIN, "prod"), path, status=404)

    assert "node-1" not in shown
    assert "There is no client" in shown


def test_resource__clients_differ__says_how_many_have_what_and_lists_who_refuses_first(
    admin: Client, differing: Fleet
) -> None:
    shown = page(admin, PAY)

    assert "1 of 3 clients that ask for it has r2, which is published." in shown
    shares = [line for line in shown.split("<tr>") if 'class="number"' in line and "33 %" in line]
    assert [("NACKED" in each, "behind" in each) for each in shares] == [(True, False), (False, True), (False, False)]
    assert '<rect class="bad" x="0.0" width="33.33"' in shown
    listed = shown.partition('id="holders"')[2]
    assert listed.index("node-1") < min(listed.index("node-2"), listed.index("node-3"))
    assert "It is behind what is published." in listed


def test_resource__a_share_is_chosen__lists_only_its_clients(admin: Client, differing: Fleet) -> None:
    shown = page(admin, f"{PAY}&state=ACKED&revision=1")

    listed = shown.partition('id="holders"')[2]
    assert [f"node-{number}" in listed for number in (1, 2, 3)] == [False, False, True]
    assert "Show all clients" in listed


def test_resource__more_clients_than_a_page__each_is_listed_once_in_order(admin: Client, fleet: Fleet) -> None:
    crowd = Fleet(60, first=4)
    for number in range(1, 61):
        state = HoldingState.SENT if number % 2 else HoldingState.ACKED
        having(crowd, number, pay=Holding(state, version(2), version(1)))
    crowd.write()

    first = page(admin, PAY).partition('id="holders"')[2]
    after = first.partition("after=")[2].partition('"')[0]
    second = page(admin, f"{PAY}&after={after}").partition('id="holders"')[2]

    clients = [[part.partition('"')[0] for part in each.split('href="/clients/')[1:]] for each in (first, second)]
    assert len(clients[0]) == 50
    assert len(set(clients[0] + clients[1])) == len(clients[0] + clients[1]) == 63
    assert first.rindex(">SENT<") < first.index(">ACKED<")
    assert ">SENT<" not in second


def test_history__two_revisions_are_named__shows_the_difference_between_them(admin: Client, fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="3s"))
    history = "/e/default/resource?type=cluster&name=pay&tab=history"

    shown = page(admin, f"{history}&from=1&to=3")

    compared = shown.partition('id="compared"')[2].partition("</section>")[0]
    assert "From r1 to r3" in compared
    assert "3s" in compared
    assert "2s" not in compared
    assert 'id="compared"' not in page(admin, f"{history}&from=1&to=99")
