"""Delta, rule by rule (protocol.md B5, C, E, F)."""

from collections.abc import Callable

import pytest

from adsserver.engine.client_view import ClientView
from adsserver.engine.events import Acknowledged, Rejected, Subscribed, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import SETTINGS, World, errors_of, names_of, versions_of
from xdscore.access import Effect
from xdscore.resource_types import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    RESOURCE_TYPES,
    ROUTE,
    RUNTIME,
    SCOPED_ROUTE,
    SECRET,
    VIRTUAL_HOST,
    ResourceType,
)


@pytest.fixture
def world() -> World:
    world = World()
    world.serve(CLUSTER, "a", "a1")
    world.serve(CLUSTER, "b", "b1")
    world.serve(ENDPOINT, "a", "e1")
    world.serve(ROUTE, "r", "r1")
    return world


@pytest.fixture
def wire(world: World) -> Wire:
    return Wire(world, Variant.DELTA)


def test_subscribe__first_request_with_both_lists_empty__is_a_wildcard(wire: Wire) -> None:
    assert [names_of(r) for r in wire.delta(CLUSTER)] == [["a", "b"]]  # C5


def test_subscribe__scoped_routes_by_two_empty_lists__are_answered_also_when_there_is_none(
    wire: Wire, world: World
) -> None:
    (nothing,) = wire.delta(SCOPED_ROUTE)
    wire.delta(SCOPED_ROUTE, nonce=nothing.nonce)
    world.serve(SCOPED_ROUTE, "eu", "1")
    (one,) = wire.publish()
    wire.delta(SCOPED_ROUTE, nonce=one.nonce)
    world.remove(SCOPED_ROUTE, "eu")
    (gone,) = wire.publish()

    assert [(names_of(each), each.removed) for each in (nothing, one, gone)] == [([], ()), (["eu"], ()), ([], ("eu",))]
    assert gone.errors == ()  # F4


def test_subscribe__virtual_host_that_is_not_there__is_an_alias_of_nothing_until_it_comes(
    wire: Wire, world: World
) -> None:
    (missing,) = wire.delta(VIRTUAL_HOST, "shop/a")
    wire.delta(VIRTUAL_HOST, nonce=missing.nonce)
    world.serve(VIRTUAL_HOST, "shop/a", "1")
    (there,) = wire.publish()
    wire.delta(VIRTUAL_HOST, nonce=there.nonce)
    world.remove(VIRTUAL_HOST, "shop/a")
    (gone,) = wire.publish()
    wire.delta(VIRTUAL_HOST, nonce=gone.nonce)
    (again,) = wire.delta(VIRTUAL_HOST, "shop/a")

    # E2: a request waits for the answer in the data plane; who has a copy is told that it is gone (E1).
    each = [(names_of(response), response.removed, response.unresolved) for response in (missing, there, gone, again)]
    assert each == [
        ([], (), ("shop/a",)),
        (["shop/a"], (), ()),
        ([], ("shop/a",), ()),
        ([], (), ("shop/a",)),
    ]
    assert errors_of(missing) == errors_of(again) == {"shop/a": "NOT_FOUND"}


def test_subscribe__virtual_host_that_cannot_be_read_now__is_no_alias_of_nothing(wire: Wire, world: World) -> None:
    world.unread(VIRTUAL_HOST, "shop/a")
    wire.publish()

    (answer,) = wire.delta(VIRTUAL_HOST, "shop/a")

    assert (errors_of(answer), answer.removed, answer.unresolved) == ({"shop/a": "UNAVAILABLE"}, (), ())  # F14


@pytest.mark.parametrize("kind", [kind for kind in RESOURCE_TYPES if not kind.wildcard], ids=lambda kind: kind.word)
def test_subscribe__two_empty_lists_or_star_of_a_type_without_wildcard__is_nothing(
    wire: Wire, kind: ResourceType
) -> None:
    assert wire.delta(kind) == []
    assert wire.delta(kind, "*") == []


def test_subscribe__first_request_that_only_unsubscribes__is_no_wildcard(wire: Wire) -> None:
    assert wire.delta(CLUSTER, unsubscribe=("x",)) == []  # C5


def test_subscribe__name_after_legacy_wildcard__keeps_the_wildcard(wire: Wire, world: World) -> None:
    wire.delta(CLUSTER)
    wire.delta(CLUSTER, "a", nonce="1")
    wire.delta(CLUSTER, nonce="2")
    world.serve(CLUSTER, "c", "c1")

    assert [names_of(r) for r in wire.publish()] == [["c"]]  # C4


def test_subscribe__star_ended__only_names_remain(wire: Wire, world: World) -> None:
    wire.delta(CLUSTER, "*", "a")
    wire.delta(CLUSTER, unsubscribe=("*",), nonce="1")
    world.serve(CLUSTER, "a", "a2")
    world.serve(CLUSTER, "b", "b2")

    assert [versions_of(r) for r in wire.publish()] == [{"a": "a2"}]  # C4


def test_subscribe__known_and_current_name__is_answered_again(wire: Wire) -> None:
    wire.delta(ENDPOINT, "a", "zz")

    (response,) = wire.delta(ENDPOINT, "a", "zz")

    assert (names_of(response), errors_of(response), response.removed) == (["a"], {"zz": "NOT_FOUND"}, ("zz",))  # C6


def test_subscribe__in_an_ack_or_with_a_foreign_nonce__counts(wire: Wire) -> None:
    wire.delta(ENDPOINT, "a")
    (in_ack,) = wire.delta(ENDPOINT, "zz", nonce="1")
    facts = wire.facts
    (stale,) = wire.delta(ENDPOINT, "yy", nonce="99")

    assert [type(fact) for fact in facts] == [Acknowledged, Subscribed]
    assert errors_of(in_ack) == {"zz": "NOT_FOUND"}
    assert errors_of(stale) == {"yy": "NOT_FOUND"}


@pytest.mark.parametrize(("name", "resources", "removed"), [("a", ["a"], ()), ("nope", [], ("nope",))])
def test_unsubscribe__name_under_a_wildcard__hears_what_becomes_of_it(
    wire: Wire, name: str, resources: list[str], removed: tuple[str, ...]
) -> None:
    wire.delta(CLUSTER, "*", name)

    (response,) = wire.delta(CLUSTER, unsubscribe=(name,), nonce="1")

    assert (names_of(response), response.removed, response.errors) == (resources, removed, ())  # C7


def test_unsubscribe__unknown_or_plain_name__gets_no_response(wire: Wire) -> None:
    wire.delta(ENDPOINT, "a")

    assert wire.delta(ENDPOINT, unsubscribe=("a", "x"), nonce="1") == []  # C7


@pytest.mark.parametrize(
    ("kind", "removed"),
    [
        (CLUSTER, ("x",)),
        (ENDPOINT, ("x",)),
        (LISTENER, ("x",)),
        (SCOPED_ROUTE, ("x",)),
        (ROUTE, ()),
        (SECRET, ()),
        (VIRTUAL_HOST, ()),
        (RUNTIME, ("x",)),
    ],
)
@pytest.mark.parametrize("effect", [Effect.ALLOW, Effect.DENY])
def test_compose__name_never_delivered__error_and_removal_by_the_table(
    wire: Wire, world: World, kind: ResourceType, removed: tuple[str, ...], effect: Effect
) -> None:
    world.rule(kind, "x", effect)
    wire.publish()

    (response,) = wire.delta(kind, "x")

    assert response.removed == removed  # E2, F15, T10
    assert errors_of(response) == {"x": "NOT_FOUND" if effect is Effect.ALLOW else "PERMISSION_DENIED"}


@pytest.mark.parametrize("how", ["remove", "deny"])
def test_compose__delivered_route_goes__is_removed_with_its_error(wire: Wire, world: World, how: str) -> None:
    wire.delta(ROUTE, "r")
    wire.delta(ROUTE, nonce="1")
    world.rule(ROUTE, "r", Effect.DENY) if how == "deny" else getattr(world, how)(ROUTE, "r")

    (response,) = wire.publish()

    assert response.removed == ("r",)
    assert list(errors_of(response)) == ["r"]


def test_compose__error_text_changes__is_told_once_without_another_removal(wire: Wire, world: World) -> None:
    wire.delta(ROUTE, "x")
    wire.delta(ROUTE, nonce="1")
    world.rule(ROUTE, "x", Effect.DENY)
    (denied,) = wire.publish()
    wire.delta(ROUTE, nonce="2")

    assert errors_of(denied) == {"x": "PERMISSION_DENIED"}
    assert denied.removed == ()
    assert wire.publish() == []  # F9


def test_compose__error_ends_with_equal_content__resource_is_sent(wire: Wire, world: World) -> None:
    wire.delta(ROUTE, "r")
    wire.delta(ROUTE, nonce="1")
    world.rule(ROUTE, "r", Effect.HIDE)
    wire.publish()
    wire.delta(ROUTE, nonce="2")
    world.rule(ROUTE, "r", Effect.ALLOW)

    assert [versions_of(r) for r in wire.publish()] == [{"r": "r1"}]  # F11


def test_compose__empty_wildcard__is_answered_empty(wire: Wire) -> None:
    (response,) = wire.delta(LISTENER)

    assert response.resources == ()
    assert response.nonce


def test_reconnect__everything_current__gets_the_empty_answer_of_a_wildcard(wire: Wire) -> None:
    (response,) = wire.delta(CLUSTER, has={"a": "a1", "b": "b1"})

    assert (response.resources, response.removed) == ((), ())  # E5, E6


def test_reconnect__some_old_some_gone__gets_differences_and_removals(wire: Wire) -> None:
    responses = wire.delta(CLUSTER, has={"a": "a0", "gone": "g1"})

    assert [(versions_of(r), r.removed) for r in responses] == [({"a": "a1", "b": "b1"}, ()), ({}, ("gone",))]  # E5, I9


def test_reconnect__named__only_what_differs_and_what_is_held_is_no_subscription(wire: Wire) -> None:
    responses = wire.delta(ENDPOINT, "a", "zz", has={"a": "e1", "b": "f1"})

    assert [(names_of(r), errors_of(r)) for r in responses] == [([], {"zz": "NOT_FOUND"})]  # C6, E5, I5


def test_compose__large_initial_state__is_split_at_one_mebibyte(wire: Wire, world: World) -> None:
    for number in range(30):
        world.serve(CLUSTER, f"big{number:02}", f"v{number}", size=100_000)
    wire.publish()

    responses = wire.delta(CLUSTER)

    sizes = [sum(member.content.size for member in r.resources) for r in responses]
    assert len(responses) == 3
    assert max(sizes) <= 1024 * 1024
    assert sorted(name for r in responses for name in names_of(r)) == sorted(
        {"a", "b"} | {f"big{n:02}" for n in range(30)}
    )


def test_compose__same_step_of_two_wildcard_streams__shares_one_tuple(world: World) -> None:
    wires = [Wire(world, Variant.DELTA) for _ in range(2)]
    for wire in wires:
        wire.delta(CLUSTER)
        wire.delta(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    publication = world.publish()
    for wire in wires:
        wire.session.offer(publication, wire.now)
    (first,), (second,) = (wire.written() for wire in wires)

    assert first.resources is second.resources
    assert versions_of(first) == {"a": "a2"}


def test_compose__wildcard_and_names__share_the_steps_that_do_not_concern_the_names(world: World) -> None:
    alone, beside = Wire(world, Variant.DELTA), Wire(world, Variant.DELTA)
    (everything,) = alone.delta(CLUSTER, "*")
    (answer,) = beside.delta(CLUSTER, "*", "b", "nope")
    for wire in (alone, beside):
        wire.delta(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    publication = world.publish()
    for wire in (alone, beside):
        wire.session.offer(publication, wire.now)
    (first,), (second,) = alone.written(), beside.written()

    assert answer.resources is everything.resources
    assert (errors_of(answer), answer.removed) == ({"nope": "NOT_FOUND"}, ("nope",))
    assert first.resources is second.resources
    assert (second.errors, second.removed) == ((), ())


def test_compose__name_beside_a_wildcard_comes_and_goes__is_told(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(CLUSTER, "*", "nope")
    wire.delta(CLUSTER, nonce="1")
    world.serve(CLUSTER, "nope", "n1")
    (came,) = wire.publish()
    wire.delta(CLUSTER, nonce="2")
    world.remove(CLUSTER, "nope")
    (went,) = wire.publish()

    assert versions_of(came) == {"nope": "n1"}
    assert (errors_of(went), went.removed) == ({"nope": "NOT_FOUND"}, ("nope",))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda world: world.withhold(CLUSTER, "nope"), "INTERNAL"),
        (lambda world: world.rule(CLUSTER, "nope", Effect.DENY), "PERMISSION_DENIED"),
    ],
    ids=["withheld", "denied"],
)
def test_compose__name_beside_a_wildcard_is_missing_for_another_reason__is_told(
    world: World, change: Callable[[World], None], code: str
) -> None:
    wire = Wire(world, Variant.DELTA)
    wire.delta(CLUSTER, "*", "nope")
    wire.delta(CLUSTER, nonce="1")
    change(world)

    assert [errors_of(response) for response in wire.publish()] == [{"nope": code}]


def test_compose__less_room_beside_a_wildcard_than_its_names_need__the_rest_follows(world: World) -> None:
    world.serve(CLUSTER, "large", "l1", size=SETTINGS.limits.delta_response_bytes - 2_000)
    missing = [f"nope{number:02}" for number in range(20)]
    world.publish()

    first, second = Wire(world, Variant.DELTA).delta(CLUSTER, "*", *missing)

    assert names_of(first) == ["a", "b", "large"]
    assert errors_of(first)
    assert errors_of(second)
    assert [*errors_of(first), *errors_of(second)] == missing


def test_reconnect__wildcard_and_names__gets_what_differs_and_why_names_are_missing(wire: Wire) -> None:
    responses = wire.delta(CLUSTER, "*", "b", "nope", has={"a": "a0", "b": "b1"})

    told = [(versions_of(r), errors_of(r), r.removed) for r in responses]
    assert told == [({"a": "a1"}, {"nope": "NOT_FOUND"}, ("nope",))]  # E5, T1


def test_compose__new_wildcard_stream__is_told_everything_without_a_look_at_each_name(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[object] = []
    monkeypatch.setattr(ClientView, "shown", lambda *arguments: looked_at.append(arguments))

    (response,) = Wire(world, Variant.DELTA).delta(CLUSTER)

    assert names_of(response)
    assert looked_at == []


def test_rejected__removals_in_the_response__are_said_again_alone(wire: Wire, world: World) -> None:
    wire.delta(ENDPOINT, "a", "zz")

    responses = wire.delta(ENDPOINT, nonce="1", nack="something is wrong")

    assert isinstance(wire.facts[0], Rejected)
    assert [(names_of(r), r.removed, errors_of(r)) for r in responses] == [([], ("zz",), {"zz": "NOT_FOUND"})]  # B12
    assert wire.delta(ENDPOINT, nonce="2", nack="still wrong") == []


def test_rejected__then_removed__is_named_in_removed_resources(wire: Wire, world: World) -> None:
    wire.delta(ROUTE, "r")
    wire.delta(ROUTE, nonce="1", nack="bad")
    world.remove(ROUTE, "r")

    assert [r.removed for r in wire.publish()] == [("r",)]  # B12: the client may use it all the same


def test_subscribe__star_again_where_nothing_is_served__is_answered_again() -> None:
    wire = Wire(World(), Variant.DELTA)

    assert [len(wire.delta(CLUSTER, "*")) for _ in range(2)] == [1, 1]  # C6, E6


def test_subscribe__star_again_while_a_push_is_unanswered__is_answered_with_everything(
    wire: Wire, world: World
) -> None:
    wire.delta(CLUSTER)
    wire.delta(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")
    wire.publish()

    (answer,) = wire.delta(CLUSTER, "*")

    assert versions_of(answer) == {"a": "a2", "b": "b1"}  # C6, decisions C5


def test_version__wildcard_after_a_step__is_what_a_new_stream_is_told(wire: Wire, world: World) -> None:
    (first,) = wire.delta(CLUSTER)
    wire.delta(CLUSTER, nonce="1")
    world.serve(CLUSTER, "a", "a2")

    (step,) = wire.publish()

    (other,) = Wire(world, Variant.DELTA).delta(CLUSTER)
    assert step.version == other.version != first.version  # B8, I8


def test_subscribe__star_after_a_name__only_the_rest_is_sent(wire: Wire) -> None:
    wire.delta(CLUSTER, "a")

    (response,) = wire.delta(CLUSTER, "*", nonce="1")

    assert names_of(response) == ["b"]  # D6, C4


def test_unsubscribe__name_held_by_the_wildcard_alone_beside_a_new_one__both_are_answered(wire: Wire) -> None:
    wire.delta(CLUSTER)

    (response,) = wire.delta(CLUSTER, "zz", unsubscribe=("a",), nonce="1")

    assert (names_of(response), errors_of(response)) == (["a"], {"zz": "NOT_FOUND"})  # C6, C7


def test_endpoints__behind_clusters_asked_for_by_name__follow_what_changed_alone(wire: Wire, world: World) -> None:
    world.serve(ENDPOINT, "b", "f1")
    wire.publish()
    wire.delta(CLUSTER, "a", "b")
    wire.delta(CLUSTER, nonce="1")
    wire.delta(ENDPOINT, "a", "b")
    wire.delta(ENDPOINT, nonce="2")
    (again,) = wire.delta(CLUSTER, "a")
    wire.delta(CLUSTER, nonce=again.nonce)
    world.serve(CLUSTER, "b", "b2")

    written = [(r.kind, names_of(r)) for r in wire.publish()]

    assert written == [(CLUSTER, ["b"]), (ENDPOINT, ["b"])]  # I3: a was only said again


def test_answers__client_silent_about_as_many_as_may_be__the_next_waits_and_passes_the_oldest(wire: Wire) -> None:
    most = wire.session._settings.limits.unanswered_responses
    for number in range(most):
        assert len(wire.delta(ROUTE, f"n{number}")) == 1
    assert wire.delta(ROUTE, "r") == []
    assert wire.session.wake_at() == wire.now + 30

    wire.now += 30

    assert [names_of(r) for r in wire.written()] == [["r"]]  # B13
