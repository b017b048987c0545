"""What happens after a NACK: nothing rejected comes back, and nothing else suffers (B7, B12, F17; N2, N3, N5)."""

import pytest

from adsserver.engine.events import Rejected, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, names_of, versions_of
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE, SECRET, ResourceType


def core(names: list[str], *bad: str) -> str:
    rows = [f"resource index {names.index(name)}: {name}: INVALID_ARGUMENT: bad" for name in bad]
    return f"xDS response validation errors: [{'; '.join(rows)}]"


def suspects(wire: Wire) -> list[str]:
    (fact,) = [fact for fact in wire.facts if isinstance(fact, Rejected)]
    return [member.name for member in fact.suspects]


@pytest.fixture
def world() -> World:
    world = World()
    for name in "abcd":
        world.serve(CLUSTER, name, f"{name}1")
        world.serve(ROUTE, name, f"{name}1")
    return world


def test_full_state__one_changed_cluster_is_rejected__nothing_is_sent(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()

    assert wire.sotw(CLUSTER, nonce="2", nack="bad") == []  # B7
    assert suspects(wire) == ["a"]  # N2: of four resources only one changed


def test_full_state__neighbour_changes_after_a_rejection__goes_out_with_the_acknowledged_content(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()
    wire.sotw(CLUSTER, nonce="2", nack="bad")
    world.serve(CLUSTER, "b", "b2")

    (response,) = wire.publish()

    assert versions_of(response) == {"a": "a1", "b": "b2", "c": "c1", "d": "d1"}  # D13, N5


def test_full_state__fix_after_a_rejection__is_sent_at_once(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1", nack=core(["a", "b", "c", "d"], "a"))
    wire.sotw(CLUSTER, nonce="2")
    world.serve(CLUSTER, "a", "a2")

    assert [versions_of(r)["a"] for r in wire.publish()] == ["a2"]  # F17


def test_full_state__rejected_at_start_with_others__the_others_arrive_without_it(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    (first,) = wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack=core(names_of(first), "c"))

    assert suspects(wire) == ["c"]
    assert names_of(second) == ["a", "b", "d"]  # after a decode failure Envoy applied nothing (law 1)
    assert wire.sotw(CLUSTER, nonce="2") == []


def test_full_state__rejected_at_start_where_others_proved_one__the_proven_content_stands_in(world: World) -> None:
    world.serve(CLUSTER, "c", "c2", proven="c1")
    wire = Wire(world, Variant.SOTW)
    (first,) = wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack=core(names_of(first), "c"))

    assert versions_of(second) == {"a": "a1", "b": "b1", "c": "c1", "d": "d1"}  # D13


def test_full_state__new_stream_after_a_rejection__is_given_the_current_state(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)
    wire.sotw(CLUSTER, nonce="1", nack="bad")

    (response,) = Wire(world, Variant.SOTW).sotw(CLUSTER)

    assert names_of(response) == ["a", "b", "c", "d"]  # resolutions C9


def test_parts__repeated_ask_and_changed_cluster__do_not_bring_rejected_endpoints_back(world: World) -> None:
    world.serve(ENDPOINT, "a", "e1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(CLUSTER)
    wire.delta(CLUSTER, nonce="1")
    wire.delta(ENDPOINT, "a")
    wire.delta(ENDPOINT, nonce="2", nack="malformed IP address")
    world.serve(CLUSTER, "a", "a2")

    assert [r.kind for r in wire.publish()] == [CLUSTER]  # N3


def test_parts__asked_for_again_after_a_rejection__is_answered_with_what_others_use(world: World) -> None:
    world.serve(ROUTE, "a", "a2", proven="a1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "a")
    (stand_in,) = wire.delta(ROUTE, nonce="1", nack="bad")
    wire.delta(ROUTE, nonce="2")

    (again,) = wire.delta(ROUTE, "a")

    assert versions_of(stand_in) == versions_of(again) == {"a": "a1"}  # F17, C6


@pytest.mark.parametrize(
    ("variant", "kind"),
    [(Variant.SOTW, ROUTE), (Variant.SOTW, CLUSTER), (Variant.DELTA, ROUTE), (Variant.DELTA, CLUSTER)],
)
@pytest.mark.parametrize("bad", ["a", "c", "d"])
def test_isolation__text_names_nobody__the_bad_one_is_proven_and_the_good_are_in_use(
    world: World, variant: Variant, kind: ResourceType, bad: str
) -> None:
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    held: dict[str, str] = {}
    proven: list[str] = []
    pending = send(kind, *"abcd")
    sent = 0

    while pending:
        response = pending.pop(0)
        sent += 1
        names = () if variant is Variant.DELTA else tuple("abcd")
        if bad in names_of(response):
            pending += send(kind, *names, nonce=response.nonce, nack="missing ): (")
            proven = suspects(wire)
        else:
            held.update(versions_of(response))
            pending += send(kind, *names, nonce=response.nonce)

    assert proven == [bad]  # resolutions C8
    assert held == {name: f"{name}1" for name in "abcd" if name != bad}
    assert sent <= 1 + 16


@pytest.mark.parametrize(("variant", "kind"), [(Variant.DELTA, ROUTE), (Variant.SOTW, CLUSTER)])
def test_isolation__client_that_rejects_everything__comes_to_rest(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    for number in range(40):
        world.serve(kind, f"r{number}", "x")
    names = [f"r{number}" for number in range(40)]
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    listed = () if variant is Variant.DELTA else names
    pending = send(kind, *names)
    count = 0

    while pending:
        count += 1
        pending += send(kind, *listed, nonce=pending.pop(0).nonce, nack="no")

    assert count == 1 + 16  # N3


def test_full_state__new_stream_and_a_text_that_names_nobody__what_others_use_does_not_vanish() -> None:
    world = World()
    for name in "abcd":
        world.serve(CLUSTER, name, f"{name}1", proven=f"{name}1")
    world.serve(CLUSTER, "b", "b2", proven="b1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack="Invalid duration")

    assert suspects(wire) == ["b"]  # of four only one was never acknowledged by anybody
    assert versions_of(second) == {"a": "a1", "b": "b1", "c": "c1", "d": "d1"}  # law 1, D13


def test_full_state__what_others_use_is_what_the_client_cannot__the_new_one_is_not_blamed_for_it() -> None:
    world = World()
    world.serve(CLUSTER, "new", "n1")
    world.serve(CLUSTER, "old", "o1", proven="o1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(CLUSTER)

    (second,) = wire.sotw(CLUSTER, nonce="1", nack="Invalid duration")
    (third,) = wire.sotw(CLUSTER, nonce="2", nack="Invalid duration")

    assert names_of(second) == ["old"]
    assert suspects(wire) == ["old"]
    assert names_of(third) == ["new"]
    assert wire.sotw(CLUSTER, nonce="3") == []


def test_isolation__text_names_the_culprit__the_rest_is_sent_once_more(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    (first,) = wire.delta(ROUTE, *"abcd")

    (second,) = wire.delta(ROUTE, nonce="1", nack=core(names_of(first), "b"))

    assert suspects(wire) == ["b"]
    assert names_of(second) == ["a", "c", "d"]
    assert wire.delta(ROUTE, nonce="2") == []


def test_suspects__content_acknowledged_before_is_sent_again_and_rejected__is_not_blamed(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(ROUTE, "a")
    wire.delta(ROUTE, "a", "b", nonce="1")

    wire.delta(ROUTE, nonce="2", nack="no")

    assert suspects(wire) == ["b"]  # N2


@pytest.mark.parametrize("variant", Variant)
def test_isolation__clients_that_compare_with_what_they_refused__are_sent_what_they_used_in_between(
    world: World, variant: Variant
) -> None:
    for name in "ab":
        world.serve(SECRET, name, f"{name}1")
    wire = Wire(world, variant)
    send = wire.delta if variant is Variant.DELTA else wire.sotw
    listed = () if variant is Variant.DELTA else ("a", "b")
    (first,) = send(SECRET, "a", "b")
    send(SECRET, *listed, nonce=first.nonce)
    for name in "ab":
        world.serve(SECRET, name, f"{name}2")
    (second,) = wire.publish()

    (reverted,) = send(SECRET, *listed, nonce=second.nonce, nack="Failed to load trusted CA certificates")
    (apart,) = send(SECRET, *listed, nonce=reverted.nonce)

    assert versions_of(reverted) == {"a": "a1", "b": "b1"}  # Envoy 1.40's SDS acknowledges refused content unseen
    assert versions_of(apart) == {"a": "a2"}
