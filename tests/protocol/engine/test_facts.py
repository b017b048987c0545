"""What a stream reports of its client, to the letter: facts are kept, shown and judged (architecture.md law 6)."""

import pytest

from adsserver.engine.events import (
    Acknowledged,
    DeltaRequest,
    Nack,
    Rejected,
    Respond,
    SotwRequest,
    Subscribed,
    Variant,
    Violated,
)
from adsserver.engine.session import EngineSettings
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType


@pytest.fixture
def world() -> World:
    world = World()
    world.serve(ROUTE, "r", "r1")
    world.serve(ROUTE, "s", "s1")
    world.serve(ENDPOINT, "e", "e1")
    world.serve(CLUSTER, "c", "c1")
    return world


def ask(
    wire: Wire, variant: Variant, kind: ResourceType, *names: str, nonce: str = "", nack: str = ""
) -> list[Respond]:
    """Names are the whole list in SotW, and those subscribed to in delta."""
    if variant is Variant.SOTW:
        return wire.sotw(kind, *names, nonce=nonce, nack=nack)
    return wire.delta(kind, *names, nonce=nonce, nack=nack)


def again(variant: Variant, *names: str) -> tuple[str, ...]:
    """What a request that changes no subscription lists."""
    return names if variant is Variant.SOTW else ()


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [ENDPOINT, CLUSTER])
def test_ack__says_what_the_response_held(world: World, variant: Variant, kind: ResourceType) -> None:
    wire = Wire(world, variant)
    name = "e" if kind is ENDPOINT else "c"
    (sent,) = ask(wire, variant, kind, name, "gone")
    asked = wire.facts

    ask(wire, variant, kind, *again(variant, name, "gone"), nonce=sent.nonce)

    removed = ("gone",) if variant is Variant.DELTA else ()
    assert asked == (Subscribed(kind, wildcard=False, names=frozenset({name, "gone"})),)
    assert wire.facts == (Acknowledged(kind, sent.nonce, sent.version, sent.resources, sent.errors, removed),)
    assert [error.name for error in sent.errors] == ["gone"]


@pytest.mark.parametrize("variant", Variant)
def test_nack__says_what_was_rejected_why_and_whom_it_blames(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    (sent,) = ask(wire, variant, ROUTE, "r", "s")

    ask(wire, variant, ROUTE, *again(variant, "r", "s"), nonce=sent.nonce, nack="resource index 1: s: bad")

    blamed = sent.resources
    assert wire.facts == (
        Rejected(ROUTE, sent.nonce, sent.version, Nack(3, "resource index 1: s: bad"), sent.resources, blamed),
    )


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("nonce", ["", "77"])
def test_nack__of_no_response__is_a_violation_that_says_so(world: World, variant: Variant, nonce: str) -> None:
    wire = Wire(world, variant)

    ask(wire, variant, ROUTE, "r", nonce=nonce, nack="bad")

    says = "an error was reported for a response that this stream never sent"
    if variant is Variant.DELTA:
        says = (
            "an error was reported for a response that is not outstanding"
            if nonce
            else "an error was reported without saying for which response"
        )
    assert wire.facts == (Violated("N1", says), Subscribed(ROUTE, wildcard=False, names=frozenset({"r"})))


@pytest.mark.parametrize("variant", Variant)
def test_nack__of_a_response_answered_before__is_a_violation_and_not_a_second_nack(
    world: World, variant: Variant
) -> None:
    wire = Wire(world, variant)
    (sent,) = ask(wire, variant, ROUTE, "r")
    ask(wire, variant, ROUTE, *again(variant, "r"), nonce=sent.nonce)

    assert ask(wire, variant, ROUTE, *again(variant, "r"), nonce=sent.nonce, nack="bad") == []

    assert wire.facts == (Violated("N1", "an error was reported for a response that is not outstanding"),)


@pytest.mark.parametrize("variant", Variant)
def test_ack__of_a_response_answered_before_or_never_sent__is_no_fact(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    ask(wire, variant, ROUTE, "r")
    ask(wire, variant, ROUTE, *again(variant, "r"), nonce="1")

    for nonce in ("1", "99"):
        ask(wire, variant, ROUTE, *again(variant, "r"), nonce=nonce)
        assert wire.facts == ()


def test_limit__sotw_list__as_many_as_allowed_pass_and_one_more_does_not(world: World) -> None:
    wire = Wire(world, Variant.SOTW, EngineSettings(limits=Limits(names_per_type=2)))

    assert len(wire.sotw(ENDPOINT, "e", "f")) == 1
    assert wire.sotw(ENDPOINT, "e", "f", "g", nonce="1") == []

    acknowledged, violated = wire.facts
    assert isinstance(acknowledged, Acknowledged)
    assert violated == Violated("C11", "3 ClusterLoadAssignment names in one request; at most 2 are allowed")


def test_limit__delta__names_of_one_request_and_of_the_whole_stream_count(world: World) -> None:
    wire = Wire(world, Variant.DELTA, EngineSettings(limits=Limits(names_per_type=2)))

    assert len(wire.delta(ENDPOINT, "e", "f")) == 1
    assert wire.delta(ENDPOINT, "g", nonce="1") == []
    acknowledged, on_stream = wire.facts
    assert wire.delta(ENDPOINT, "e", "f", "e") == []
    in_request = wire.facts

    assert isinstance(acknowledged, Acknowledged)
    assert on_stream == Violated("C11", "3 ClusterLoadAssignment names on one stream; at most 2 are allowed")
    assert in_request == (Violated("C11", "3 ClusterLoadAssignment names on one stream; at most 2 are allowed"),)
    assert wire.delta(ENDPOINT, unsubscribe=("f",)) == []
    assert wire.facts == (Subscribed(ENDPOINT, wildcard=False, names=frozenset({"e"})),)


@pytest.mark.parametrize("variant", Variant)
def test_request__of_the_other_variant__is_a_violation_and_changes_nothing(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    other = DeltaRequest(ROUTE, ("r",)) if variant is Variant.SOTW else SotwRequest(ROUTE, ("r",))

    facts = wire.session.receive(other, wire.now)

    assert facts == (Violated("A1", f"a request of the other variant on a {variant.value} stream"),)
    assert wire.written() == []


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, LISTENER])
def test_subscribed__legacy_wildcard__is_everything_and_no_name(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    wire = Wire(world, variant)

    ask(wire, variant, kind)

    assert wire.facts == (Subscribed(kind, wildcard=True, names=frozenset()),)


def test_subscribed__the_same_list_once_more__is_no_fact(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(ROUTE, "r")

    wire.sotw(ROUTE, "r", "r")

    assert wire.facts == ()


def test_response__holds_type_version_and_a_nonce_of_its_own(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    (first,) = wire.sotw(ROUTE, "r")
    (second,) = wire.sotw(ENDPOINT, "e")

    assert (first.kind, second.kind) == (ROUTE, ENDPOINT)
    assert first.nonce != second.nonce  # B1
    assert first.version
    assert first.removed == ()
