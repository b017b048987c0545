"""What is written when: make before break, endpoints behind clusters, one push at a time (I, decisions C5, D14)."""

from math import inf

import pytest

from adsserver.engine.events import Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, names_of, versions_of
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SCOPED_ROUTE, SECRET


@pytest.fixture
def world() -> World:
    world = World()
    world.serve(CLUSTER, "old", "o1")
    world.serve(CLUSTER, "kept", "k1")
    world.serve(ENDPOINT, "old", "e1")
    world.serve(ENDPOINT, "kept", "f1")
    world.serve(LISTENER, "l", "l1")
    world.serve(ROUTE, "r", "r1")
    world.serve(SECRET, "s", "s1")
    return world


def envoy(world: World, variant: Variant) -> Wire:
    """A stream at rest that holds everything."""
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    wants = [(CLUSTER, ()), (ENDPOINT, ("old", "kept")), (LISTENER, ()), (ROUTE, ("r",)), (SECRET, ("s",))]
    for kind, names in wants:
        (response,) = send(kind, *names)
        send(kind, *(() if variant is Variant.DELTA else names), nonce=response.nonce)
    return wire


@pytest.mark.parametrize("variant", Variant)
def test_compose__everything_changes__is_written_in_push_order(world: World, variant: Variant) -> None:
    wire = envoy(world, variant)
    for kind, name in [(ROUTE, "r"), (LISTENER, "l"), (CLUSTER, "kept"), (ENDPOINT, "kept"), (SECRET, "s")]:
        world.serve(kind, name, "2")

    assert [r.kind for r in wire.publish()] == [SECRET, CLUSTER, ENDPOINT, LISTENER, ROUTE]  # I1, I10


def test_compose__sotw_cluster_removed_with_its_route__stays_until_the_route_was_sent(world: World) -> None:
    wire = envoy(world, Variant.SOTW)
    world.remove(CLUSTER, "old")
    world.serve(CLUSTER, "new", "n1")
    world.serve(ROUTE, "r", "r2")

    first, route = wire.publish()
    (last,) = wire.sotw(CLUSTER, nonce=first.nonce)

    assert names_of(first) == ["kept", "new", "old"]
    assert route.kind is ROUTE
    assert names_of(last) == ["kept", "new"]


def test_compose__sotw_cluster_removed_alone__is_one_response(world: World) -> None:
    wire = envoy(world, Variant.SOTW)
    world.remove(CLUSTER, "old")
    world.serve(CLUSTER, "new", "n1")

    assert [names_of(r) for r in wire.publish()] == [["kept", "new"]]


def test_compose__delta_cluster_removed_with_its_route__goes_last(world: World) -> None:
    wire = envoy(world, Variant.DELTA)
    world.remove(CLUSTER, "old")
    world.remove(LISTENER, "l")
    world.serve(ROUTE, "r", "r2")

    written = [(r.kind, r.removed) for r in wire.publish()]

    assert written == [(ROUTE, ()), (LISTENER, ("l",)), (CLUSTER, ("old",))]  # I1


def test_compose__cluster_denied__is_gone_at_once_and_never_sent_again(world: World) -> None:
    wire = envoy(world, Variant.SOTW)
    world.rule(CLUSTER, "old", Effect.DENY)
    world.serve(CLUSTER, "new", "n1")
    world.serve(ROUTE, "r", "r2")

    assert [names_of(r) for r in wire.publish() if r.kind is CLUSTER] == [["kept", "new"]]  # S4


@pytest.mark.parametrize("variant", Variant)
def test_compose__cluster_changes__its_endpoints_follow_unchanged_and_unasked(world: World, variant: Variant) -> None:
    world.serve(CLUSTER, "kept", "k1", eds_name="kept")
    wire = envoy(world, variant)
    world.serve(CLUSTER, "kept", "k2")

    clusters, endpoints = wire.publish()

    assert (clusters.kind, endpoints.kind) == (CLUSTER, ENDPOINT)
    assert versions_of(endpoints) == {"kept": "f1"}  # I3: nothing but the changed cluster's


def test_compose__changed_clusters_fill_two_responses__the_endpoints_of_all_follow(world: World) -> None:
    wire = envoy(world, Variant.DELTA)
    for name in ("kept", "old"):
        world.serve(CLUSTER, name, "2", size=600_000)

    written = wire.publish()

    assert [(r.kind, names_of(r)) for r in written] == [
        (CLUSTER, ["kept"]),
        (CLUSTER, ["old"]),
        (ENDPOINT, ["kept", "old"]),
    ]  # I3


def test_compose__client_owes_an_answer__newer_states_coalesce_behind_it(world: World) -> None:
    wire = envoy(world, Variant.DELTA)
    world.serve(ROUTE, "r", "r2")
    (push,) = wire.publish()
    for version in ("r3", "r4"):
        world.serve(ROUTE, "r", version)
        assert wire.publish() == []  # I3, decisions C5

    assert [versions_of(r) for r in wire.delta(ROUTE, nonce=push.nonce)] == [{"r": "r4"}]


def test_compose__client_silent_for_thirty_seconds__is_passed(world: World) -> None:
    wire = envoy(world, Variant.SOTW)
    world.serve(ROUTE, "r", "r2")
    wire.publish()
    world.serve(ROUTE, "r", "r3")
    wire.publish()
    assert wire.session.wake_at() == wire.now + 30

    wire.now += 30

    assert [versions_of(r) for r in wire.written()] == [{"r": "r3"}]  # B13, decisions C5
    assert wire.session.wake_at() == inf


def test_compose__push_outstanding__an_added_name_is_answered_all_the_same(world: World) -> None:
    wire = envoy(world, Variant.DELTA)
    world.serve(ROUTE, "r", "r2")
    wire.publish()

    assert [names_of(r) for r in wire.delta(ROUTE, "other")] == [[]]  # decisions C5: answers are exempt


def test_compose__eight_answers_outstanding__the_ninth_waits_for_one_of_them(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    answers = [wire.delta(ROUTE, f"name{number}") for number in range(9)]

    assert [len(answer) for answer in answers] == [1] * 8 + [0]
    assert len(wire.delta(ROUTE, nonce="1")) == 1  # decisions C5


def test_compose__removal_waits_for_a_client_that_does_not_answer__goes_ahead_after_thirty_seconds(
    world: World,
) -> None:
    wire = envoy(world, Variant.DELTA)
    world.serve(ROUTE, "r", "r2")
    wire.publish()
    world.serve(ROUTE, "r", "r3")
    world.remove(CLUSTER, "old")
    assert wire.publish() == []

    wire.now += 30

    assert [(r.kind, r.removed) for r in wire.written()] == [(ROUTE, ()), (CLUSTER, ("old",))]


def test_offer__nothing_changes_for_the_stream__is_clean(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "r")
    world.serve(CLUSTER, "kept", "k2")

    assert wire.session.offer(world.publish(), wire.now) is False


def test_compose__sotw_listener_removed_where_only_a_cluster_changes__is_one_response(world: World) -> None:
    wire = envoy(world, Variant.SOTW)
    world.serve(CLUSTER, "kept", "k2", eds_name="")
    world.serve(LISTENER, "m", "m1")
    world.forget(LISTENER, "l")

    written = [(r.kind, names_of(r)) for r in wire.publish()]

    # D14: what is gone stays only while another type still has something to say; the clusters were said.
    assert written == [(CLUSTER, ["kept", "old"]), (LISTENER, ["m"])]


@pytest.mark.parametrize("variant", Variant)
def test_compose__one_scope_takes_the_place_of_another__is_one_response(world: World, variant: Variant) -> None:
    world.serve(SCOPED_ROUTE, "before", "1")
    wire = envoy(world, variant)
    ask = wire.delta if variant is Variant.DELTA else wire.sotw
    (response,) = ask(SCOPED_ROUTE)
    ask(SCOPED_ROUTE, nonce=response.nonce)
    world.remove(SCOPED_ROUTE, "before")
    world.serve(SCOPED_ROUTE, "after", "1")
    world.serve(ROUTE, "r", "r2")

    scopes, route = wire.publish()

    # I6: the key of both may be the same; what goes first would take its traffic away, what comes first is refused.
    assert (scopes.kind, names_of(scopes), route.kind) == (SCOPED_ROUTE, ["after"], ROUTE)
    assert scopes.removed == (("before",) if variant is Variant.DELTA else ())


@pytest.mark.parametrize("variant", Variant)
def test_compose__scope_goes_and_none_comes__goes_last(world: World, variant: Variant) -> None:
    world.serve(SCOPED_ROUTE, "s", "1")
    wire = envoy(world, variant)
    ask = wire.delta if variant is Variant.DELTA else wire.sotw
    (response,) = ask(SCOPED_ROUTE)
    ask(SCOPED_ROUTE, nonce=response.nonce)
    world.remove(SCOPED_ROUTE, "s")
    world.serve(ROUTE, "r", "r2")

    route, scopes = wire.publish()

    assert (route.kind, scopes.kind, names_of(scopes)) == (ROUTE, SCOPED_ROUTE, [])  # I1
    assert scopes.removed == (("s",) if variant is Variant.DELTA else ())


def test_compose__much_comes_where_something_goes__what_goes_is_in_the_first_response(world: World) -> None:
    world.serve(SCOPED_ROUTE, "z", "1")
    wire = Wire(world, Variant.DELTA)
    (response,) = wire.delta(SCOPED_ROUTE)
    wire.delta(SCOPED_ROUTE, nonce=response.nonce)
    world.remove(SCOPED_ROUTE, "z")
    for name in ("a", "b"):
        world.serve(SCOPED_ROUTE, name, "1", size=600_000)

    written = wire.publish()

    assert [(names_of(r), r.removed) for r in written] == [(["a"], ("z",)), (["b"], ())]  # I6


def test_compose__delta_removal_unanswered__the_next_push_waits_for_it(world: World) -> None:
    wire = envoy(world, Variant.DELTA)
    world.remove(CLUSTER, "old")
    (gone,) = wire.publish()
    world.serve(CLUSTER, "kept", "k2", eds_name="")

    assert wire.publish() == []  # I3
    assert [names_of(r) for r in wire.delta(CLUSTER, nonce=gone.nonce)] == [["kept"]]


def test_compose__delta_wildcard_push_unanswered__the_next_push_waits_for_it(world: World) -> None:
    wire = envoy(world, Variant.DELTA)
    world.serve(CLUSTER, "kept", "k2", eds_name="")
    assert len(wire.publish()) == 1
    world.serve(CLUSTER, "kept", "k3", eds_name="")
    assert wire.publish() == []
    assert wire.session.wake_at() == wire.now + 30

    assert [versions_of(r) for r in wire.delta(CLUSTER, nonce="6")] == [{"kept": "k3"}]


def test_compose__sotw_push_outstanding__an_added_cluster_is_answered_all_the_same(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER, "kept")
    wire.sotw(CLUSTER, "kept", nonce="1")
    world.serve(CLUSTER, "kept", "k2")
    wire.publish()

    assert [names_of(r) for r in wire.sotw(CLUSTER, "kept", "old")] == [["kept", "old"]]  # B4, decisions C5


def test_compose__cluster_that_was_refused_may_be_in_use__its_endpoints_follow_the_next_state(world: World) -> None:
    wire = envoy(world, Variant.SOTW)
    world.serve(CLUSTER, "old", "o2")
    (push, _) = wire.publish()
    wire.sotw(CLUSTER, nonce=push.nonce, nack="no")
    world.serve(CLUSTER, "kept", "k2")

    clusters, endpoints = wire.publish()

    # B12, I3: whether the client took the refused one up nobody knows; what replaces it warms anew.
    assert versions_of(clusters) == {"old": "o1", "kept": "k2"}
    assert names_of(endpoints) == ["kept", "old"]
