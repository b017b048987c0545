"""Who acknowledged a change and does not use it yet: by what they did not ask for (truth.md H5)."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.builder.selectors import change_progress
from controlplane.catalog.selectors import change_get
from controlplane.clients.in_use import NotInUse
from controlplane.database.aliases import READER
from controlplane.incidents.settling import Answer, change_clients, change_not_in_use
from tests.services.incidents.fleet import Fleet, held, publish
from tests.services.incidents.unused import a_while_later, asks, pay
from tests.support.facts import subscribed
from tests.support.manifests import cluster, endpoints

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


def unused(change: str) -> NotInUse:
    return change_not_in_use(change=change_get(public_id=change), progress=change_progress(public_id=change))


def told(change: str) -> list[str]:
    return [each.sentence for each in unused(change).resources]


def test_change__taken_and_its_endpoints_not_asked_for__counts_those_clients_and_names_what_they_lack() -> None:
    fleet = Fleet(4)
    change = publish(pay(), endpoints("pay-hosts", 80))
    fleet.accept(held("pay", 1))
    asks(fleet, "other", "pay-hosts", who=slice(0, 1))
    asks(fleet, wildcard=True, who=slice(1, 2))
    asks(fleet, "other", who=slice(2, 3))

    at_once = unused(change)
    a_while_later()

    assert at_once == NotInUse(waits=True)
    assert told(change) == ["2 clients took cluster 'pay' and did not ask for endpoint 'pay-hosts'."]
    found = change_get(public_id=change)
    named = change_clients(change=found, progress=change_progress(public_id=change), answer=Answer.NOT_IN_USE)
    assert named == unused(change).clients
    assert len(named) == 2
    a_while_later()
    assert not unused(change).waits


def test_change__needs_nothing_or_is_not_published__nobody_waits() -> None:
    Fleet(1)

    assert unused(publish(cluster("static"))) == NotInUse()
    assert unused(publish(pay(), endpoints("pay-hosts", 80), built=False)) == NotInUse()


def test_change__asked_for_later_refused_or_left__is_not_counted_any_more() -> None:
    fleet = Fleet(3)
    change = publish(pay(), endpoints("pay-hosts", 80))
    fleet.accept(held("pay", 1))
    a_while_later()
    before = unused(change).resources[0].clients

    asks(fleet, "pay-hosts", who=slice(0, 1))
    fleet.buffer.closed(fleet.streams[1], "gone")
    fleet.write()
    publish(pay(connect_timeout="9s"))
    fleet.accept(held("pay", 2), who=slice(2, 3))

    assert (before, unused(change).resources) == (3, ())


def test_change__taken_lately__waits_though_others_are_counted_and_another_name_changes_nothing() -> None:
    fleet = Fleet(3)
    change = publish(pay(), endpoints("pay-hosts", 80), cluster("cart"))
    fleet.accept(held("pay", 1), who=slice(0, 2))
    a_while_later()
    fleet.accept(held("pay", 1), who=slice(2, 3))
    fleet.accept(held("cart", 1), who=slice(0, 1))

    found = unused(change)

    assert [each.clients for each in found.resources] == [2]


def test_change__client_of_two_streams__asks_on_either_and_has_it_on_both() -> None:
    twins = Fleet(1, first=10)
    twins.streams.append(replace(twins.streams[0], id=f"{11:032x}"))
    twins.buffer.opened(twins.streams[1])
    twins.buffer.learnt(twins.streams[1], subscribed(wildcard=True))
    twins.write()
    change = publish(pay(), endpoints("pay-hosts", 80))
    twins.accept(held("pay", 1), who=slice(0, 1))
    a_while_later()
    on_one = unused(change).resources
    twins.accept(held("pay", 1), who=slice(1, 2))
    a_while_later()
    on_both = unused(change).resources

    asks(twins, "pay-hosts", who=slice(1, 2))

    assert ([each.clients for each in on_one], [each.clients for each in on_both]) == ([], [1])
    assert unused(change).resources == ()


@pytest.mark.parametrize("clients", [3, 30])
def test_change__more_clients_that_are_alike__cost_no_more_questions(clients: int) -> None:
    fleet = Fleet(clients)
    change = publish(pay(), endpoints("pay-hosts", 80))
    fleet.accept(held("pay", 1))
    asks(fleet, "other")
    a_while_later()

    with CaptureQueriesContext(connection) as queries:
        found = unused(change)

    assert found.resources[0].clients == clients
    assert len(queries) <= 20
