"""Which clients were sent a content and took it, from the engine's word to the database and back."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.clients.clock import database_now
from controlplane.clients.content_reach import content_reach
from controlplane.clients.models import Subscription
from controlplane.database.aliases import READER
from tests.protocol.engine.world import World
from tests.support.held_fleet import Fleet
from xdscore.resource_types import CLUSTER

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

_DAY = timedelta(days=1)


def reached(*contents: tuple[str, str]) -> tuple[set[str], set[str]]:
    """The node ids of the clients that were sent one of these contents, and of those that acknowledged one."""
    found = content_reach(environment_key="default", word="cluster", contents=contents, since=database_now() - _DAY)
    return tuple({node_id for _, node_id in each.values()} for each in (found.sent, found.acknowledged))  # type: ignore[return-value]


def moved_to(fleet: Fleet, version: str) -> None:
    fleet.world.serve(CLUSTER, "pay", version)
    fleet.publish()


@pytest.fixture
def fleet() -> Fleet:
    """Four clients that have `pay` as v1: two ask for everything, two by name; and one that asks for another name."""
    world = World()
    world.serve(CLUSTER, "pay", "v1")
    world.serve(CLUSTER, "ledger", "v1")
    fleet = Fleet(world)
    for names in ((), (), ("pay",), ("pay",), ("ledger",)):
        fleet.join(*names)
    fleet.ack()
    fleet.write()
    return fleet


def test_reach__one_took_it_one_refused_it_one_is_silent__all_three_were_sent_it(fleet: Fleet) -> None:
    moved_to(fleet, "v2")
    one, two, *_ = fleet.members
    fleet.ack(one)
    fleet.nack(two, "pay: no")
    fleet.write()

    sent, acknowledged = reached(("pay", "v2"))

    assert (sent, acknowledged) == ({"node-1", "node-2", "node-3", "node-4"}, {"node-1"})
    assert reached(("pay", "v1"))[1] == {"node-1", "node-2", "node-3", "node-4"}
    assert reached(("pay", "never"), ("ledger", "v1")) == ({"node-1", "node-2", "node-5"},) * 2


def test_reach__something_else_is_served_since__who_had_it_was_sent_it_still(fleet: Fleet) -> None:
    moved_to(fleet, "v2")
    refusing, gone, *others = fleet.members
    fleet.ack(*others)
    fleet.nack(refusing, "pay: no")
    fleet.write()
    fleet.leave(gone)
    fleet.write()

    moved_to(fleet, "v1")
    fleet.ack()
    fleet.join()
    fleet.ack()
    fleet.write()

    assert reached(("pay", "v2")) == ({"node-1", "node-2", "node-3", "node-4"}, {"node-3", "node-4"})


def test_reach__streams_that_do_not_say_what_they_have__count_by_their_answer_to_the_type(fleet: Fleet) -> None:
    Subscription.objects.filter(stream__client__node_id__in=["node-1", "node-3", "node-5"]).update(holding_set=None)

    assert reached(("pay", "v9")) == ({"node-1", "node-3"},) * 2
    assert reached() == ({"node-1", "node-2", "node-3", "node-4", "node-5"},) * 2


def test_reach__any_number_of_clients_and_contents__takes_the_same_queries(fleet: Fleet) -> None:
    contents = [("pay", "v1"), ("ledger", "v1")]
    reached(*contents)
    with CaptureQueriesContext(
        connection,
    ) as few:
        reached(*contents)
    for _ in range(20):
        fleet.join()
    fleet.ack()
    fleet.write()

    with CaptureQueriesContext(connection) as many:
        sent, _ = reached(*contents, *((f"c{number}", "v1") for number in range(50)))

    assert len(sent) == 25
    assert len(many) <= len(few) <= 4
