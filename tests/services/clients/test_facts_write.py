"""Batches of facts in the real database, on SQLite and on PostgreSQL."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from adsserver.engine.events import Respond
from adsserver.ports import StreamInfo
from adsserver.store.facts import FactBuffer
from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.models import Environment
from controlplane.catalog.services import environment_create
from controlplane.catalog.values import EnvironmentPolicy, ProvenContent
from controlplane.clients.facts import MAX_BATCH_KEYS, FactBatch, ReplicaFact, StreamEnd, SubscriptionState
from controlplane.clients.filtering import ClientFilter
from controlplane.clients.identity import client_id
from controlplane.clients.models import Client, ContentProof, Nack, NameSet, Replica, Stream, Subscription
from controlplane.clients.selectors import (
    client_get,
    client_list,
    client_streams,
    client_subscriptions,
    connected_counts,
    nacks_pending,
    proofs_pending,
    replica_list,
    subscription_counts,
)
from controlplane.clients.services import (
    SILENT_S,
    facts_prune,
    facts_write,
    nacks_mark_digested,
    proofs_drop,
    streams_reap,
)
from controlplane.common.errors import NotFound
from controlplane.database.aliases import READER
from controlplane.database.append_only import maintenance
from tests.support.facts import NothingSecret, acknowledged, content, rejected, respond, stream, subscribed
from xdscore.resource_types import ENDPOINT

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]


def id_of(each: StreamInfo) -> str:
    return client_id(environment=each.environment, identity=each.identity, node_id=each.node_id)


def write(buffer: FactBuffer) -> None:
    """What the thread does each second, on this thread's connection."""
    buffer._take()
    buffer._flush()
    assert buffer._failing_since is None


def wildcard_clients(buffer: FactBuffer, *streams: StreamInfo, response: Respond) -> None:
    for each in streams:
        buffer.opened(each)
        buffer.learnt(each, subscribed(wildcard=True))
        buffer.sent(each, response)
        buffer.learnt(each, acknowledged(response))


def test_facts_write__a_client_with_a_stream__is_shown_with_what_it_asks_for() -> None:
    buffer, one, response = FactBuffer(), stream(identity="spiffe://corp/pay", node_id="a/b?c"), respond(content("a"))
    wildcard_clients(buffer, one, response=response)
    buffer.learnt(one, subscribed("e2", "e1", kind=ENDPOINT))
    write(buffer)

    client = client_get(public_id=id_of(one))

    assert (client.node_id, client.identity, client.environment) == ("a/b?c", "spiffe://corp/pay", "default")
    assert (client.connected, client.family, client.user_agent_version) == (True, "envoy", "1.40.0")
    assert [(each.type, each.state, each.wildcard, each.names) for each in client.types] == [
        ("cluster", SubscriptionState.ACKED, True, 0),
        ("endpoint", SubscriptionState.REQUESTED, False, 2),
    ]
    cluster, endpoint = client_subscriptions(public_id=client.id)
    assert (cluster.sent, cluster.acked, endpoint.names) == ("w1", "w1", ("e1", "e2"))
    assert abs(cluster.sent_at - timezone.now()) < timedelta(seconds=5)  # type: ignore[operator]
    (seen,) = client_streams(public_id=client.id)
    assert (seen.variant, seen.closed_at) == ("sotw", None)
    assert connected_counts() == {"default": 1}
    counts = subscription_counts()
    assert (counts[SubscriptionState.ACKED], counts[SubscriptionState.REQUESTED]) == (1, 1)


def test_facts_write__same_states_again__leaves_the_same_rows() -> None:
    buffer, one, response = FactBuffer(), stream(), respond(content("a"))
    wildcard_clients(buffer, one, response=response)
    write(buffer)
    buffer._report_again()

    write(buffer)

    counts = [model.objects.count() for model in (Replica, Client, Stream, Subscription, ContentProof)]
    assert counts == [1, 1, 1, 1, 1]


def test_facts_write__changed_subscription__names_are_replaced_and_sets_are_shared() -> None:
    buffer, one, two = FactBuffer(), stream(1), stream(2)
    for each in (one, two):
        buffer.opened(each)
        buffer.learnt(each, subscribed("a", "b"))
    write(buffer)
    assert NameSet.objects.count() == 1

    buffer.learnt(one, subscribed("b", "c"))
    write(buffer)

    assert client_subscriptions(public_id=id_of(one))[0].names == ("b", "c")
    assert client_subscriptions(public_id=id_of(two))[0].names == ("a", "b")


def test_facts_write__one_known_and_one_new_stream__each_has_its_own_state_and_times() -> None:
    now = 100.0
    buffer, known, new = FactBuffer(clock=lambda: now), stream(1), stream(2)
    buffer.opened(known)
    buffer.learnt(known, subscribed("a", kind=ENDPOINT))
    write(buffer)
    (asked,) = client_subscriptions(public_id=id_of(known))
    assert (asked.sent, asked.sent_at, asked.acked_at) == ("", None, None)

    wildcard_clients(buffer, new, response=respond(content("a")))
    buffer.sent(known, respond(content("b"), kind=ENDPOINT, version="w2"))
    now = 107.5
    write(buffer)

    (sent,) = client_subscriptions(public_id=id_of(known))
    (acked,) = client_subscriptions(public_id=id_of(new))
    assert (sent.state, sent.names, sent.sent, sent.acked, sent.acked_at) == ("sent", ("a",), "w2", "", None)
    assert (acked.state, acked.wildcard, acked.sent, acked.acked) == ("acked", True, "w1", "w1")
    for at in (sent.sent_at, acked.sent_at, acked.acked_at):
        assert at is not None
        assert timedelta(seconds=7.4) < timezone.now() - at < timedelta(seconds=12)


@pytest.mark.parametrize("newcomers", [0, 1, 12])
def test_facts_write__many_streams_say_the_same__each_has_its_own_times(newcomers: int) -> None:
    now = 100.0
    buffer, changed = FactBuffer(clock=lambda: now), respond(content("a"), nonce="2", version="w2")
    known = [stream(number) for number in range(12)]
    new = [stream(100 + number) for number in range(newcomers)]
    wildcard_clients(buffer, *known, response=respond(content("a")))
    write(buffer)
    for each in new:
        buffer.opened(each)
        buffer.learnt(each, subscribed(wildcard=True))
    streams = [*known, *new]
    for each in streams:
        buffer.sent(each, changed)
    now += 5
    for each in streams:
        now += 1
        buffer.learnt(each, acknowledged(changed))

    write(buffer)

    found = [client_subscriptions(public_id=id_of(each))[0] for each in streams]
    assert {(each.state, each.wildcard, each.sent, each.acked) for each in found} == {("acked", True, "w2", "w2")}
    waited = [each.acked_at - each.sent_at for each in found if each.acked_at is not None and each.sent_at is not None]
    assert waited == [timedelta(seconds=6 + number) for number in range(len(streams))]


def test_facts_write__many_ask_for_a_type_that_some_had__each_has_it_once() -> None:
    buffer, streams = FactBuffer(), [stream(number) for number in range(12)]
    for number, each in enumerate(streams):
        buffer.opened(each)
        if number % 2:
            buffer.learnt(each, subscribed("a", kind=ENDPOINT))
    write(buffer)
    for each in streams:
        buffer.learnt(each, subscribed("a", "b", kind=ENDPOINT))

    write(buffer)

    found = [client_subscriptions(public_id=id_of(each)) for each in streams]
    assert [[(row.type, row.names) for row in rows] for rows in found] == [[("endpoint", ("a", "b"))]] * 12


@pytest.mark.parametrize("number_of", [1, 3])
def test_facts_write__clients_that_share_some_words__each_has_its_own(number_of: int) -> None:
    environment_create(key="other", policy=EnvironmentPolicy(), actor=SYSTEM)
    buffer = FactBuffer()
    alike = [stream(number, identity="spiffe://corp/pay") for number in range(number_of)]
    unlike = [
        stream(100 + number, environment=key, node_cluster=f"cluster-{number}", user_agent="gRPC Go")
        for number, key in enumerate(["default", "other"])
    ]
    for each in alike:
        buffer.opened(each)
    write(buffer)
    for each in (*alike, *unlike):
        buffer.opened(each)
    write(buffer)

    found = [client_get(public_id=id_of(each)) for each in (*alike, *unlike)]

    assert [(each.environment, each.identity, each.node_id, each.node_cluster, each.family) for each in found] == [
        *[("default", "spiffe://corp/pay", f"node-{number}", "demo", "envoy") for number in range(number_of)],
        ("default", "", "node-100", "cluster-0", "grpc-go"),
        ("other", "", "node-101", "cluster-1", "grpc-go"),
    ]
    assert all(each.connected for each in found)


def test_facts_write__streams_that_are_known__are_changed_in_place() -> None:
    now = 100.0
    buffer, one, response = FactBuffer(clock=lambda: now), stream(), respond(content("a"))
    buffer.opened(one)
    buffer.learnt(one, subscribed(wildcard=True))
    write(buffer)

    buffer.sent(one, response)
    now = 103.0
    write(buffer)
    (sent,) = client_subscriptions(public_id=id_of(one))
    buffer.learnt(one, acknowledged(response))
    write(buffer)
    (acked,) = client_subscriptions(public_id=id_of(one))

    assert (sent.state, sent.wildcard, sent.names, sent.sent, sent.acked) == ("sent", True, (), "w1", "")
    assert sent.acked_at is None
    assert (acked.state, acked.wildcard, acked.names, acked.sent, acked.acked) == ("acked", True, (), "w1", "w1")
    assert acked.sent_at is not None
    assert acked.acked_at is not None
    assert acked.acked_at - acked.sent_at == timedelta(seconds=3)


def test_facts_write__closed_stream__client_is_disconnected_with_the_reason() -> None:
    buffer, one = FactBuffer(), stream()
    buffer.opened(one)
    write(buffer)
    buffer.closed(one, "the client left")
    write(buffer)

    client = client_get(public_id=id_of(one))

    assert not client.connected
    assert [each.cause for each in client_streams(public_id=client.id)] == ["the client left"]
    assert client_subscriptions(public_id=client.id) == ()
    assert connected_counts() == {}


def test_facts_write__environment_that_is_gone__writes_nothing_and_fails_nothing() -> None:
    buffer, lost, kept = FactBuffer(), stream(1, environment="deleted"), stream(2)
    for each in (lost, kept):
        response = respond(content("a"))
        wildcard_clients(buffer, each, response=response)
        buffer.learnt(each, rejected(response))

    write(buffer)

    assert [row.node_id for row in Client.objects.all()] == ["node-2"]
    assert (Stream.objects.count(), Subscription.objects.count(), Nack.objects.count()) == (1, 1, 1)


def test_facts_write__failure_in_the_middle__nothing_of_the_batch_is_there() -> None:
    replica = ReplicaFact("r" * 32, "host", 1, 0.0)
    broken = FactBatch(replica=replica, proven=(ProvenContent("default", "no such type", "a", "v1"),))

    with pytest.raises(Exception, match="proof_type_known"):
        facts_write(batch=broken)

    assert Replica.objects.count() == 0


def test_facts_write__batch_over_the_limit__is_refused() -> None:
    ends = tuple(StreamEnd(str(number), "", 0.0) for number in range(MAX_BATCH_KEYS + 1))

    with pytest.raises(ValueError, match="4001 keys"):
        facts_write(batch=FactBatch(replica=ReplicaFact("r" * 32, "host", 1, 0.0), ends=ends))


def test_facts_write__hostile_words__are_stored_harmless() -> None:
    buffer = FactBuffer(contents=NothingSecret())
    one = stream(user_agent="evil\x00\x1b[2J\u202e" + "x" * 500, node_cluster="a\nb")
    response = respond(content("a"))
    wildcard_clients(buffer, one, response=response)
    buffer.learnt(one, rejected(response, "<img onerror=x>\x00\x1b]0;\u2066" + "y" * 100_000))

    write(buffer)

    client = client_get(public_id=id_of(one))
    (nack,) = nacks_pending(limit=10)
    assert client.user_agent.startswith("evil\\x00\\x1b[2J\\u202e")
    assert client.node_cluster == "a\\x0ab"
    assert nack.text.startswith("<img onerror=x>\\x00\\x1b]0;\\u2066")
    assert len(nack.text.encode()) == 4096


def test_facts_write__proof_reported_while_it_is_digested__is_not_lost() -> None:
    buffer, one = FactBuffer(), stream()
    for version in ("v1", "v2"):
        wildcard_clients(buffer, one, response=respond(content("a", version)))
    write(buffer)
    taken = proofs_pending(limit=10)
    wildcard_clients(buffer, one, response=respond(content("a", "v1")))
    write(buffer)

    proofs_drop(proofs=taken)

    assert [each.content.version for each in proofs_pending(limit=10)] == ["v1"]


def test_nacks_mark_digested__twice__only_the_first_takes_them() -> None:
    buffer, one, response = FactBuffer(), stream(), respond(content("a"))
    wildcard_clients(buffer, one, response=response)
    buffer.learnt(one, rejected(response, "no"))
    write(buffer)
    ids = [nack.id for nack in nacks_pending(limit=10)]

    assert nacks_mark_digested(ids=ids) == frozenset(ids)
    assert nacks_mark_digested(ids=ids) == frozenset()
    assert nacks_pending(limit=10) == ()


def test_streams_reap__replica_that_went_silent__its_streams_are_closed_until_it_speaks_again() -> None:
    silent, alive = FactBuffer(), FactBuffer()
    one, two = stream(1), stream(2)
    silent.opened(one)
    alive.opened(two)
    write(silent)
    write(alive)
    Replica.objects.filter(pk=silent._id).update(seen_at=timezone.now() - timedelta(seconds=SILENT_S + 1))

    assert streams_reap() == 1
    assert [
        client.node_id for client in client_list(environment_keys=["default"], wanted=ClientFilter(connected=True))
    ] == ["node-2"]
    assert streams_reap() == 0

    silent._report_again()
    write(silent)
    assert connected_counts() == {"default": 2}


def test_stop__last_word__closes_the_streams_of_this_process_at_once() -> None:
    buffer = FactBuffer()
    buffer.opened(stream())
    buffer._take()

    buffer._flush(stopping=True)

    assert connected_counts() == {}
    (replica,) = replica_list()
    assert (replica.stopped, replica.streams) == (True, 0)


def test_client_list__pages_and_filters__by_id_node_and_environment() -> None:
    buffer = FactBuffer()
    for number in range(5):
        buffer.opened(stream(number))
    write(buffer)

    first = client_list(environment_keys=["default"], limit=3)
    rest = client_list(environment_keys=["default"], after=first[-1].id)

    assert len({each.id for each in (*first, *rest)}) == 5
    assert [
        each.node_id for each in client_list(environment_keys=["default"], wanted=ClientFilter(node_id="node-3"))
    ] == ["node-3"]
    assert client_list(environment_keys=["other"]) == ()


def test_client_get__unknown__says_so() -> None:
    with pytest.raises(NotFound, match="There is no client"):
        client_get(public_id="nobody")
    with pytest.raises(NotFound):
        client_subscriptions(public_id="nobody")


def test_facts_prune__old_and_crowded_rows__go_and_the_rest_stays() -> None:
    buffer, one, two = FactBuffer(contents=NothingSecret()), stream(1), stream(2)
    for each in (one, two):
        response = respond(content("a"))
        wildcard_clients(buffer, each, response=response)
        for number in range(25):
            buffer.learnt(each, rejected(response, f"no {number}"))
    buffer.closed(one, "left")
    write(buffer)
    day = timedelta(hours=25)
    Stream.objects.filter(pk=one.id).update(closed_at=timezone.now() - day)
    Client.objects.filter(pk=id_of(one)).update(last_seen=timezone.now() - day)
    nacks_mark_digested(ids=Nack.objects.values_list("pk", flat=True))

    facts_prune()

    assert set(Stream.objects.values_list("pk", flat=True)) == {two.id}
    assert Nack.objects.count() == 40  # 20 of each client and type
    assert Client.objects.count() == 2  # a client is kept as long as its NACKs
    Nack.objects.filter(client=id_of(one)).update(at=timezone.now() - timedelta(days=15))
    facts_prune()
    assert [row.node_id for row in Client.objects.all()] == ["node-2"]


def test_facts_prune__environment_deleted__everything_about_it_goes() -> None:
    buffer, response = FactBuffer(), respond(content("a"))
    wildcard_clients(buffer, stream(), response=response)
    buffer.learnt(stream(), rejected(response))
    write(buffer)

    with transaction.atomic(), maintenance():
        Environment.objects.all().delete()

    assert (Client.objects.count(), Stream.objects.count(), Nack.objects.count()) == (0, 0, 0)


def test_thread__real_database__facts_arrive_over_a_connection_of_its_own() -> None:
    buffer, response = FactBuffer(), respond(content("a"))
    buffer.start()
    wildcard_clients(buffer, *(stream(number) for number in range(50)), response=response)

    buffer.stop(10)

    assert not buffer._thread.is_alive()
    assert Stream.objects.exclude(closed_at=None).count() == 50
    assert Subscription.objects.filter(state="acked").count() == 50
    assert threading.active_count() < 20
    assert connection.connection is not None  # this thread's own was left alone
