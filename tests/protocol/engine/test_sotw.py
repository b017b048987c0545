"""SotW, rule by rule (protocol.md A to F). A comment names what each client does in the case."""

import pytest

from adsserver.engine.events import Acknowledged, Rejected, Subscribed, Variant, Violated
from adsserver.engine.session import EngineSettings, Session
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import CLIENT, URL, World, errors_of, names_of, versions_of
from xdscore.access import Effect
from xdscore.limits import Limits
from xdscore.resource_types import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    RESOURCE_TYPES,
    ROUTE,
    SCOPED_ROUTE,
    ResourceType,
)


@pytest.fixture
def world() -> World:
    world = World()
    world.serve(CLUSTER, "a", "a1")
    world.serve(CLUSTER, "b", "b1")
    world.serve(ENDPOINT, "a", "e1")
    world.serve(ENDPOINT, "b", "f1")
    world.serve(ROUTE, "r", "r1")
    return world


@pytest.fixture
def wire(world: World) -> Wire:
    return Wire(world, Variant.SOTW)


# C. Subscriptions


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([()], ["a", "b"]),  # C2: legacy wildcard
        ([("*",)], ["a", "b"]),
        ([("a",)], ["a"]),
        ([("*", "a")], ["a", "b"]),  # C4: union
        ([(), ("a",)], ["a"]),  # C2: a name ends the legacy wildcard
        ([("",), ("a",)], ["a"]),  # C10
    ],
)
def test_subscribe__lists_of_cluster_names__answer_holds_what_they_mean(
    wire: Wire, requests: list[tuple[str, ...]], expected: list[str]
) -> None:
    answers = [wire.sotw(CLUSTER, *names) for names in requests]

    assert names_of(answers[-1][-1]) == expected


@pytest.mark.parametrize("before", [("a",), ("*",), ("",)])
def test_subscribe__empty_list_after_a_name__means_none(wire: Wire, world: World, before: tuple[str, ...]) -> None:
    wire.sotw(CLUSTER, *before)

    assert wire.sotw(CLUSTER, nonce="1") == []
    world.serve(CLUSTER, "a", "a2")
    assert wire.publish() == []  # I5


def test_subscribe__scoped_routes_by_an_empty_list__are_answered_whole_also_when_there_is_none(
    wire: Wire, world: World
) -> None:
    (nothing,) = wire.sotw(SCOPED_ROUTE)
    wire.sotw(SCOPED_ROUTE, nonce=nothing.nonce)
    for name in ("eu", "us"):
        world.serve(SCOPED_ROUTE, name, "1")
    (both,) = wire.publish()
    wire.sotw(SCOPED_ROUTE, nonce=both.nonce)
    world.remove(SCOPED_ROUTE, "eu")
    (one,) = wire.publish()

    # C2, D1, D3: Envoy waits for an answer, and takes each for all there is.
    assert [names_of(each) for each in (nothing, both, one)] == [[], ["eu", "us"], ["us"]]
    assert one.errors == ()  # F4: nobody asked for it by name


@pytest.mark.parametrize("kind", [kind for kind in RESOURCE_TYPES if not kind.wildcard], ids=lambda kind: kind.word)
def test_subscribe__empty_list_or_star_of_a_type_without_wildcard__is_nothing(wire: Wire, kind: ResourceType) -> None:
    assert wire.sotw(kind) == []
    assert wire.sotw(kind, "*") == []


def test_subscribe__added_name__is_answered_although_unchanged_and_alone(wire: Wire) -> None:
    wire.sotw(ENDPOINT, "a")

    responses = wire.sotw(ENDPOINT, "a", "b", nonce="1")

    assert [names_of(r) for r in responses] == [["b"]]  # C1, D4
    assert [type(fact) for fact in wire.facts] == [Acknowledged, Subscribed]  # B6


def test_subscribe__name_dropped_and_added_again__is_answered_again(wire: Wire) -> None:
    wire.sotw(ENDPOINT, "a", "zz")
    wire.sotw(ENDPOINT, "a", nonce="1")

    responses = wire.sotw(ENDPOINT, "a", "zz", nonce="1")

    assert [(names_of(r), errors_of(r)) for r in responses] == [([], {"zz": "NOT_FOUND"})]  # F10


def test_subscribe__unsubscription_only__gets_no_response(wire: Wire) -> None:
    wire.sotw(CLUSTER, "a", "b")

    assert wire.sotw(CLUSTER, "a", nonce="1") == []  # C1, D4


def test_subscribe__missing_name__is_sent_as_soon_as_it_exists(wire: Wire, world: World) -> None:
    wire.sotw(ENDPOINT, "new")
    wire.sotw(ENDPOINT, "new", nonce="1")
    world.serve(ENDPOINT, "new", "n1")

    assert [versions_of(r) for r in wire.publish()] == [{"new": "n1"}]  # C8


def test_subscribe__more_names_than_allowed__is_a_violation_and_changes_nothing(world: World) -> None:
    wire = Wire(world, Variant.SOTW, EngineSettings(limits=Limits(names_per_type=2)))

    responses = wire.sotw(ENDPOINT, "a", "b", "c")

    assert responses == []
    assert [fact.rule for fact in wire.facts if isinstance(fact, Violated)] == ["C11"]


# B. Nonces


def test_receive__pure_ack_or_nack__gets_no_response(wire: Wire) -> None:
    wire.sotw(ROUTE, "r")

    assert wire.sotw(ROUTE, "r", nonce="1", nack="no") == []  # B7, I3
    assert isinstance(wire.facts[0], Rejected)


def test_receive__nack_with_the_new_version__is_a_nack(wire: Wire) -> None:
    (response,) = wire.sotw(ROUTE, "r")

    wire.sotw(ROUTE, "r", nonce="1", nack="no", version=response.version)

    assert isinstance(wire.facts[0], Rejected)  # B2


def test_receive__nack_that_also_adds_a_name__both_facts_survive(wire: Wire, world: World) -> None:
    world.serve(ROUTE, "s", "s1")
    wire.publish()
    wire.sotw(ROUTE, "r")

    responses = wire.sotw(ROUTE, "r", "s", nonce="1", nack="no")

    assert [type(fact) for fact in wire.facts] == [Rejected, Subscribed]  # B6
    assert [versions_of(r) for r in responses] == [{"s": "s1"}]


def test_receive__stale_nonce_with_other_names__is_not_answered_and_not_applied(wire: Wire, world: World) -> None:
    wire.sotw(ENDPOINT, "a")
    world.serve(ENDPOINT, "a", "e2")
    wire.sotw(ENDPOINT, "a", nonce="1")
    wire.publish()

    responses = wire.sotw(ENDPOINT, "b", nonce="1")  # the client has not read response 2 yet

    assert responses == []
    assert wire.facts == ()
    assert names_of(wire.sotw(ENDPOINT, "a", "b", nonce="2")[0]) == ["b"]


def test_receive__nack_of_an_older_outstanding_nonce__is_recorded(wire: Wire) -> None:
    wire.sotw(ENDPOINT, "a")
    wire.sotw(ENDPOINT, "a", "b")

    wire.sotw(ENDPOINT, "a", "b", nonce="1", nack="no")

    assert [fact.nonce for fact in wire.facts if isinstance(fact, Rejected)] == ["1"]  # decisions C6


def test_receive__crossing_request_with_empty_nonce__is_applied(wire: Wire) -> None:
    wire.sotw(ENDPOINT, "a")

    assert names_of(wire.sotw(ENDPOINT, "a", "b")[0]) == ["b"]  # B4


def test_receive__nonce_of_an_earlier_stream__is_a_first_request(wire: Wire) -> None:
    assert names_of(wire.sotw(ENDPOINT, "a", nonce="77", version="x")[0]) == ["a"]  # B4, B9, I9


def test_receive__error_for_a_response_never_sent__is_a_violation_not_a_nack(wire: Wire) -> None:
    wire.sotw(ENDPOINT, "a", nonce="77", nack="no")

    assert [type(fact) for fact in wire.facts] == [Violated, Subscribed]  # N1


def test_receive__repeated_ask__is_answered_at_most_once_a_second(wire: Wire) -> None:
    wire.sotw(ENDPOINT, "a", "b")
    wire.sotw(ENDPOINT, "a", "b", nonce="1")

    first = wire.sotw(ENDPOINT, "a", "b", nonce="1")  # Envoy, when a cluster was made anew
    wire.sotw(ENDPOINT, "a", "b", nonce="2")
    wire.now += 0.4
    second = wire.sotw(ENDPOINT, "a", "b", nonce="2")

    assert [names_of(r) for r in first] == [["a", "b"]]  # B7
    assert second == []
    assert wire.session.wake_at() == pytest.approx(wire.now + 0.6)
    wire.now += 0.7
    assert [names_of(r) for r in wire.written()] == [["a", "b"]]


def test_receive__repeated_ask_after_a_nack__brings_nothing_back(wire: Wire) -> None:
    wire.sotw(ENDPOINT, "a")
    wire.sotw(ENDPOINT, "a", nonce="1", nack="no")

    assert wire.sotw(ENDPOINT, "a", nonce="1") == []  # B7


# D, F. Responses and errors


def test_compose__first_wildcard_with_nothing_to_send__is_answered_empty(wire: Wire) -> None:
    (response,) = wire.sotw(LISTENER)

    assert names_of(response) == []
    assert response.version
    assert response.nonce


def test_compose__nothing_published__stays_silent() -> None:
    session = Session(Variant.SOTW, CLIENT, EngineSettings(), None)
    wire = Wire(World(), Variant.SOTW)
    wire.session = session

    assert wire.sotw(CLUSTER) == []  # T6


def test_compose__full_state_name_added__holds_everything_and_repeats_errors(wire: Wire) -> None:
    (first,) = wire.sotw(CLUSTER, "a", "gone")

    (second,) = wire.sotw(CLUSTER, "a", "b", "gone", nonce="1")

    assert (names_of(first), errors_of(first)) == (["a"], {"gone": "NOT_FOUND"})
    assert (names_of(second), errors_of(second)) == (["a", "b"], {"gone": "NOT_FOUND"})  # D1, F6, F9, T4


def test_compose__repeating_switched_off__tells_an_error_once(world: World) -> None:
    wire = Wire(world, Variant.SOTW, EngineSettings(repeat_errors=False, public_url=URL))
    wire.sotw(CLUSTER, "a", "gone")
    wire.sotw(CLUSTER, "a", "gone", nonce="1")
    world.serve(CLUSTER, "a", "a2")

    (response,) = wire.publish()

    assert errors_of(response) == {}  # F9, architecture decision 3


def test_compose__parts_missing_name__is_an_errors_only_response_told_once(wire: Wire, world: World) -> None:
    (response,) = wire.sotw(ROUTE, "nope")
    wire.sotw(ROUTE, "nope", nonce="1")
    world.serve(ROUTE, "r", "r2")

    assert names_of(response) == []
    assert errors_of(response) == {"nope": "NOT_FOUND"}
    assert response.version
    assert wire.publish() == []  # F9


def test_compose__error_ends_with_equal_content__resource_is_sent_nevertheless(wire: Wire, world: World) -> None:
    wire.sotw(ROUTE, "r")
    wire.sotw(ROUTE, "r", nonce="1")
    world.rule(ROUTE, "r", Effect.DENY)
    (denied,) = wire.publish()
    wire.sotw(ROUTE, "r", nonce="2")
    world.rule(ROUTE, "r", Effect.ALLOW)
    (back,) = wire.publish()

    assert errors_of(denied) == {"r": "PERMISSION_DENIED"}  # F13
    assert versions_of(back) == {"r": "r1"}
    assert errors_of(back) == {}


def test_compose__wildcard_only__gets_no_errors(wire: Wire, world: World) -> None:
    world.withhold(CLUSTER, "b")
    wire.publish()

    (response,) = wire.sotw(CLUSTER)

    assert (names_of(response), errors_of(response)) == (["a"], {})  # F4, F22, T8


def test_version__same_state_on_another_stream__is_equal_and_changes_with_it(world: World) -> None:
    one, other = Wire(world, Variant.SOTW), Wire(world, Variant.SOTW)
    (first,) = one.sotw(ENDPOINT, "a", "nope")
    (second,) = other.sotw(ENDPOINT, "nope", "a")
    one.sotw(ENDPOINT, "a", "nope", nonce="1")
    world.serve(ENDPOINT, "nope", "n1")
    (third,) = one.publish()
    (again,) = Wire(world, Variant.SOTW).sotw(ENDPOINT, "a", "nope")

    assert first.version == second.version != third.version == again.version  # B8, I8, F7


def test_compose__two_streams_with_equal_names__share_one_tuple(world: World) -> None:
    (one,) = Wire(world, Variant.SOTW).sotw(ENDPOINT, "a", "b")
    (other,) = Wire(world, Variant.SOTW).sotw(ENDPOINT, "b", "a")
    (wild,) = Wire(world, Variant.SOTW).sotw(CLUSTER)
    (star,) = Wire(world, Variant.SOTW).sotw(CLUSTER, "*")

    assert one.resources is other.resources
    assert wild.resources is star.resources


def test_subscribe__name_dropped_from_a_wildcard__gets_no_response(world: World) -> None:
    wire = Wire(world, Variant.SOTW)
    (first,) = wire.sotw(CLUSTER, "*", "a")

    assert wire.sotw(CLUSTER, "*", nonce=first.nonce) == []  # D4


def test_version__names_left_and_members_that_vanished__no_longer_count() -> None:
    world = World()
    member = "xdstp://x/t/d/m"
    for name in ("a", "b", member, "xdstp://x/t/d/stays"):
        world.serve(ROUTE, name, f"{name}1")
    wire, fresh = Wire(world, Variant.SOTW), Wire(world, Variant.SOTW)
    wire.sotw(ROUTE, "a", "b", "xdstp://x/t/d/*")
    wire.sotw(ROUTE, "a", "xdstp://x/t/d/*", nonce="1")
    world.forget(ROUTE, member)
    world.serve(ROUTE, "a", "a2")

    (told,) = wire.publish()
    (gone,) = wire.sotw(ROUTE, "a", "xdstp://x/t/d/*", nonce=told.nonce)
    wire.sotw(ROUTE, "a", "xdstp://x/t/d/*", nonce=gone.nonce)
    world.serve(ROUTE, "a", "a3")
    (push,) = wire.publish()
    fresh.publish()
    (same,) = fresh.sotw(ROUTE, "a", "xdstp://x/t/d/*")

    assert push.version == same.version  # I8


def test_receive__repeated_ask_partly_served_by_a_push__brings_only_the_rest(world: World) -> None:
    for name in "abc":
        world.serve(ROUTE, name, f"{name}1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(ROUTE, "a", "b", "c")
    wire.sotw(ROUTE, "a", "b", "c", nonce="1")
    (again,) = wire.sotw(ROUTE, "a", "b", "c", nonce="1")
    wire.sotw(ROUTE, "a", "b", "c", nonce=again.nonce)
    assert wire.sotw(ROUTE, "a", "b", "c", nonce=again.nonce) == []  # D32: it waits for its second
    world.serve(ROUTE, "a", "a2")
    (push,) = wire.publish()
    wire.sotw(ROUTE, "a", "b", "c", nonce=push.nonce)

    wire.now += 1

    assert [names_of(r) for r in (push, *wire.written())] == [["a"], ["b", "c"]]


@pytest.mark.parametrize(("before", "rest"), [("cd", ["d"]), ("", [])])
def test_receive__repeated_ask_for_a_collection_partly_served_by_a_push__brings_only_the_rest(
    world: World, before: str, rest: list[str]
) -> None:
    for name in before:
        world.serve(ROUTE, f"xdstp://x/t/d/{name}", f"{name}1")
    wire = Wire(world, Variant.SOTW)
    wire.sotw(ROUTE, "xdstp://x/t/d/*")
    wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce="1")
    (again,) = wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce="1")
    wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce=again.nonce)
    assert wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce=again.nonce) == []  # D32: it waits for its second
    world.serve(ROUTE, "xdstp://x/t/d/c", "c2")
    (push,) = wire.publish()
    wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce=push.nonce)

    wire.now += 1

    assert versions_of(push) == {"xdstp://x/t/d/c": "c2"}
    assert [name[-1] for response in wire.written() for name in names_of(response)] == rest


def test_receive__repeated_ask_for_a_collection_that_is_not_there__is_answered_besides_a_name_of_it(
    world: World,
) -> None:
    wire = Wire(world, Variant.SOTW)
    wire.sotw(ROUTE, "xdstp://x/t/d/*")
    wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce="1")
    (again,) = wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce="1")
    wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce=again.nonce)
    assert wire.sotw(ROUTE, "xdstp://x/t/d/*", nonce=again.nonce) == []  # D32: it waits for its second
    (named,) = wire.sotw(ROUTE, "xdstp://x/t/d/*", "xdstp://x/t/d/c", nonce=again.nonce)
    wire.sotw(ROUTE, "xdstp://x/t/d/*", "xdstp://x/t/d/c", nonce=named.nonce)

    wire.now += 1

    told = [[error.name for error in response.errors] for response in (named, *wire.written())]
    assert told == [["xdstp://x/t/d/c"], ["xdstp://x/t/d/*"]]
