"""What the fleet made of a change: who was sent it, who answered what, and when there is nothing more to learn."""

from datetime import datetime, timedelta

import pytest

from controlplane.builder.selectors import change_progress
from controlplane.catalog.models import Environment
from controlplane.catalog.selectors import change_get
from controlplane.clients.clock import database_now
from controlplane.clients.facts import Serving
from controlplane.database.aliases import READER
from controlplane.incidents import changes_read
from controlplane.incidents.services import digest
from controlplane.incidents.settling import Delivery, change_delivery, changes_undecided, changes_unsettled
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.facts import acknowledged
from tests.support.manifests import cluster

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"


def status(change: str) -> Delivery:
    return change_delivery(change=change_get(public_id=change), progress=change_progress(public_id=change))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> "Later":
    return Later(monkeypatch)


class Later:
    """Moves the clock by which facts are judged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, seconds: float) -> None:
        def moved() -> datetime:
            return database_now() + timedelta(seconds=seconds)

        self._monkeypatch.setattr(changes_read, "database_now", moved)


def test_change__not_built__counts_nobody() -> None:
    change = publish(cluster("pay"), built=False)

    assert status(change) == Delivery()
    assert changes_unsettled(public_ids=[change]) == {change}


def test_change__published__is_settled_when_everybody_sent_has_answered_or_left() -> None:
    fleet = Fleet(4)
    change = publish(cluster("pay"))
    assert status(change) == Delivery(clients=0, settled=False)

    response = fleet.send(held("pay", 1))
    assert status(change) == Delivery(clients=4, settled=False)

    for stream in fleet.streams[:2]:
        fleet.buffer.learnt(stream, acknowledged(response))
    fleet.refuse(response, BAD, suspects=(held("pay", 1),), who=slice(2, 3))
    assert status(change) == Delivery(clients=4, acked=2, nacked=1, settled=False)

    fleet.buffer.closed(fleet.streams[3], "gone")
    fleet.write()
    assert status(change) == Delivery(clients=4, acked=2, nacked=1, settled=True)
    assert changes_unsettled(public_ids=[change]) == frozenset()


def test_change__an_ads_process_refuses_its_snapshot__is_not_settled_whatever_clients_say(later: Later) -> None:
    fleet = Fleet(2)
    publish(cluster("pay"))
    lineage = str(Environment.objects.get(key="default").lineage)
    fleet.serves = {"default": Serving(lineage, 1)}
    change = publish(cluster("pay", connect_timeout="2s"))
    fleet.accept(held("pay", 1))
    loading = status(change)

    fleet.serves = {"default": Serving(lineage, 1, "snapshot 2 of 'default' is refused (its signature does not hold)")}
    fleet.write()
    later(61)
    refused = status(change)
    unsettled = changes_unsettled(public_ids=[change]) & changes_undecided(public_ids=[change])

    fleet.serves = {"default": Serving(lineage, 2)}
    fleet.write()

    assert [each.reason for each in loading.behind] == ["it serves snapshot 1 and has not loaded 2"]
    assert [(each.epoch, each.reason) for each in refused.behind] == [
        (1, "snapshot 2 of 'default' is refused (its signature does not hold)")
    ]
    assert (loading.settled, refused.settled) == (False, False)
    assert unsettled == {change}
    assert (status(change).settled, status(change).behind) == (True, ())


def test_change__an_ads_process_serves_nothing_or_another_lineage__is_not_settled(later: Later) -> None:
    fleet = Fleet(0)
    change = publish(cluster("pay"))
    later(61)
    found = []
    for serves in ({}, {"default": Serving("of-before-a-restore", 7)}):
        fleet.serves = serves
        fleet.write()
        found.append(status(change))

    assert [(each.settled, [(one.epoch, one.reason) for one in each.behind]) for each in found] == [
        (False, [(0, "it has not loaded snapshot 1")])
    ] * 2


def test_change__the_ads_process_that_refuses_is_gone__is_settled(later: Later) -> None:
    fleet = Fleet(0)
    change = publish(cluster("pay"))
    fleet.serves = {}
    fleet.write()
    later(61)
    before = status(change)

    fleet.buffer._flush(stopping=True)

    assert (before.settled, status(change).settled) == (False, True)


def test_undecided__first_client_refuses__is_decided_while_the_others_have_not_spoken() -> None:
    fleet = Fleet(3)
    change = publish(cluster("pay"))
    response = fleet.send(held("pay", 1))
    for stream in fleet.streams[:1]:
        fleet.buffer.learnt(stream, acknowledged(response))
    fleet.write()
    before = changes_undecided(public_ids=[change])

    fleet.refuse(response, BAD, suspects=(held("pay", 1),), who=slice(1, 2))

    assert before == {change}
    assert changes_undecided(public_ids=[change]) == frozenset()
    assert changes_unsettled(public_ids=[change]) == {change}


def test_undecided__everybody_accepts__is_decided_when_it_is_settled() -> None:
    fleet = Fleet(1)
    change = publish(cluster("pay"))
    response = fleet.send(held("pay", 1))
    before = changes_undecided(public_ids=[change])

    fleet.buffer.learnt(fleet.streams[0], acknowledged(response))
    fleet.write()

    assert before == {change}
    assert changes_undecided(public_ids=[change]) == frozenset()


def test_change__client_that_refused_accepts_what_stands_in__still_counts_as_refusing() -> None:
    fleet = Fleet(2)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    change = publish(cluster("pay", connect_timeout="2s"))
    response = fleet.send(held("pay", 2))
    fleet.refuse(response, BAD, suspects=(held("pay", 2),), who=slice(1))
    fleet.buffer.learnt(fleet.streams[1], acknowledged(response))
    digest()

    stands_in = fleet.send(held("pay", 1), to=fleet.streams[:1])
    fleet.buffer.learnt(fleet.streams[0], acknowledged(stands_in))
    fleet.write()

    assert status(change) == Delivery(clients=2, acked=1, nacked=1, settled=True)


def test_change__client_says_nothing__is_silent_after_30_seconds(later: Later) -> None:
    fleet = Fleet(1)
    change = publish(cluster("pay"))
    fleet.send(held("pay", 1))

    later(29)
    early = status(change)
    later(31)

    assert early == Delivery(clients=1, settled=False)
    assert status(change) == Delivery(clients=1, silent=1, settled=True)


def test_change__nobody_asks__is_settled_once_somebody_would_have_been_seen(later: Later) -> None:
    change = publish(cluster("pay"))

    early = status(change)
    later(6)

    assert (early.settled, status(change)) == (False, Delivery(settled=True))


def test_change__clients_of_another_name__are_not_counted(later: Later) -> None:
    fleet = Fleet(2)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    change = publish(cluster("ledger"), delete=("pay",), losing=2)

    later(6)

    assert status(change).clients == 0
    later(61)
    assert status(change).settled
