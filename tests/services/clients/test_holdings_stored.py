"""How what clients have is stored: equal clients share a set, and what nobody needs any more is deleted."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from controlplane.clients.clock import database_now
from controlplane.clients.holdings import client_holdings
from controlplane.clients.models import HoldingMove, HoldingSet, Subscription
from controlplane.clients.services import facts_prune
from controlplane.database.aliases import READER
from tests.protocol.engine.world import World
from tests.services.clients.test_shares import limited
from tests.support.held_fleet import Fleet, Member
from xdscore.holdings import HoldingState
from xdscore.resource_types import CLUSTER

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

ACKED, NACKED, SENT, UNKNOWN = HoldingState.ACKED, HoldingState.NACKED, HoldingState.SENT, HoldingState.UNKNOWN
ERROR_SENT = HoldingState.ERROR_SENT


def world_of(count: int) -> World:
    world = World()
    for number in range(count):
        world.serve(CLUSTER, f"c{number}", f"v{number}")
    return world


def had_by(member: Member) -> dict[str, tuple[HoldingState, str, str]]:
    rows = client_holdings(public_id=member.client, limit=1_000).rows
    return {each.name: (each.state, each.version, each.acked_version) for each in rows}


def test_facts_write__equal_clients_take_a_change__share_one_set_and_one_move() -> None:
    fleet = Fleet(world_of(100))
    for _ in range(200):
        fleet.join()
    fleet.ack()
    fleet.write()
    before = (HoldingSet.objects.count(), HoldingMove.objects.count())
    fleet.world.serve(CLUSTER, "c7", "second")
    fleet.publish()
    fleet.ack()

    with CaptureQueriesContext(connection) as queries:
        fleet.write()

    assert before == (1, 1)
    assert (HoldingSet.objects.count(), HoldingMove.objects.count()) == (2, 2)
    assert set(HoldingMove.objects.values_list("count", flat=True)) == {200}
    assert Subscription.objects.values("holding_set").distinct().count() == 1
    assert len(queries) < 20
    difference = HoldingSet.objects.get(keyframe__isnull=False)
    assert (difference.count, len(difference.entries) < 100) == (100, True)


def test_facts_write__the_same_again_a_minute_later__moves_nobody_and_keeps_since_when() -> None:
    fleet = Fleet(world_of(3))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    holdings = one.session.holdings(CLUSTER)
    assert holdings is not None
    fleet.now += 60
    fleet.buffer.holds(one.info, CLUSTER, holdings)

    fleet.write()

    assert (HoldingSet.objects.count(), HoldingMove.objects.count()) == (1, 1)
    age = database_now() - Subscription.objects.get().held_at  # type: ignore[operator]
    assert timedelta(seconds=61) < age < timedelta(seconds=75)


def test_facts_prune__sets_nobody_names__are_deleted_and_keyframes_stay() -> None:
    fleet = Fleet(world_of(200))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    for number in range(3):
        fleet.world.serve(CLUSTER, "c7", f"next{number}")
        fleet.publish()
        fleet.ack()
        fleet.write()
    assert HoldingSet.objects.count() == 4
    HoldingMove.objects.update(at=F("at") - timedelta(hours=25))

    facts_prune()

    assert HoldingMove.objects.count() == 0
    assert HoldingSet.objects.count() == 2
    assert had_by(one)["c7"] == (ACKED, "next2", "next2")


def test_facts_write__a_set_that_was_pruned_comes_back__is_stored_again() -> None:
    fleet = Fleet(world_of(200))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    for version in ("second", "third"):
        fleet.world.serve(CLUSTER, "c7", version)
        fleet.publish()
        fleet.ack()
        fleet.write()
    HoldingMove.objects.all().delete()
    facts_prune()
    fleet.world.serve(CLUSTER, "c7", "second")
    fleet.publish()
    fleet.ack()

    fleet.write()

    assert had_by(one)["c7"] == (ACKED, "second", "second")


def test_facts_prune__more_moves_than_there_is_room__the_oldest_go(settings: Settings) -> None:
    limited(settings, holding_moves_per_environment=100)
    fleet = Fleet(world_of(1))
    fleet.join()
    fleet.ack()
    fleet.write()
    first = HoldingMove.objects.get()
    HoldingMove.objects.bulk_create(
        HoldingMove(
            environment=first.environment,
            type="cluster",
            to_set=first.to_set,
            at=first.at,
            count=1,
            streams=b"12345678",
        )
        for _ in range(100)
    )

    facts_prune()

    assert HoldingMove.objects.count() == 100
    assert not HoldingMove.objects.filter(pk=first.pk).exists()
