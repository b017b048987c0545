"""What one step of one stream may cost: names are counted here, not time, so that a slow machine proves nothing.

Everybody else waits while the engine works for a stream. So a step looks at as many names as its response tells of, and
at each name once, however many responses it takes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from adsserver.engine.client_view import ClientView
from adsserver.engine.events import DeltaRequest, Request, Respond, SotwRequest, Variant
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, errors_of, names_of
from xdscore.errors import ResourceError
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE, ResourceType
from xdscore.xdstp import Glob

NAMES = tuple(f"r{number:03d}" for number in range(200))
PART = 10
SETTINGS = EngineSettings(limits=Limits(errors_per_response=PART))


@contextmanager
def counted(owner: type, method: str) -> Iterator[Callable[[], int]]:
    """How often a method was called since it was asked last; the method does what it does."""
    with mock.patch.object(owner, method, autospec=True, side_effect=getattr(owner, method)) as calls:

        def since() -> int:
            count: int = calls.call_count
            calls.reset_mock()
            return count

        yield since


def asking(variant: Variant, names: tuple[str, ...], nonce: str = "") -> Request:
    return DeltaRequest(ROUTE, names, nonce=nonce) if variant is Variant.DELTA else SotwRequest(ROUTE, names, nonce)


def answering(variant: Variant, names: tuple[str, ...], nonce: str) -> Request:
    return DeltaRequest(ROUTE, nonce=nonce) if variant is Variant.DELTA else SotwRequest(ROUTE, names, nonce)


@pytest.mark.parametrize("variant", Variant)
def test_subscribe__unknown_names__each_is_looked_at_once_over_all_parts(variant: Variant) -> None:
    wire = Wire(World(), variant, SETTINGS)
    told: list[Respond] = []
    steps: list[int] = []

    with counted(ClientView, "shown") as looked:
        wire.session.receive(asking(variant, NAMES), wire.now)
        steps.append(looked())
        while response := wire.session.compose(wire.now):
            steps.append(looked())
            told.append(response)
            wire.session.receive(answering(variant, NAMES, response.nonce), wire.now)
            steps.append(looked())

    assert [error.name for response in told for error in response.errors] == list(NAMES)
    assert len(told) == len(NAMES) / PART
    assert sum(steps) <= 2 * len(NAMES)
    assert max(steps) <= 2 * (PART + 1)


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
def test_step__more_names_than_it_may_look_at__goes_on_in_the_next_one(variant: Variant, kind: ResourceType) -> None:
    wire = Wire(World(), variant, EngineSettings(limits=Limits(names_per_step=PART)))
    request = DeltaRequest(kind, NAMES) if variant is Variant.DELTA else SotwRequest(kind, NAMES)
    wire.session.receive(request, wire.now)
    steps = 1

    with counted(ClientView, "error") as looked:
        while (response := wire.session.compose(wire.now)) is None:
            assert looked() <= PART
            assert wire.session.wake_at() == wire.now
            steps += 1
        assert looked() <= PART

    assert [error.name for error in response.errors] == list(NAMES)
    assert steps == len(NAMES) / PART
    assert wire.written() == []


def test_version__collection_that_has_members_now__is_that_of_the_state_in_every_part() -> None:
    collection, member = "xdstp://a/t/d/*", "xdstp://a/t/d/one"
    world = World()
    wire = Wire(world, Variant.SOTW, EngineSettings(limits=Limits(errors_per_response=1)))
    names = ("a", "b", collection)
    told: list[tuple[list[str], str]] = []

    def settle(response: Respond | None) -> None:
        while response is not None:
            told.append(([*errors_of(response), *names_of(response)], response.version))
            wire.session.receive(SotwRequest(ENDPOINT, names, response.nonce), wire.now)
            response = wire.session.compose(wire.now)

    wire.session.receive(SotwRequest(ENDPOINT, names), wire.now)
    settle(wire.session.compose(wire.now))
    # There is no error of the collection any more, which no response says; and all is asked for once more (B7).
    world.serve(ENDPOINT, member, "1")
    wire.session.offer(world.publish(), wire.now)
    wire.session.receive(SotwRequest(ENDPOINT, names, "3"), wire.now)
    settle(wire.session.compose(wire.now))

    assert [said for said, _ in told] == [["a"], ["b"], [collection], ["a"], ["b", member]]
    assert told[3][1] == told[1][1]  # I8: both times "a" and "b" are all that it was told


def test_full_state__errors_that_are_not_repeated__are_not_compared_each_with_each() -> None:
    world = World()
    wire = Wire(world, Variant.SOTW, EngineSettings(repeat_errors=False))
    (response,) = wire.sotw(CLUSTER, *NAMES)
    wire.sotw(CLUSTER, *NAMES, nonce=response.nonce)
    world.serve(CLUSTER, NAMES[0], "1")

    with counted(ResourceError, "__eq__") as compared:
        (response,) = wire.publish()
        assert compared() <= 2 * len(NAMES)

    assert response.errors == ()


def test_reconnect__unknown_names_that_the_client_holds__each_is_looked_at_once_over_all_parts() -> None:
    wire = Wire(World(), Variant.DELTA, SETTINGS)
    told: list[Respond] = []

    with counted(ClientView, "shown") as looked:
        wire.session.receive(DeltaRequest(ROUTE, NAMES, initial_versions=dict.fromkeys(NAMES, "v")), wire.now)
        while response := wire.session.compose(wire.now):
            told.append(response)
            wire.session.receive(DeltaRequest(ROUTE, nonce=response.nonce), wire.now)

        assert looked() <= 2 * len(NAMES)

    assert sorted(name for response in told for name in response.removed) == list(NAMES)
    assert len(told) == len(NAMES) / PART


def test_lost__names_that_wait_for_other_types__are_not_looked_at_again_meanwhile() -> None:
    world = World()
    for name in NAMES:
        world.serve(ROUTE, name, "1")
    world.serve(CLUSTER, "c", "1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(CLUSTER, "c")
    (response,) = wire.delta(ROUTE, *NAMES)
    wire.delta(ROUTE, nonce=response.nonce)
    for name in NAMES:
        world.forget(ROUTE, name)
    world.serve(CLUSTER, "c", "2")
    # The cluster's first response has no answer yet, and what is added goes before what is taken away (I1).
    wire.delta(CLUSTER, nonce="1")
    wire.publish()
    world.serve(CLUSTER, "c", "3")
    wire.publish()

    with counted(ClientView, "shown") as looked:
        for _ in range(5):
            assert wire.written() == []
        assert looked() <= len(NAMES)


@pytest.mark.parametrize("variant", Variant)
def test_unsubscribe__names_beside_many_collections__costs_no_look_at_each_collection(variant: Variant) -> None:
    globs = tuple(f"xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/d{number}/*" for number in range(100))
    world = World()
    for glob in globs:
        world.serve(ENDPOINT, glob.replace("*", "one"), "1")
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw

    with counted(Glob, "contains") as looked:
        told = send(ENDPOINT, *globs, *NAMES)
        if variant is Variant.DELTA:
            wire.delta(ENDPOINT, unsubscribe=NAMES)
        else:
            wire.sotw(ENDPOINT, *globs)
        assert looked() <= 10 * (len(globs) + len(NAMES))

    assert len(told[0].resources) == len(globs)
