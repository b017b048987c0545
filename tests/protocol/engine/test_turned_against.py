"""A client refuses what it took before, and says so by name: that is blamed and not its neighbour (N2, B12)."""

import pytest

from adsserver.engine.events import Rejected, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, names_of, versions_of
from xdscore.evidence import Evidence
from xdscore.resource_types import CLUSTER, ROUTE


def core(names: list[str], *bad: str) -> str:
    rows = [f"resource index {names.index(name)}: {name}: INVALID_ARGUMENT: bad" for name in bad]
    return f"xDS response validation errors: [{'; '.join(rows)}]"


def blamed(wire: Wire) -> tuple[list[str], Evidence]:
    (fact,) = [fact for fact in wire.facts if isinstance(fact, Rejected)]
    return [member.name for member in fact.suspects], fact.evidence


@pytest.fixture
def world() -> World:
    world = World()
    for name in "abcd":
        world.serve(CLUSTER, name, f"{name}1")
        world.serve(ROUTE, name, f"{name}1")
    return world


@pytest.fixture
def turned(world: World) -> Wire:
    """A client that refused a's second content, and is told its first one beside a neighbour that changed."""
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()
    wire.sotw(CLUSTER, nonce="2", nack=core(list("abcd"), "a"))
    world.serve(CLUSTER, "a", "a1")
    world.serve(CLUSTER, "b", "b2")
    (response,) = wire.publish()
    assert versions_of(response) == {"a": "a1", "b": "b2", "c": "c1", "d": "d1"}
    return wire


def test_full_state__refuses_by_name_what_it_took_before__that_is_blamed_and_not_its_neighbour(turned: Wire) -> None:
    assert turned.sotw(CLUSTER, nonce="3", nack=core(list("abcd"), "a")) == []  # no loop: nothing else is to be said

    assert blamed(turned) == (["a"], Evidence.TEXT)


def test_full_state__refuses_by_name_what_it_took_before__neighbours_go_on_changing(world: World, turned: Wire) -> None:
    turned.sotw(CLUSTER, nonce="3", nack=core(list("abcd"), "a"))
    world.serve(CLUSTER, "c", "c2")

    (response,) = turned.publish()

    assert versions_of(response) == {"a": "a1", "b": "b2", "c": "c2", "d": "d1"}  # N5: nobody's copy is taken away


@pytest.mark.parametrize(
    "text",
    [
        "bad",
        "cluster 'a' is bad",  # a grammar that nobody knows
        core(list("abcd"), "a")[:60],  # cut
        core(list("abcd"), "a", "b"),  # also what is new
    ],
)
def test_full_state__text_is_not_whole_or_names_what_changed__what_changed_is_blamed(turned: Wire, text: str) -> None:
    turned.sotw(CLUSTER, nonce="3", nack=text)

    assert blamed(turned) == (["b"], Evidence.ONLY_CHANGE)


def test_parts__refuses_by_name_what_it_took_before__its_neighbour_is_sent_once_more_apart(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "a", "b")
    wire.delta(ROUTE, nonce="1")
    world.serve(ROUTE, "b", "b2")
    wire.session.offer(world.publish(), wire.now)
    (both,) = wire.delta(ROUTE, "a")  # asked again, so that it is in the response

    (apart,) = wire.delta(ROUTE, nonce=both.nonce, nack=core(["a", "b"], "a"))

    assert (names_of(both), versions_of(apart)) == (["a", "b"], {"b": "b2"})  # B12
    assert blamed(wire) == (["a"], Evidence.TEXT)
