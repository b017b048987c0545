"""What stands in for refused content, and what must not get lost while suspects are told apart (B7, B12, F17;
decisions C8).
"""

from math import inf

import pytest

from adsserver.engine.events import Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, names_of, versions_of
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE


@pytest.fixture
def world() -> World:
    world = World()
    for name in "abcd":
        world.serve(CLUSTER, name, f"{name}1")
        world.serve(ROUTE, name, f"{name}1")
    return world


def test_full_state__what_stands_in_is_refused_too__neither_comes_back(world: World) -> None:
    world.serve(CLUSTER, "c", "c2", proven="c1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    text = "xDS response validation errors: [resource index 2: c: INVALID_ARGUMENT: bad]"
    (proven,) = wire.sotw(CLUSTER, nonce="1", nack=text)
    (without,) = wire.sotw(CLUSTER, nonce="2", nack=text)
    wire.sotw(CLUSTER, nonce="3")
    world.serve(CLUSTER, "a", "a2")

    (push,) = wire.publish()

    assert versions_of(proven)["c"] == "c1"
    assert names_of(without) == names_of(push) == ["a", "b", "d"]  # N3


def test_isolation__removal_meanwhile__is_said_when_the_suspects_are_told_apart(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, *"abcd")
    wire.delta(ROUTE, nonce="1")
    for name in "ab":
        world.serve(ROUTE, name, f"{name}2")
    wire.publish()
    world.remove(ROUTE, "c")
    assert wire.publish() == []

    (one,) = wire.delta(ROUTE, nonce="2", nack="no")
    (other,) = wire.delta(ROUTE, nonce=one.nonce)
    (last,) = wire.delta(ROUTE, nonce=other.nonce)

    assert [versions_of(each) for each in (one, other, last)] == [{"a": "a2"}, {"b": "b2"}, {}]
    assert last.removed == ("c",)  # E1


def test_repeated_ask__answered_by_a_change_meanwhile__is_not_waited_for(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(ROUTE, "a")
    wire.sotw(ROUTE, "a", nonce="1")
    wire.sotw(ROUTE, "a", nonce="1")
    wire.sotw(ROUTE, "a", nonce="2")
    assert wire.sotw(ROUTE, "a", nonce="2") == []
    assert wire.session.wake_at() == wire.now + 1  # decisions D32
    world.serve(ROUTE, "a", "a2")

    (push,) = wire.publish()

    assert versions_of(push) == {"a": "a2"}
    assert wire.session.wake_at() == inf


def test_parts__what_stands_in_is_refused_too__neither_comes_back(world: World) -> None:
    world.serve(ROUTE, "a", "a2", proven="a1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "a")
    (proven,) = wire.delta(ROUTE, nonce="1", nack="no")

    assert versions_of(proven) == {"a": "a1"}
    assert wire.delta(ROUTE, nonce=proven.nonce, nack="no") == []  # N3
    assert wire.publish() == []


def test_parts__another_name_is_left__what_stands_in_stays(world: World) -> None:
    world.serve(ROUTE, "a", "a2", proven="a1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "a")
    (proven,) = wire.delta(ROUTE, nonce="1", nack="no")
    wire.delta(ROUTE, "b", nonce=proven.nonce)

    assert wire.delta(ROUTE, unsubscribe=("b",)) == []
    assert wire.publish() == []  # N3: what was refused is not sent because of another name


def test_parts__another_name_is_left__a_removal_that_waits_is_said(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, *"abc")
    wire.delta(ROUTE, nonce="1")
    world.serve(ROUTE, "a", "a2")
    wire.publish()
    world.remove(ROUTE, "c")
    assert wire.publish() == []
    assert wire.delta(ROUTE, unsubscribe=("b",)) == []

    (late,) = wire.delta(ROUTE, nonce="2")

    assert late.removed == ("c",)  # E1


def test_full_state__stand_in_beside_a_change__only_the_changed_one_s_endpoints_follow(world: World) -> None:
    for name in "ab":
        world.serve(ENDPOINT, name, f"e{name}")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    wire.sotw(ENDPOINT, "a", "b")
    wire.sotw(ENDPOINT, "a", "b", nonce="2")
    world.serve(CLUSTER, "a", "a2")
    _, endpoints = wire.publish()
    wire.sotw(ENDPOINT, "a", "b", nonce=endpoints.nonce)
    wire.sotw(CLUSTER, nonce="3", nack="no")
    followed = []
    for version in ("b2", "b3"):
        world.serve(CLUSTER, "b", version)
        clusters, endpoints = wire.publish()
        followed.append((versions_of(clusters)["a"], names_of(endpoints)))
        wire.sotw(CLUSTER, nonce=clusters.nonce)
        wire.sotw(ENDPOINT, "a", "b", nonce=endpoints.nonce)

    # I3; B12: after the refusal a1 may be a change, too, but not once it was acknowledged.
    assert followed == [("a1", ["a", "b"]), ("a1", ["b"])]
