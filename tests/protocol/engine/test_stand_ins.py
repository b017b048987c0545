"""What stands in for refused content, and what must not get lost while suspects are told apart (B7, B12, F17; C8)."""

from math import inf

import pytest

from adsserver.engine.events import Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, names_of, versions_of
from xdscore.resource_types import CLUSTER, ROUTE


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
    assert wire.session.wake_at() == wire.now + 1  # resolutions D32
    world.serve(ROUTE, "a", "a2")

    (push,) = wire.publish()

    assert versions_of(push) == {"a": "a2"}
    assert wire.session.wake_at() == inf
