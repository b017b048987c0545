"""The fleet as the loss guard reads it: kept as long as it is the same, and no longer."""

from datetime import timedelta

import pytest

from controlplane.clients.clock import database_now
from controlplane.clients.fleet_reading import DOUBT, fleet_read
from controlplane.clients.models import Replica, Stream
from controlplane.clients.services import streams_reap
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.facts import subscribed
from tests.support.manifests import cluster

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


@pytest.fixture
def fleet(database: str) -> Fleet:
    publish(cluster("pay"))
    return Fleet(2)


def connected() -> dict[str, bool]:
    """By node id, whether it is certain that the client is connected."""
    return {member.node_id: member.certain for member in fleet_read(environment_key="default").members}


def asked(node_id: str) -> set[tuple[str, bool]]:
    """What a client asks for: types, and whether with a wildcard."""
    read = fleet_read(environment_key="default")
    (member,) = [member for member in read.members if member.node_id == node_id]
    return {(ask.word, ask.wildcard) for ask in read.asks(member.asks)}


def test_fleet__nothing_was_written__is_not_read_again(fleet: Fleet) -> None:
    first = fleet_read(environment_key="default")

    fleet.write()

    assert fleet_read(environment_key="default") is first


def test_fleet__clients_come_ask_and_leave__is_always_what_was_written_last(fleet: Fleet) -> None:
    assert connected() == {"node-1": True, "node-2": True}

    other = Fleet(1, first=3)
    assert connected() == {"node-1": True, "node-2": True, "node-3": True}
    assert asked("node-3") == {("cluster", True)}
    other.learn(subscribed("pay"))
    assert asked("node-3") == {("cluster", False)}
    other.buffer.closed(other.streams[0], "gone")
    other.write()

    assert connected() == {"node-1": True, "node-2": True}


def test_fleet__ads_process_stopped_reporting__its_clients_are_counted_with_doubt_and_then_forgotten(
    fleet: Fleet,
) -> None:
    assert connected() == {"node-1": True, "node-2": True}

    Replica.objects.update(seen_at=database_now() - timedelta(minutes=1))
    assert streams_reap() == 2
    assert connected() == {"node-1": False, "node-2": False}
    Stream.objects.update(closed_at=database_now() - DOUBT)

    assert connected() == {}


def test_fleet__client_refused_all_it_was_sent_of_a_type__is_connected_and_has_nothing_of_it(fleet: Fleet) -> None:
    sent = fleet.send(held("pay", 1))
    fleet.refuse(sent, "no", suspects=(held("pay", 1),), who=slice(1))

    assert connected() == {"node-1": True, "node-2": True}
    assert (asked("node-1"), asked("node-2")) == (set(), {("cluster", True)})
