"""Views: shared, kept while they show the same, and not kept longer than somebody stands on them."""

import gc
import weakref

from adsserver.engine.publication import Publication
from tests.protocol.engine.world import AUDIENCE, World
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER, ROUTE


def test_view__type_did_not_change__is_the_previous_publications_object() -> None:
    world = World()
    world.serve(CLUSTER, "a", "a1")
    world.serve(ROUTE, "r", "r1")
    before = world.publish()
    views = {kind: before.view(AUDIENCE, kind) for kind in (CLUSTER, ROUTE)}
    world.serve(ROUTE, "r", "r2")

    after = world.publish()

    assert after.view(AUDIENCE, CLUSTER) is views[CLUSTER]
    assert after.view(AUDIENCE, ROUTE) is not views[ROUTE]


def test_view__only_something_unreadable_changed__is_the_same_object() -> None:
    world = World()
    world.rule(CLUSTER, "secret", Effect.DENY)
    world.serve(CLUSTER, "secret", "s1")
    view = world.publish().view(AUDIENCE, CLUSTER)
    world.serve(CLUSTER, "secret", "s2")

    assert world.publish().view(AUDIENCE, CLUSTER) is view  # T11


def test_publication__many_in_a_row__keeps_no_chain_alive() -> None:
    world = World()
    world.serve(CLUSTER, "a", "a0")
    first = world.publish()
    watched = weakref.ref(first.view(AUDIENCE, CLUSTER))
    del first
    previous = world.publish()
    world.publication = None
    for number in range(3):
        world.serve(CLUSTER, "a", f"a{number + 1}")
        publication = Publication(world.snapshot, previous)
        publication.view(AUDIENCE, CLUSTER).step_from(previous.view(AUDIENCE, CLUSTER))
        previous = publication
    gc.collect()

    assert watched() is None


def test_step__between_two_views__names_what_changed_and_reuses_the_rest() -> None:
    world = World()
    for name in "abc":
        world.serve(CLUSTER, name, f"{name}1")
    before = world.publish().view(AUDIENCE, CLUSTER)
    world.serve(CLUSTER, "b", "b2")
    world.remove(CLUSTER, "c")

    after = world.publish().view(AUDIENCE, CLUSTER)
    step = after.step_from(before)

    assert ([m.name for m in step.gains], step.losses, step.names) == (["b"], ("c",), frozenset("bc"))
    assert after.step_from(before) is step
    assert after.named["a"] is before.named["a"]


def test_version__of_a_view_with_a_predecessor__is_that_of_one_without() -> None:
    world = World()
    for name in "abc":
        world.serve(CLUSTER, name, f"{name}1")
    before = world.publish().view(AUDIENCE, CLUSTER)
    assert before.version
    world.serve(CLUSTER, "b", "b2")
    world.serve(CLUSTER, "d", "d1")
    world.remove(CLUSTER, "c")

    stepped = world.publish().view(AUDIENCE, CLUSTER)

    assert stepped.known_total is not None  # taken over, not added up anew
    assert stepped.version == Publication(world.snapshot).view(AUDIENCE, CLUSTER).version


def test_costly__many_names_that_nobody_looked_at__are_looked_at_ahead_once() -> None:
    world = World()
    for number in range(5_001):
        world.serve(CLUSTER, f"c{number}", "1")
    world.serve(ROUTE, "r", "1")
    publication = world.publish()

    assert publication.is_costly(AUDIENCE, CLUSTER)
    assert not publication.is_costly(AUDIENCE, ROUTE)
    publication.make_first(AUDIENCE, CLUSTER)
    view = publication.view(AUDIENCE, CLUSTER)
    publication.make_first(AUDIENCE, CLUSTER)  # somebody else did so at the same time

    assert publication.view(AUDIENCE, CLUSTER) is view
    assert not publication.is_costly(AUDIENCE, CLUSTER)
    assert len(view.named) == 5_001
    # A view with a predecessor costs what differs, mostly.
    world.serve(CLUSTER, "c0", "2")
    assert not world.publish().is_costly(AUDIENCE, CLUSTER)
