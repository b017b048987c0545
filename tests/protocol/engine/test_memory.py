"""What a stream remembers of a name, and what it forgets: what was told counts, whatever was looked at meanwhile."""

from adsserver.engine.events import Variant
from adsserver.engine.session import EngineSettings
from adsserver.engine.versions import mark, version_text
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, content, names_of, versions_of
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE, SECRET


def test_version__stand_in_looked_at_twice_before_it_is_sent_again__is_that_of_the_state() -> None:
    world = World()
    world.serve(CLUSTER, "a", "c1")
    world.serve(ENDPOINT, "a", "e1", proven="e0")
    world.serve(ENDPOINT, "b", "b1")
    wire = Wire(world, Variant.SOTW, EngineSettings(limits=Limits(unanswered_responses=1)))
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    wire.sotw(ENDPOINT, "a")
    (stand_in,) = wire.sotw(ENDPOINT, "a", nonce="2", nack="no")
    (added,) = wire.sotw(ENDPOINT, "a", "b", nonce=stand_in.nonce)
    world.serve(CLUSTER, "a", "c2")
    wire.publish()

    (again,) = wire.sotw(ENDPOINT, "a", "b", "c", nonce=added.nonce)

    (error,) = again.errors
    assert versions_of(again) == {"a": "e0"}
    assert again.version == version_text(mark("a", content("e0")) + mark("b", content("b1")) + mark("c", error))  # B8


def test_isolation__client_reconnected_with_versions_alone__nothing_without_bytes_is_sent() -> None:
    world = World()
    for name in "ab":
        world.serve(SECRET, name, f"{name}1")
    wire = Wire(world, Variant.DELTA)
    (first,) = wire.delta(SECRET, "a", "b", has={"a": "a0", "b": "b0"})

    (half,) = wire.delta(SECRET, nonce=first.nonce, nack="Failed to load trusted CA certificates")

    assert versions_of(half) == {"a": "a1"}  # nobody here has the bytes of what it held before
    assert all(member.content.blob for member in half.resources)


def test_needed__withheld_name_is_served_again__the_copy_it_went_on_with_is_forgotten() -> None:
    world = World()
    world.serve(ROUTE, "a", "a1")
    wire = Wire(world, Variant.DELTA)
    (first,) = wire.delta(ROUTE, "a")
    wire.delta(ROUTE, nonce=first.nonce)
    world.withhold(ROUTE, "a")
    (error,) = wire.publish()
    wire.delta(ROUTE, nonce=error.nonce)
    assert [copy.version for copy in wire.session.needed()] == ["a1"]  # F18a
    world.serve(ROUTE, "a", "a2")
    (served,) = wire.publish()

    wire.delta(ROUTE, nonce=served.nonce)

    assert names_of(served) == ["a"]
    assert list(wire.session.needed()) == []
