"""The list of clients: how each stands, those that need attention first."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from pytest_django import DjangoAssertNumQueries

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.clients.browsing import (
    ClientLine,
    Standing,
    client_page,
    client_refusals,
    client_standings,
    standing_counts,
)
from controlplane.clients.filtering import EVERY_CLIENT, ClientFilter
from controlplane.clients.models import Stream, Subscription
from controlplane.clients.selectors import client_get, sent_before
from controlplane.database.aliases import READER
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.facts import subscribed
from tests.support.manifests import cluster
from xdscore.access import Effect
from xdscore.client_kinds import ClientFamily

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


@pytest.fixture
def fleet(database: str) -> Fleet:
    """Four clients: node-1 is content, node-2 refused, node-3 has been silent for a minute, node-4 has left."""
    four = Fleet(4)
    publish(cluster("pay"))
    four.accept(held("pay", 1))
    publish(cluster("pay", connect_timeout="2s"))
    response = four.send(held("pay", 2))
    four.refuse(response, "no such file", suspects=(held("pay", 2),), who=slice(1, 2))
    of_node_3 = Subscription.objects.filter(stream__client__node_id="node-3")
    of_node_3.update(sent_at=F("sent_at") - timedelta(minutes=1))
    Subscription.objects.filter(stream__client__node_id="node-1").update(state="acked")
    four.buffer.closed(four.streams[3], "the client went away")
    four.write()
    return four


def listed(wanted: ClientFilter = EVERY_CLIENT, **asked: object) -> tuple[tuple[ClientLine, ...], int]:
    return client_page(environment_keys=["default"], wanted=wanted, **asked)  # type: ignore[arg-type]  # the tests' own words


def test_client_page__four_clients__those_that_need_attention_first(
    fleet: Fleet, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(15):
        lines, count = listed()

    assert [(line.client.node_id, line.standing) for line in lines] == [
        ("node-2", Standing.REFUSING),
        ("node-3", Standing.SILENT),
        ("node-1", Standing.CONNECTED),
        ("node-4", Standing.GONE),
    ]
    assert count == 4
    assert lines[0].refused_at is not None
    assert [line.stream is None for line in lines] == [False, False, False, True]


def test_client_page__filtered__holds_what_fits(fleet: Fleet) -> None:
    def nodes(wanted: ClientFilter = EVERY_CLIENT, **asked: object) -> list[str]:
        return [line.client.node_id for line in listed(wanted, **asked)[0]]

    assert nodes(ClientFilter(text="NODE-3")) == ["node-3"]
    assert nodes(ClientFilter(text="127.0.0.1")) == ["node-2", "node-3", "node-1"]
    assert nodes(ClientFilter(text="%")) == []
    assert nodes(standing=Standing.GONE) == ["node-4"]
    assert nodes(ClientFilter(family=ClientFamily.ENVOY), offset=1, limit=2) == ["node-3", "node-1"]
    assert nodes(ClientFilter(family=ClientFamily.GRPC_GO)) == []
    assert nodes(ClientFilter(connected=True)) == ["node-2", "node-3", "node-1"]


@pytest.mark.parametrize(
    "asked", [{}, {"wanted": ClientFilter(text="node")}, {"standing": Standing.CONNECTED}], ids=["all", "text", "state"]
)
def test_client_page__behind_the_last_one__is_empty_and_says_how_many_there_are(
    fleet: Fleet, asked: dict[str, Any]
) -> None:
    lines, count = listed(**asked)

    assert count == len(lines) > 0
    assert listed(**asked, limit=1)[1] == count
    assert listed(**asked, offset=50) == ((), count)


def test_standing_counts__of_the_same_clients__in_a_few_queries(
    fleet: Fleet, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(9):  # the newest snapshots decide, of all environments at once
        counts = standing_counts(environment_keys=["default", "prod"])

    assert set(counts["prod"].values()) == {0}
    assert {standing.value: count for standing, count in counts["default"].items()} == {
        "refusing": 1,
        "silent": 1,
        "denied": 0,
        "connected": 1,
        "gone": 1,
    }


def test_standing__one_refuses_and_acknowledged_what_stands_in_one_is_denied__page_counts_and_filters_agree(
    fleet: Fleet, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "led*"), actor=DANA)
    rebuild()
    fleet.buffer.learnt(fleet.streams[0], subscribed("pay", "ledger"))
    fleet.accept(held("pay", 1), who=slice(0, 2))

    with django_assert_max_num_queries(11):
        counts = standing_counts(environment_keys=["default", "prod"])["default"]
    standings = {line.client.node_id: line.standing for line in listed()[0]}

    assert standings["node-2"] is Standing.REFUSING
    assert standings["node-1"] is Standing.DENIED
    for standing in Standing:
        lines, count = listed(standing=standing)
        assert count == len(lines) == counts[standing]
        assert set(client_standings(clients=[line.client for line in lines]).values()) <= {standing}
        assert {client_standings(clients=[line.client])[line.client.id] for line in lines} <= {standing}


def test_standing__refused_content_is_not_published_any_more__it_is_well(fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="3s"))
    fleet.accept(held("pay", 3), who=slice(0, 2))

    assert {line.client.node_id for line in listed(standing=Standing.REFUSING)[0]} == set()


def test_client_refusals__stream_is_closed__are_still_told(fleet: Fleet) -> None:
    client = listed(ClientFilter(text="node-2"))[0][0].client
    Stream.objects.filter(client=client.id).update(closed_at=F("opened_at"))

    (nack,) = client_refusals(public_id=client.id)

    assert (nack.text, nack.type) == ("no such file", "cluster")
    assert client_get(public_id=client.id).connected is False


def test_sent_before__of_four_clients__is_of_the_connected_ones_that_were_sent_theirs_before(fleet: Fleet) -> None:
    silent = Subscription.objects.get(stream__client__node_id="node-3")
    environment = silent.stream.client.environment_id
    assert silent.sent_at is not None

    assert sent_before(silent.sent_at) == {}
    assert sent_before(silent.sent_at + timedelta(seconds=1)) == {environment: {silent.sent_at}}
