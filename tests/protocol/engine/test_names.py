"""Names of the xdstp form: one name in several spellings, and glob collections (protocol.md H, F19)."""

from collections.abc import Callable

import pytest

from adsserver.engine.events import Acknowledged, Rejected, Respond, Subscribed, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World, errors_of, names_of, versions_of
from xdscore.access import Effect
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE, ResourceType


def name_of(kind: ResourceType, own: str, context: str = "") -> str:
    return f"xdstp://auth/{kind.message}/d/{own}{context}"


@pytest.fixture
def world() -> World:
    world = World()
    for kind in (CLUSTER, ENDPOINT, ROUTE):
        world.serve(kind, name_of(kind, "x"), "x1")
        world.serve(kind, name_of(kind, "y"), "y1")
        world.serve(kind, name_of(kind, "deeper/z"), "z1")
        world.serve(kind, name_of(kind, "x", "?a=1&b=2"), "c1")
        world.serve(kind, "plain", "p1")
    return world


def ask(wire: Wire, kind: ResourceType, *names: str, nonce: str = "", nack: str = "") -> list[str]:
    """Ask for these names; what was written: resources, errors as name=CODE, removals as -name."""
    if wire.session._variant is Variant.SOTW:
        responses = wire.sotw(kind, *names, nonce=nonce, nack=nack)
    else:
        responses = wire.delta(kind, *names, nonce=nonce, nack=nack)
    return [
        short(text)
        for r in responses
        for text in (*names_of(r), *(f"{n}={c}" for n, c in errors_of(r).items()), *(f"-{n}" for n in r.removed))
    ]


def short(text: str) -> str:
    return text.replace("xdstp://auth/", "").replace("/d/", ":").rpartition(".")[2]


# H1: spelling


@pytest.mark.parametrize("variant", Variant)
def test_name__parameters_in_another_order__is_the_same_resource_under_the_clients_spelling(
    world: World, variant: Variant
) -> None:
    wire = Wire(world, variant)

    asked = ask(wire, ROUTE, name_of(ROUTE, "x", "?b=2&a=1"), name_of(ROUTE, "nope", "?b=2&a=1"))

    assert asked[:2] == ["RouteConfiguration:x?b=2&a=1", "RouteConfiguration:nope?b=2&a=1=NOT_FOUND"]
    assert wire.facts == (
        Subscribed(ROUTE, False, frozenset({name_of(ROUTE, "x", "?a=1&b=2"), name_of(ROUTE, "nope", "?a=1&b=2")})),
    )


def test_name__removed__is_named_as_the_client_spells_it(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    ask(wire, CLUSTER, name_of(CLUSTER, "x", "?b=2&a=1"))
    ask(wire, CLUSTER, nonce="1")
    world.forget(CLUSTER, name_of(CLUSTER, "x", "?a=1&b=2"))

    (response,) = wire.publish()

    assert response.removed == (name_of(CLUSTER, "x", "?b=2&a=1"),)
    assert list(errors_of(response)) == [name_of(CLUSTER, "x", "?b=2&a=1")]


def test_name__unsubscribed_in_another_spelling__is_left_and_forgotten(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    ask(wire, ROUTE, name_of(ROUTE, "x", "?b=2&a=1"))

    assert wire.delta(ROUTE, unsubscribe=(name_of(ROUTE, "x", "?a=1&b=2"),), nonce="1") == []
    assert ask(wire, ROUTE, name_of(ROUTE, "x", "?a=1&b=2")) == ["RouteConfiguration:x?a=1&b=2"]


def test_name__held_in_another_spelling__is_compared_as_one(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    spelled = name_of(ROUTE, "x", "?b=2&a=1")

    assert wire.delta(ROUTE, spelled, has={spelled: "c1"}) == []  # C6


def test_name__other_parameters__is_another_resource(world: World) -> None:
    wire = Wire(world, Variant.SOTW)

    assert ask(wire, ROUTE, name_of(ROUTE, "x", "?a=1")) == ["RouteConfiguration:x?a=1=NOT_FOUND"]  # H2


def test_name__composed_and_decomposed_letter__are_two_names(world: World) -> None:
    world.serve(ROUTE, "\u00e9", "1")
    world.publish()
    wire = Wire(world, Variant.SOTW)

    (response,) = wire.sotw(ROUTE, "\u00e9", "e\u0301")

    assert (names_of(response), list(errors_of(response))) == (["\u00e9"], ["e\u0301"])  # I13


# H3: collections


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT, ROUTE])
def test_glob__asked_for__is_answered_with_its_direct_members(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    wire = Wire(world, variant)

    assert ask(wire, kind, name_of(kind, "*")) == [f"{kind.title}:x", f"{kind.title}:y"]
    assert ask(wire, kind, *((name_of(kind, "*"),) if variant is Variant.SOTW else ()), nonce="1") == []


@pytest.mark.parametrize("variant", Variant)
def test_glob__with_context__covers_exactly_that_context(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)

    assert ask(wire, ROUTE, name_of(ROUTE, "*", "?b=2&a=1")) == ["RouteConfiguration:x?a=1&b=2"]  # H2


@pytest.mark.parametrize("variant", Variant)
def test_glob__of_another_type_or_without_members__is_not_found_by_its_own_name(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)

    told = ask(wire, ROUTE, name_of(CLUSTER, "*"), name_of(ROUTE, "x/*"))

    assert told == ["Cluster:*=NOT_FOUND", "RouteConfiguration:x/*=NOT_FOUND"]  # H2, F19


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("plain", ["d/*", "a*b", "xdstp://auth/*"])
def test_glob__old_style_name_with_a_star__is_a_plain_name(world: World, variant: Variant, plain: str) -> None:
    world.serve(ROUTE, "d/x", "1")
    world.publish()
    wire = Wire(world, variant)

    assert [e.split("=")[1] for e in ask(wire, ROUTE, plain)] == ["NOT_FOUND"]


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize(("effect", "code"), [(Effect.DENY, "PERMISSION_DENIED"), (Effect.HIDE, "NOT_FOUND")])
def test_glob__collection_refused__is_one_error_and_its_members_go(
    world: World, variant: Variant, effect: Effect, code: str
) -> None:
    wire = Wire(world, variant)
    glob = name_of(CLUSTER, "*")
    ask(wire, CLUSTER, glob)
    ask(wire, CLUSTER, *((glob,) if variant is Variant.SOTW else ()), nonce="1")
    for own in ("*", "x", "y"):
        world.rule(CLUSTER, name_of(CLUSTER, own), effect)

    (response,) = wire.publish()

    assert names_of(response) == []
    assert errors_of(response) == {glob: code}  # F19
    removed = {glob: 0, name_of(CLUSTER, "x"): 0, name_of(CLUSTER, "y"): 0}
    assert dict.fromkeys(response.removed, 0) == (removed if variant is Variant.DELTA else {})


@pytest.mark.parametrize("variant", Variant)
def test_glob__members_come_and_go__are_told_by_their_own_names(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    glob = (name_of(ROUTE, "*"),)
    ask(wire, ROUTE, *glob)
    ack = glob if variant is Variant.SOTW else ()
    ask(wire, ROUTE, *ack, nonce="1")
    world.serve(ROUTE, name_of(ROUTE, "new"), "n1")
    world.serve(ROUTE, name_of(ROUTE, "y"), "y2")
    (came,) = wire.publish()
    ask(wire, ROUTE, *ack, nonce="2")
    world.remove(ROUTE, name_of(ROUTE, "new"))

    gone = wire.publish()

    assert versions_of(came) == {name_of(ROUTE, "new"): "n1", name_of(ROUTE, "y"): "y2"}
    assert [errors_of(r) for r in gone] == [{name_of(ROUTE, "new"): "NOT_FOUND"}]  # F19
    assert [r.removed for r in gone] == [(name_of(ROUTE, "new"),) if variant is Variant.DELTA else ()]


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
def test_glob__member_withheld__is_named_with_its_reason_and_ends_with_its_content(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    wire = Wire(world, variant)
    world.withhold(kind, name_of(kind, "y"))
    world.publish()
    wire = Wire(world, variant)
    glob = (name_of(kind, "*"),)

    told = ask(wire, kind, *glob)
    ask(wire, kind, *(glob if variant is Variant.SOTW else ()), nonce="1")
    world.serve(kind, name_of(kind, "y"), "y3")
    (back,) = wire.publish()

    assert f"{kind.title}:x" in told
    assert f"{kind.title}:y=INTERNAL" in told  # F19: one member
    assert versions_of(back)[name_of(kind, "y")] == "y3"
    assert errors_of(back) == {}


@pytest.mark.parametrize("variant", Variant)
def test_glob__member_refused__leaves_no_trace(world: World, variant: Variant) -> None:
    world.rule(ROUTE, name_of(ROUTE, "y"), Effect.DENY)
    world.publish()
    wire = Wire(world, variant)

    assert ask(wire, ROUTE, name_of(ROUTE, "*")) == ["RouteConfiguration:x"]  # T11


@pytest.mark.parametrize("variant", Variant)
def test_glob__first_member_appears__ends_the_error_of_the_collection(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    glob = (name_of(ROUTE, "e/*"),)
    ack = glob if variant is Variant.SOTW else ()
    ask(wire, ROUTE, *glob)
    ask(wire, ROUTE, *ack, nonce="1")
    world.serve(ROUTE, name_of(ROUTE, "e/one"), "1")
    (first,) = wire.publish()
    ask(wire, ROUTE, *ack, nonce="2")
    world.forget(ROUTE, name_of(ROUTE, "e/one"))
    (last,) = wire.publish()

    assert (names_of(first), errors_of(first), first.removed) == ([name_of(ROUTE, "e/one")], {}, ())
    assert errors_of(last) == {name_of(ROUTE, "e/one"): "NOT_FOUND", glob[0]: "NOT_FOUND"}


# F19: members that go


def lose(world: World, kind: ResourceType, name: str, how: str) -> None:
    if how in {"deny", "hide"}:
        world.rule(kind, name, Effect(how))
    else:
        getattr(world, how)(kind, name)


def watching(world: World, variant: Variant, kind: ResourceType) -> tuple[Wire, Callable[[], list[Respond]]]:
    """A client that asked for the collection and acknowledged it; and what publishes, and acknowledges all of it."""
    wire = Wire(world, variant)
    glob = name_of(kind, "*")
    ack = (glob,) if variant is Variant.SOTW else ()
    ask(wire, kind, glob)
    ask(wire, kind, *ack, nonce="1")

    def publish() -> list[Respond]:
        written = wire.publish()
        for response in written:
            ask(wire, kind, *ack, nonce=response.nonce)
        return written

    return wire, publish


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT, ROUTE])
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("remove", ("NOT_FOUND", "XDS2102")),
        ("forget", ("NOT_FOUND", "XDS2101")),
        ("deny", ("PERMISSION_DENIED", "XDS2103")),
        ("hide", ("NOT_FOUND", "XDS2101")),
    ],
)
def test_member__gone__is_told_once_by_its_own_name_and_to_nobody_else(
    world: World, variant: Variant, kind: ResourceType, how: str, told: tuple[str, str]
) -> None:
    _, publish = watching(world, variant, kind)
    member, other = name_of(kind, "y"), name_of(kind, "x")
    lose(world, kind, member, how)

    (gone,) = publish()
    world.serve(kind, other, "x2")
    (later,) = publish()

    assert [(e.name, e.code.name, e.xds_code) for e in gone.errors] == [(member, *told)]
    assert gone.removed == ((member,) if variant is Variant.DELTA else ())
    assert (names_of(later), later.errors, later.removed) == ([other], (), ())
    assert ask(Wire(world, variant), kind, name_of(kind, "*")) == [f"{kind.title}:x"]  # T11


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT, ROUTE])
def test_member__withheld_then_gone__the_error_does_not_outlive_it(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    member = name_of(kind, "y")
    world.withhold(kind, member)
    world.publish()
    _, publish = watching(world, variant, kind)
    world.remove(kind, member)

    (gone,) = publish()

    assert [(e.name, e.xds_code) for e in gone.errors] == [(member, "XDS2102")]
    assert publish() == []


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT])
def test_member__gone_and_back_with_equal_content__is_sent(world: World, variant: Variant, kind: ResourceType) -> None:
    _, publish = watching(world, variant, kind)
    member = name_of(kind, "y")
    world.remove(kind, member)
    publish()
    world.serve(kind, member, "y1")

    (back,) = publish()

    assert versions_of(back)[member] == "y1"  # F11


@pytest.mark.parametrize("variant", Variant)
def test_member__gone_while_asked_for_by_name_too__is_an_error_of_that_name_that_stays(
    world: World, variant: Variant
) -> None:
    wire = Wire(world, variant)
    names = (name_of(CLUSTER, "*"), name_of(CLUSTER, "y"))
    ask(wire, CLUSTER, *names)
    ask(wire, CLUSTER, *(names if variant is Variant.SOTW else ()), nonce="1")
    world.remove(CLUSTER, names[1])
    (gone,) = wire.publish()
    ask(wire, CLUSTER, *(names if variant is Variant.SOTW else ()), nonce="2")
    world.serve(CLUSTER, name_of(CLUSTER, "x"), "x2")

    (later,) = wire.publish()

    assert errors_of(gone) == {names[1]: "NOT_FOUND"}
    assert errors_of(later) == (errors_of(gone) if variant is Variant.SOTW else {})  # F9


@pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT])
def test_member__gone__version_shows_it_in_that_response_alone(world: World, kind: ResourceType) -> None:
    wire, publish = watching(world, Variant.SOTW, kind)
    world.remove(kind, name_of(kind, "y"))

    (gone,) = publish()
    world.serve(kind, name_of(kind, "x"), "x2")
    (later,) = publish()

    (fresh,) = Wire(wire.world, Variant.SOTW).sotw(kind, name_of(kind, "*"))
    assert later.version == fresh.version  # B8, I8: whoever was never told of the member is shown the same
    world.serve(kind, name_of(kind, "x"), "x1")
    (back,) = publish()
    assert back.version != gone.version  # F7


@pytest.mark.parametrize("variant", Variant)
def test_member__gone_in_a_response_that_is_refused__is_told_again(world: World, variant: Variant) -> None:
    wire, _ = watching(world, variant, ENDPOINT)
    glob, (x, y) = name_of(ENDPOINT, "*"), (name_of(ENDPOINT, own) for own in "xy")
    for version in ("1", "2"):
        for member in (x, y):
            world.serve(CLUSTER, f"of {member}", version, eds_name=member)
        if version == "1":
            world.publish()
            ask(wire, CLUSTER, "*")
    world.remove(ENDPOINT, y)

    clusters, endpoints = wire.publish()
    again = ask(wire, ENDPOINT, *((glob,) if variant is Variant.SOTW else ()), nonce=endpoints.nonce, nack="no")

    assert (clusters.kind, names_of(endpoints), errors_of(endpoints)) == (CLUSTER, [x], {y: "NOT_FOUND"})  # I3
    assert again[0] == "ClusterLoadAssignment:y=NOT_FOUND"  # B12


def test_glob__subscribed_again__all_members_are_answered(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    ask(wire, ROUTE, name_of(ROUTE, "*"))
    ask(wire, ROUTE, nonce="1")

    assert ask(wire, ROUTE, name_of(ROUTE, "*")) == ["RouteConfiguration:x", "RouteConfiguration:y"]  # C6


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT])
def test_glob__members_known_by_their_names__are_answered_for_the_collection(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    wire = Wire(world, variant)
    named, glob = (name_of(kind, "x"), name_of(kind, "y")), name_of(kind, "*")
    ask(wire, kind, *named)

    again = ask(wire, kind, *((*named, glob) if variant is Variant.SOTW else (glob,)), nonce="1")

    assert again == [f"{kind.title}:x", f"{kind.title}:y"]  # C1, C6


def test_glob__reconnect_with_what_is_current__gets_only_the_rest(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    held = {name_of(ROUTE, "x"): "x1", name_of(ROUTE, "gone"): "g1"}

    responses = wire.delta(ROUTE, name_of(ROUTE, "*"), has=held)

    assert [(versions_of(r), r.removed) for r in responses] == [
        ({name_of(ROUTE, "y"): "y1"}, ()),
        ({}, (name_of(ROUTE, "gone"),)),
    ]  # E5


def test_glob__reconnect_with_a_member_that_is_withheld_now__is_told_why_and_keeps_it(world: World) -> None:
    world.withhold(ROUTE, name_of(ROUTE, "y"))
    world.publish()
    wire = Wire(world, Variant.DELTA)

    (response,) = wire.delta(ROUTE, name_of(ROUTE, "*"), has={name_of(ROUTE, own): f"{own}1" for own in "xy"})

    assert (names_of(response), response.removed) == ([], ())  # F18a
    assert errors_of(response) == {name_of(ROUTE, "y"): "INTERNAL"}  # E5, F19


def test_glob__left_while_one_member_is_asked_for_by_name__only_that_stays(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    ask(wire, ROUTE, name_of(ROUTE, "*"), name_of(ROUTE, "x"))
    wire.delta(ROUTE, unsubscribe=(name_of(ROUTE, "*"),), nonce="1")
    world.serve(ROUTE, name_of(ROUTE, "x"), "x2")
    world.serve(ROUTE, name_of(ROUTE, "y"), "y2")

    assert [versions_of(r) for r in wire.publish()] == [{name_of(ROUTE, "x"): "x2"}]  # I5


def test_glob__under_a_wildcard_and_left__is_not_answered(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    ask(wire, CLUSTER, "*", name_of(CLUSTER, "*"))

    assert wire.delta(CLUSTER, unsubscribe=(name_of(CLUSTER, "*"),), nonce="1") == []


def test_glob__member_rejected__the_others_are_isolated_from_it(world: World) -> None:
    wire = Wire(world, Variant.DELTA)
    ask(wire, ROUTE, name_of(ROUTE, "*"))

    again = ask(wire, ROUTE, nonce="1", nack="no")

    assert again == ["RouteConfiguration:x"]  # halves of two suspects
    assert ask(wire, ROUTE, nonce="2") == ["RouteConfiguration:y"]
    assert [type(fact) for fact in wire.facts] == [Acknowledged]
    assert ask(wire, ROUTE, nonce="3", nack="no") == []
    assert [[m.content.version for m in f.suspects] for f in wire.facts if isinstance(f, Rejected)] == [["y1"]]


def test_glob__version__is_that_of_the_members_shown_whatever_way_led_there(world: World) -> None:
    one, other = Wire(world, Variant.SOTW), Wire(world, Variant.SOTW)
    glob, member = name_of(ROUTE, "*"), name_of(ROUTE, "x")
    one.sotw(ROUTE, glob)
    (both,) = one.sotw(ROUTE, glob, "nope", nonce="1")
    one.sotw(ROUTE, glob, "nope", nonce="2")
    one.sotw(ROUTE, "nope", member, nonce="2")

    (alone,) = other.sotw(ROUTE, "nope", member)
    (again,) = one.sotw(ROUTE, "nope", member, "other", nonce="3")
    other.sotw(ROUTE, "nope", member, nonce="1")
    (same,) = other.sotw(ROUTE, "nope", member, "other", nonce="1")

    assert both.version != alone.version
    assert again.version == same.version  # B8, I8
