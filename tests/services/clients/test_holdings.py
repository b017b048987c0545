"""What clients have, from the engine's word to the database and back, on SQLite and on PostgreSQL."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from controlplane.clients.clock import database_now
from controlplane.clients.held_rows import HeldResource
from controlplane.clients.held_sets import stream_mark
from controlplane.clients.holdings import (
    HeldThen,
    client_had,
    client_has,
    client_holdings,
    client_summary,
    holding_states,
    resource_holders,
)
from controlplane.clients.models import HoldingMove, Stream, Subscription
from controlplane.clients.selectors import client_get
from controlplane.clients.told import told_of
from controlplane.database.aliases import READER
from controlplane.snapshots.history import epoch_at
from controlplane.snapshots.models import SnapshotRow
from tests.protocol.engine.world import World
from tests.services.incidents.fleet import publish
from tests.support.held_fleet import Fleet, Member
from tests.support.manifests import cluster
from xdscore.access import Effect
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


def had_by(member: Member, *, at: datetime | None = None) -> dict[str, tuple[HoldingState, str, str]]:
    rows = client_holdings(public_id=member.client, at=at, limit=1_000).rows
    return {each.name: (each.state, each.version, each.acked_version) for each in rows}


def of(member: Member, name: str) -> HeldResource:
    (row,) = client_holdings(public_id=member.client, name=name).rows
    return row


def shifted(back: timedelta) -> datetime:
    """Everything that is stored happens so much earlier; the time that is now this long ago."""
    Stream.objects.update(opened_at=F("opened_at") - back, closed_at=F("closed_at") - back)
    Subscription.objects.update(held_at=F("held_at") - back)
    HoldingMove.objects.update(at=F("at") - back)
    return database_now() - back


def test_client_holdings__some_acknowledged_some_not_there__each_has_its_state() -> None:
    fleet = Fleet(world_of(2))
    one = fleet.join("c0", "c1", "lost")
    fleet.ack()
    fleet.write()

    held = had_by(one)

    assert held == {"c0": (ACKED, "v0", "v0"), "c1": (ACKED, "v1", "v1"), "lost": (ERROR_SENT, "", "")}
    lost = of(one, "lost")
    assert (lost.code, lost.message.startswith("NOT_FOUND [XDS2101]")) == ("XDS2101", True)


def test_client_holdings__an_update_is_refused__says_the_words_and_what_it_goes_on_with() -> None:
    fleet = Fleet(world_of(2))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    fleet.world.serve(CLUSTER, "c1", "bad")
    fleet.publish()
    fleet.nack(one, "c1: no such thing")
    fleet.write()

    held = had_by(one)

    assert held == {"c0": (ACKED, "v0", "v0"), "c1": (NACKED, "bad", "v1")}
    assert of(one, "c1").message == "c1: no such thing"


def test_client_holdings__a_response_is_not_answered_for_long__it_was_sent_what_it_does_not_have() -> None:
    fleet = Fleet(world_of(2))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    fleet.world.serve(CLUSTER, "c1", "new")
    fleet.publish()
    fleet.write()

    held = had_by(one)

    assert held == {"c0": (ACKED, "v0", "v0"), "c1": (SENT, "new", "v1")}


def test_client_holdings__two_streams__the_one_that_needs_attention_counts() -> None:
    fleet = Fleet(world_of(1))
    good, bad = fleet.join(node_id="me"), fleet.join(node_id="me")
    fleet.ack()
    fleet.world.serve(CLUSTER, "c0", "bad")
    fleet.publish()
    fleet.ack(good)
    fleet.nack(bad, "c0 is bad")
    fleet.write()

    row = of(good, "c0")

    assert (row.state, row.stream, row.acked_version) == (NACKED, bad.info.id, "v0")
    assert row.message == "c0 is bad This is so on 1 of its 2 streams."


def test_client_holdings__the_client_went_away__is_unknown_and_says_what_it_had() -> None:
    fleet = Fleet(world_of(1))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    fleet.leave(one)
    fleet.write()

    row = of(one, "c0")

    assert (row.state, row.acked_version) == (UNKNOWN, "v0")
    assert row.message.startswith("It went away at 20")
    assert row.message.endswith("; it had version v0, which is of no revision known here.")


def test_client_holdings__a_process_of_the_version_before_wrote__is_unknown_and_says_why() -> None:
    fleet = Fleet(world_of(1))
    one = fleet.join("c0", speaks=False)
    fleet.write()

    row = of(one, "c0")
    counts, page = resource_holders(environment_key="default", key=("cluster", "c0"))

    assert row.state is UNKNOWN
    assert "earlier version" in row.message
    assert counts == {UNKNOWN: {"none": 1}}
    assert [each.client for each in page.rows] == [one.client]


def test_client_holdings__pages__cover_everything_once_in_order() -> None:
    fleet = Fleet(world_of(5))
    one = fleet.join()
    fleet.ack()
    fleet.write()

    first = client_holdings(public_id=one.client, limit=3)
    second = client_holdings(public_id=one.client, limit=3, after=first.after)

    assert [each.name for each in (*first.rows, *second.rows)] == ["c0", "c1", "c2", "c3", "c4"]
    assert (first.after, second.after) == ("cluster/c2", "")


def test_client_holdings__filters__leave_what_was_asked_for() -> None:
    fleet = Fleet(world_of(2))
    one = fleet.join("c0", "c1", "lost")
    fleet.ack()
    fleet.write()

    by_state = client_holdings(public_id=one.client, states=[ERROR_SENT]).rows
    by_type = client_holdings(public_id=one.client, types=["listener"]).rows
    by_name = client_holdings(public_id=one.client, name="C1").rows

    assert [each.name for each in by_state] == ["lost"]
    assert by_type == ()
    assert [each.name for each in by_name] == ["c1"]


def test_client_holdings__some_time_ago__has_what_it_had_then_and_since() -> None:
    fleet = Fleet(world_of(2))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    opened = shifted(timedelta(minutes=10))
    fleet.world.serve(CLUSTER, "c1", "second")
    fleet.publish()
    fleet.ack()
    fleet.write()
    changed = shifted(timedelta(minutes=10))
    fleet.world.serve(CLUSTER, "c1", "third")
    fleet.publish()
    fleet.ack()
    fleet.write()
    opened -= timedelta(minutes=10)

    between = [had_by(one, at=moment + timedelta(minutes=1))["c1"][1] for moment in (opened, changed)]

    assert between == ["v1", "second"]
    assert had_by(one, at=database_now())["c1"][1] == "third"
    assert had_by(one, at=opened - timedelta(minutes=5)) == {}
    since = {each.name: each.since for each in client_holdings(public_id=one.client).rows}
    assert abs(since["c0"] - opened) < timedelta(seconds=30)  # type: ignore[operator]
    assert abs(since["c1"] - database_now()) < timedelta(seconds=30)  # type: ignore[operator]


def test_client_had__of_one_name_at_a_time__what_it_was_then_and_what_was_published(database: str) -> None:
    publish(cluster("c0"))
    fleet = Fleet(world_of(2))
    one = fleet.join("c0", node_id="me")
    fleet.ack()
    fleet.write()
    SnapshotRow.objects.update(at=F("at") - timedelta(minutes=10))
    opened = shifted(timedelta(minutes=10)) + timedelta(minutes=1)
    fleet.world.serve(CLUSTER, "c0", "bad")
    fleet.publish()
    fleet.nack(one, "c0: no such thing")
    publish(cluster("c0", connect_timeout="9s"))
    fleet.write()

    def had(name: str, at: datetime) -> HeldThen:
        return client_had(public_id=one.client, word="cluster", name=name, at=at)

    then, now, other = had("c0", opened), had("c0", database_now()), had("c1", opened)
    before = had("c0", opened - timedelta(minutes=5))
    lost = had("c0", opened - timedelta(hours=25))

    assert then.row is not None
    assert now.row is not None
    assert (then.connected, then.known, then.row.state, then.row.version) == (True, True, ACKED, "v0")
    assert (now.row.state, now.row.version, now.row.acked_version) == (NACKED, "bad", "v0")
    assert now.row.message == "c0: no such thing"
    assert (other.connected, other.known, other.row) == (True, True, None)
    assert (before.connected, before.row) == (False, None)
    assert not lost.known
    assert [epoch_at(environment_key="default", moment=at) for at in (opened, database_now())] == [1, 2]


def test_client_holdings__others_moved_hundreds_of_times_since__since_when_costs_as_much_and_is_as_exact(
    database: str,
) -> None:
    fleet = Fleet(world_of(2))
    one, other = fleet.join(node_id="me"), fleet.join(node_id="other")
    fleet.ack()
    fleet.write()
    for number in range(4):
        shifted(timedelta(minutes=10))
        fleet.world.serve(CLUSTER, "c1", f"again-{number}")
        fleet.publish()
        fleet.ack()
        fleet.write()
    before = shifted(timedelta(minutes=10))
    alone = {each.name: each.since for each in client_holdings(public_id=one.client).rows}
    own = HoldingMove.objects.filter(type="cluster").latest("at")
    mark = stream_mark(Stream.objects.get(client=other.client).pk)
    HoldingMove.objects.bulk_create(
        HoldingMove(
            environment_id=own.environment_id,
            type="cluster",
            from_set_id=own.from_set_id,
            to_set_id=own.to_set_id,
            at=before + timedelta(seconds=number),
            count=1,
            streams=mark,
        )
        for number in range(300)
    )

    with CaptureQueriesContext(connection) as queries:
        found = {each.name: each.since for each in client_holdings(public_id=one.client).rows}

    assert found == alone
    assert [before - each < timedelta(seconds=30) for each in (found["c1"], found["c0"]) if each] == [True, False]
    assert len([each for each in queries if "clients_holdingmove" in each["sql"]]) == 2


def test_client_summary__more_than_is_shown__says_how_many_and_what_needs_attention_first() -> None:
    fleet = Fleet(world_of(4))
    one = fleet.join("a-lost", "c0", "c1", "c2", "c3", "lost")
    fleet.ack()
    fleet.world.serve(CLUSTER, "c3", "bad")
    fleet.publish()
    fleet.nack(one, "c3: no such thing")
    fleet.write()

    found = client_summary(client=client_get(public_id=one.client), limit=2, attention=2)

    assert [each.name for each in found.types["cluster"].rows] == ["a-lost", "c0"]
    assert found.types["cluster"].count == 6
    assert [(each.name, each.state) for each in found.attention] == [("c3", NACKED), ("a-lost", ERROR_SENT)]
    assert (found.attention_count, found.attention[0].message) == (3, "c3: no such thing")
    assert [each.since for each in found.attention] == [None, None]


def test_client_summary__many_names__asks_as_often(database: str) -> None:
    fleet = Fleet(world_of(60))
    few, many = (fleet.join(*(f"c{number}" for number in range(count)), "lost") for count in (2, 60))
    fleet.ack()
    fleet.write()
    counts = []
    for member in (few, many):
        client = client_get(public_id=member.client)
        client_summary(client=client, limit=100, attention=25)
        with CaptureQueriesContext(connection) as queries:
            found = client_summary(client=client, limit=100, attention=25)
        counts.append((found.types["cluster"].count, len(queries)))

    assert counts == [(3, 2), (61, 2)]


def test_client_has__one_name_moved_lately__that_one_is_named_and_a_silent_type_too() -> None:
    fleet = Fleet(world_of(2))
    one, mute = fleet.join(node_id="me"), fleet.join("c0", node_id="mute", speaks=False)
    fleet.ack(one)
    fleet.write()
    shifted(timedelta(minutes=1))
    fleet.world.serve(CLUSTER, "c1", "new")
    fleet.publish()
    fleet.ack(one)
    fleet.write()
    settled = database_now() - timedelta(seconds=10)

    found = client_has(public_id=one.client, types=["cluster"], settled=settled)
    silent = client_has(public_id=mute.client, types=["cluster"], settled=settled)

    assert {key: each.version for key, each in found.names.items()} == {
        ("cluster", "c0"): "v0",
        ("cluster", "c1"): "new",
    }
    assert found.lately == {("cluster", "c1")}
    assert found.unsaid == frozenset()
    assert silent.unsaid == {"cluster"}


def test_told_of__some_denied_and_some_not_there__are_counted_once_by_what_streams_have() -> None:
    world = world_of(2)
    world.effects["cluster", "c1"] = Effect.DENY
    fleet = Fleet(world)
    one, both = fleet.join("c0", "c1", "lost", node_id="one"), fleet.join("c0", node_id="both")
    fleet.join("lost", node_id="both")
    fleet.join("lost", node_id="both")
    well = fleet.join("c0", node_id="well")
    fleet.ack()
    fleet.write()
    clients = [client_get(public_id=each.client) for each in (one, both, well)]

    with CaptureQueriesContext(connection) as queries:
        told = told_of(clients=clients)

    assert [(told[each.id].denied, told[each.id].missing) for each in clients] == [(1, 1), (0, 1), (0, 0)]
    assert len(queries) <= 3


def test_client_holdings__before_the_history_begins__is_unknown_and_says_why() -> None:
    fleet = Fleet(world_of(1))
    one = fleet.join()
    fleet.ack()
    fleet.write()
    opened = shifted(timedelta(minutes=10))
    fleet.world.serve(CLUSTER, "c0", "second")
    fleet.publish()
    fleet.ack()
    fleet.write()
    HoldingMove.objects.all().delete()

    (row,) = client_holdings(public_id=one.client, at=opened).rows

    assert row.state is UNKNOWN
    assert row.message == "Nobody knows any more: what clients had is kept for 24 h."


def test_resource_holders__clients_in_several_states__are_counted_and_listed() -> None:
    fleet = Fleet(world_of(1))
    good, bad, other = fleet.join(node_id="good"), fleet.join(node_id="bad"), fleet.join("lost", node_id="other")
    fleet.ack()
    fleet.world.serve(CLUSTER, "c0", "second")
    fleet.publish()
    fleet.ack(good)
    fleet.nack(bad, "no")
    fleet.write()

    counts, page = resource_holders(environment_key="default", key=("cluster", "c0"))
    _, refusing = resource_holders(environment_key="default", key=("cluster", "c0"), states=[NACKED])
    lost, _ = resource_holders(environment_key="default", key=("cluster", "lost"))

    assert counts == {ACKED: {"other": 1}, NACKED: {"other": 1}}
    assert {each.node_id for each in page.rows} == {"good", "bad"}
    assert [(each.node_id, each.message) for each in refusing.rows] == [("bad", "no")]
    assert lost == {ERROR_SENT: {"XDS2101": 1}}
    states = holding_states(environment_key="default", word="cluster", names=["c0", "lost"])
    assert {client: holding.state for client, holding in states["c0"].items()} == {
        good.client: ACKED,
        bad.client: NACKED,
    }
    assert list(states["lost"]) == [other.client]


def test_resource_holders__another_environment__counts_nobody_of_this_one() -> None:
    fleet = Fleet(world_of(1))
    fleet.join()
    fleet.ack()
    fleet.write()

    counts, page = resource_holders(environment_key="elsewhere", key=("cluster", "c0"))

    assert (counts, page.rows) == ({}, ())
