"""The limits of the product's table that the engine keeps: what each holds back, and that it lets go again (S8)."""

from math import inf

import pytest

from adsserver.engine.events import Respond, Variant
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, errors_of, names_of, versions_of
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE
from xdscore.snapshot import FRAME_BYTES

STATE_BYTES = 1000


def limited(world: World, variant: Variant, limits: Limits) -> Wire:
    return Wire(world, variant, EngineSettings(limits=limits))


def clusters(world: World, *sizes: int) -> None:
    """Clusters a, b, … of these sizes in a response."""
    for name in "abcdef":
        world.forget(CLUSTER, name)
    for name, size in zip("abcdef", sizes, strict=False):
        world.serve(CLUSTER, name, f"{name}-{size}", size=size - FRAME_BYTES)


def test_full_state__one_byte_too_large__is_not_sent_and_the_client_keeps_what_it_has() -> None:
    world = World()
    clusters(world, 500, 500)
    wire = limited(world, Variant.SOTW, Limits(sotw_state_bytes=STATE_BYTES))
    (first,) = wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce=first.nonce)
    assert wire.session.too_large() == {}
    clusters(world, 500, 501)

    assert wire.publish() == []  # F24: gRPC would refuse it, and ask again for ever
    assert wire.session.too_large() == {CLUSTER: STATE_BYTES + 1}
    assert wire.session.wake_at() == inf


def test_full_state__too_large__delta_clients_and_other_types_go_on() -> None:
    world = World()
    limits = Limits(sotw_state_bytes=STATE_BYTES)
    sotw, delta = limited(world, Variant.SOTW, limits), limited(world, Variant.DELTA, limits)
    clusters(world, 600, 600)
    world.serve(LISTENER, "l", "1")
    for wire in (sotw, delta):
        wire.publish()

    assert sotw.sotw(CLUSTER) == []  # D17: no empty state, which would delete what a reconnecting client has
    assert [names_of(r) for r in sotw.sotw(LISTENER)] == [["l"]]
    assert [names_of(r) for r in delta.delta(CLUSTER)] == [["a", "b"]]
    assert (sotw.session.too_large(), delta.session.too_large()) == ({CLUSTER: 1200}, {})


def test_full_state__smaller_again__is_sent_at_once() -> None:
    world = World()
    clusters(world, 600, 600)
    wire = limited(world, Variant.SOTW, Limits(sotw_state_bytes=STATE_BYTES))
    assert wire.sotw(CLUSTER) == []
    clusters(world, 600, 400)

    assert [names_of(r) for r in wire.publish()] == [["a", "b"]]
    assert wire.session.too_large() == {}


def test_full_state__union_of_old_and_new_too_large__the_new_state_goes_out_after_the_other_types() -> None:
    world = World()
    clusters(world, 600)
    world.serve(ROUTE, "r", "1")
    wire = limited(world, Variant.SOTW, Limits(sotw_state_bytes=STATE_BYTES))
    for kind, names in ((CLUSTER, ()), (ROUTE, ("r",))):
        (response,) = wire.sotw(kind, *names)
        wire.sotw(kind, *names, nonce=response.nonce)
    world.forget(CLUSTER, "a")
    world.serve(CLUSTER, "b", "1", size=600)
    world.serve(ROUTE, "r", "2")

    written = [(r.kind, names_of(r)) for r in wire.publish()]

    assert written == [(ROUTE, ["r"]), (CLUSTER, ["b"])]  # D14 gives way: what cannot be read helps nobody


@pytest.mark.parametrize("variant", Variant)
def test_parts__more_than_a_response_may_hold__are_split(variant: Variant) -> None:
    world = World()
    for name in "abcd":
        world.serve(ROUTE, name, name, size=400)
    wire = limited(world, variant, Limits(delta_response_bytes=1024))
    send = wire.delta if variant is Variant.DELTA else wire.sotw

    assert [names_of(r) for r in send(ROUTE, *"abcd")] == [["a", "b"], ["c", "d"]]


def test_wildcard__more_than_a_response_may_hold__is_split() -> None:
    world = World()
    clusters(world, 400, 400, 400)
    wire = limited(world, Variant.DELTA, Limits(delta_response_bytes=1024))

    assert [names_of(r) for r in wire.delta(CLUSTER)] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("variant", Variant)
def test_errors__more_than_a_response_may_hold__are_split(variant: Variant) -> None:
    wire = limited(World(), variant, Limits(errors_per_response=2))
    send = wire.delta if variant is Variant.DELTA else wire.sotw

    told = [list(errors_of(r)) for r in send(ROUTE, *"abcde")]

    assert told == [["a", "b"], ["c", "d"], ["e"]]  # F23


def test_unanswered__as_many_as_allowed__then_answers_wait() -> None:
    wire = limited(World(), Variant.DELTA, Limits(unanswered_responses=2))

    assert [len(wire.delta(ROUTE, name)) for name in "abc"] == [1, 1, 0]  # decisions C5
    assert [len(wire.delta(ROUTE, nonce="1"))] == [1]


def test_silent_client__after_its_time__is_passed() -> None:
    world = World()
    world.serve(ROUTE, "r", "1")
    wire = limited(world, Variant.SOTW, Limits(silent_client_s=5))
    wire.sotw(ROUTE, "r")
    wire.sotw(ROUTE, "r", nonce="1")
    for version in ("2", "3"):
        world.serve(ROUTE, "r", version)
        wire.publish()
    assert wire.session.wake_at() == wire.now + 5

    wire.now += 5

    assert [versions_of(r) for r in wire.written()] == [{"r": "3"}]  # B13


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("limit", [0, 3])
def test_isolation__number_of_resends__is_the_limit(variant: Variant, kind: object, limit: int) -> None:
    world = World()
    assert kind in {CLUSTER, ROUTE}
    chosen = CLUSTER if kind is CLUSTER else ROUTE
    names = [f"r{number}" for number in range(20)]
    for name in names:
        world.serve(chosen, name, "1")
    wire = limited(world, variant, Limits(isolation_resends=limit))
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    listed = () if variant is Variant.DELTA else names
    pending = send(chosen, *names)
    written: list[Respond] = []

    while pending:
        written.append(pending.pop(0))
        pending += send(chosen, *listed, nonce=written[-1].nonce, nack="no")

    # N3. Of a full state what was refused has to be taken back, which is a response of its own.
    taken_back = [response for response in written[1:] if not response.resources]
    assert len(written) - len(taken_back) == 1 + limit


def test_unanswered_since__is_the_oldest_response_the_client_may_still_answer() -> None:
    world = World()
    wire = Wire(world, Variant.DELTA)
    assert wire.session.unanswered_since() == inf
    wire.delta(ROUTE, "a")
    wire.now += 10
    wire.delta(CLUSTER, "a")
    wire.now += 10
    wire.delta(ROUTE, "b")

    assert wire.session.unanswered_since() == wire.now - 20
    wire.delta(ROUTE, nonce="3")
    # Clients answer in order: the first response of routes was passed over.
    assert wire.session.unanswered_since() == wire.now - 10
    wire.delta(CLUSTER, nonce="2")
    assert wire.session.unanswered_since() == inf
