"""How far clients have come with what a change wrote: by what they have of each name, whatever else they were sent."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.catalog.services import environment_default_ensure
from controlplane.clients.clock import database_now
from controlplane.clients.delivery import FleetRead, Reaction, Written
from controlplane.clients.models import Subscription
from controlplane.database.aliases import READER
from tests.protocol.engine.world import World
from tests.support.held_fleet import Fleet, Member
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def fleet(transactional_db: None) -> Fleet:
    """Nobody yet; there are `c0` and `c1` in version v1."""
    environment_default_ensure()
    world = World()
    for name in ("c0", "c1"):
        world.serve(CLUSTER, name, "v1")
    return Fleet(world)


def change(fleet: Fleet, **versions: str) -> None:
    """Publish these versions to everybody."""
    for name, version in versions.items():
        fleet.world.serve(CLUSTER, name, version)
    fleet.publish()


def come(name: str, written: Written, *, ago_s: float = 10.0) -> Mapping[str, Reaction]:
    """How far each client has come with a name that was written so long ago."""
    since = database_now() - timedelta(seconds=ago_s)
    return FleetRead("default", database_now()).reactions(written={"cluster": {name: written}}, since=since)


def joined(fleet: Fleet, count: int) -> list[Member]:
    members = [fleet.join() for _ in range(count)]
    fleet.ack()
    return members


def refuse(fleet: Fleet, member: Member, name: str) -> None:
    """The client refuses every response that holds this name, and acknowledges what it is sent apart from it."""
    while member.unanswered:
        if any(each.name == name for each in member.unanswered[0].resources):
            fleet.nack(member, "no")
        else:
            fleet.ack_first(member)


def test_reactions__one_refuses_another_resource_of_the_response__is_not_blamed_for_this_one(fleet: Fleet) -> None:
    good, bad = joined(fleet, 2)
    change(fleet, c0="v2", c1="v2")

    fleet.ack(good)
    refuse(fleet, bad, "c1")
    fleet.write()

    assert come("c0", Written("v2")) == {good.client: Reaction.ACKED, bad.client: Reaction.ACKED}
    assert come("c1", Written("v2")) == {good.client: Reaction.ACKED, bad.client: Reaction.NACKED}


def test_reactions__one_does_not_answer__is_waited_for_and_what_it_had_before_is_not_what_was_written(
    fleet: Fleet,
) -> None:
    good, slow = joined(fleet, 2)
    change(fleet, c0="v2")
    fleet.ack(good)
    fleet.write()

    waited = come("c0", Written("v2"))
    fleet.leave(slow)
    fleet.write()

    assert waited == {good.client: Reaction.ACKED, slow.client: Reaction.WAITING}
    assert come("c0", Written("v2"))[slow.client] is Reaction.LEFT


def test_reactions__another_name_was_sent_since__who_was_not_sent_this_one_does_not_count(fleet: Fleet) -> None:
    (client,) = joined(fleet, 1)
    change(fleet, c0="v2")
    fleet.ack()
    fleet.write()

    assert come("c1", Written("v2")) == {}
    assert come("c1", Written("v2"), ago_s=2.0) == {client.client: Reaction.EXPECTED}


def test_reactions__written_again_since__who_has_the_later_one_is_past_this_one(fleet: Fleet) -> None:
    (client,) = joined(fleet, 1)
    change(fleet, c0="v3")
    fleet.ack()
    fleet.write()

    assert come("c0", Written("v2", frozenset({"v3"}))) == {client.client: Reaction.ACKED}


def test_reactions__may_not_read_the_name__does_not_count(fleet: Fleet) -> None:
    fleet.world.rule(CLUSTER, "c0", Effect.DENY)
    fleet.join("c0", "c1")
    fleet.ack()
    fleet.write()

    assert come("c0", Written("v1")) == {}
    assert list(come("c1", Written("v1")).values()) == [Reaction.ACKED]


def test_reactions__the_name_was_deleted__who_answered_that_took_it_whatever_else_it_refuses(fleet: Fleet) -> None:
    everything, one = fleet.join(), fleet.join("c0", "c1")
    fleet.ack()
    fleet.world.remove(CLUSTER, "c0")
    change(fleet, c1="bad")
    fleet.write()
    early = come("c0", Written(""))

    for member in (everything, one):
        refuse(fleet, member, "c1")
    fleet.write()

    assert set(early.values()) == {Reaction.EXPECTED}  # it is told so after its answer
    assert come("c0", Written("")) == {everything.client: Reaction.ACKED, one.client: Reaction.ACKED}


def test_reactions__by_the_word_of_a_process_of_the_version_before__the_answer_to_the_type_stands_for_it(
    fleet: Fleet,
) -> None:
    (bad,) = joined(fleet, 1)
    change(fleet, c0="v2", c1="v2")
    fleet.nack(bad, "c1: no such thing")
    fleet.write()
    Subscription.objects.update(holding_set=None, held_at=None, state="nacked")

    assert come("c0", Written("v2")) == {bad.client: Reaction.NACKED}


def test_reactions__clients_that_have_the_same__cost_a_handful_of_questions(fleet: Fleet) -> None:
    joined(fleet, 30)
    fleet.write()

    with CaptureQueriesContext(connection) as asked:
        found = come("c0", Written("v1"))

    assert len(asked) <= 6
    assert set(found.values()) == {Reaction.ACKED}
    assert len(found) == 30


def test_reactions__only_something_later_was_refused__did_not_refuse_this_one(fleet: Fleet) -> None:
    (client,) = joined(fleet, 1)
    change(fleet, c0="v3")
    refuse(fleet, client, "c0")
    fleet.write()

    assert come("c0", Written("v2", frozenset({"v3"}))) == {client.client: Reaction.LEFT}
    assert come("c0", Written("v3")) == {client.client: Reaction.NACKED}
