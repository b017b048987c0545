"""What is withheld takes nothing from who acknowledged it, and others may find out that they take it (F18a)."""

import pytest

from adsserver.engine.events import Respond, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import CLIENT, GRPC_CLIENT, SETTINGS, World, errors_of, names_of, versions_of
from xdscore.access import Effect
from xdscore.client_kinds import ClientFamily, ClientKind
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType
from xdscore.snapshot import Content, WithheldName, client_mark

ENVOY, GRPC = CLIENT.kind, GRPC_CLIENT.kind
FULL = (CLUSTER, LISTENER)
PARTS = (ENDPOINT, ROUTE)
every_type = pytest.mark.parametrize("kind", [*FULL, *PARTS], ids=lambda kind: kind.word)
both = pytest.mark.parametrize("variant", Variant)


def wire_of(world: World, variant: Variant, client: ClientFacts = CLIENT) -> Wire:
    return Wire(world, variant, SETTINGS, client)


def ask(
    wire: Wire, variant: Variant, kind: ResourceType, *names: str, nonce: str = "", nack: str = ""
) -> list[Respond]:
    if variant is Variant.SOTW:
        return list(wire.sotw(kind, *names, nonce=nonce, nack=nack))
    return list(wire.delta(kind, *(() if nonce else names), nonce=nonce, nack=nack))


def at_rest(world: World, variant: Variant, kind: ResourceType, *names: str, client: ClientFacts = CLIENT) -> Wire:
    wire = wire_of(world, variant, client)
    for response in ask(wire, variant, kind, *names):
        ask(wire, variant, kind, *names, nonce=response.nonce)
    return wire


@pytest.fixture
def world() -> World:
    world = World()
    for kind in (*FULL, *PARTS):
        for name in "ab":
            world.serve(kind, name, f"{name}1")
    return world


@both
@every_type
def test_withheld__from_another_kind__is_served_as_ever(world: World, variant: Variant, kind: ResourceType) -> None:
    wire = at_rest(world, variant, kind, "a", "b")
    world.withhold_partly(kind, "a", "a1", GRPC)

    assert wire.publish() == []
    (first,) = ask(wire_of(world, variant), variant, kind, "a", "b")
    assert versions_of(first) == {"a": "a1", "b": "b1"}


@both
@every_type
def test_withheld__from_its_kind__newcomer_is_told_and_who_acknowledged_it_keeps_it(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    wire = at_rest(world, variant, kind, "a", "b", client=GRPC_CLIENT)
    # Nobody may probe it: as many clients refused it as are told apart.
    world.entries[kind.word, "a"] = WithheldName("no", content_of(world, kind, "a"), (str(GRPC),), ())

    sent = wire.publish()
    (first,) = ask(wire_of(world, variant, GRPC_CLIENT), variant, kind, "a", "b")

    assert errors_of(first) == {"a": "INTERNAL"}
    assert versions_of(first) == {"b": "b1"}
    if variant is Variant.SOTW and kind in FULL:
        assert sent == []  # D1: absence would delete it
    else:
        (told,) = sent
        assert (errors_of(told), names_of(told), told.removed) == ({"a": "INTERNAL"}, [], ())  # TP3


def content_of(world: World, kind: ResourceType, name: str) -> Content:
    return world.published.type_state(kind).served[name].content


@both
def test_withheld__under_a_wildcard__who_acknowledged_it_keeps_it_until_it_is_removed(
    world: World, variant: Variant
) -> None:
    wire = at_rest(world, variant, CLUSTER)
    world.withhold(CLUSTER, "a")

    assert wire.publish() == []
    world.serve(CLUSTER, "b", "b2")
    for response in wire.publish():
        assert versions_of(response)["b"] == "b2"
        ask(wire, variant, CLUSTER, nonce=response.nonce)

    world.remove(CLUSTER, "a")
    (gone,) = wire.publish()
    assert "a" not in names_of(gone)
    assert gone.removed == (("a",) if variant is Variant.DELTA else ())


@both
@pytest.mark.parametrize("end", ["remove", "deny", "serve"])
@every_type
def test_withheld__ends_by_removal_refusal_or_newer_content(
    world: World, variant: Variant, kind: ResourceType, end: str
) -> None:
    wire = at_rest(world, variant, kind, "a", "b")
    world.withhold(kind, "a")
    for response in wire.publish():
        ask(wire, variant, kind, "a", "b", nonce=response.nonce)
    if end == "deny":
        world.rule(kind, "a", Effect.DENY)
    elif end == "remove":
        world.remove(kind, "a")
    else:
        world.serve(kind, "a", "a2")

    (response,) = wire.publish()

    if end == "serve":
        assert versions_of(response)["a"] == "a2"
        return
    assert list(errors_of(response)) == ["a"]
    assert "a" not in names_of(response)
    assert response.removed == (("a",) if variant is Variant.DELTA else ())


@both
@every_type
def test_probe__one_newcomer_that_did_not_refuse_it__is_sent_it_and_the_next_is_not(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    world.withhold_partly(kind, "a", "a1")
    world.publish()

    seen = []
    for identity in ("", "spiffe://another", "spiffe://x", "spiffe://y"):
        facts = ClientFacts(identity, node_id="n", kind=GRPC)
        (first,) = ask(wire_of(world, variant, facts), variant, kind, "a", "b")
        seen.append("a" in versions_of(first))
    world.publish()
    (again,) = ask(wire_of(world, variant, ClientFacts("spiffe://z", kind=GRPC)), variant, kind, "a", "b")

    # Who proves nothing could be "another", which refused it; "x" probes it; one newcomer an epoch.
    assert seen == [False, False, True, False]
    assert "a" in versions_of(again)


@both
def test_probe__newcomer_that_does_not_ask_for_it__leaves_it_to_the_next(world: World, variant: Variant) -> None:
    world.withhold_partly(ROUTE, "a", "a1")
    world.publish()

    ask(wire_of(world, variant, ClientFacts("spiffe://x")), variant, ROUTE, "b")
    (first,) = ask(wire_of(world, variant, ClientFacts("spiffe://y")), variant, ROUTE, "a")

    assert names_of(first) == ["a"]


@both
def test_probe__of_what_it_may_not_read__is_not_granted(world: World, variant: Variant) -> None:
    world.withhold_partly(ROUTE, "a", "a1")
    world.rule(ROUTE, "a", Effect.DENY)
    world.publish()

    (first,) = ask(wire_of(world, variant, ClientFacts("spiffe://x")), variant, ROUTE, "a")

    assert errors_of(first) == {"a": "PERMISSION_DENIED"}


@both
@every_type
def test_probe__is_acknowledged__the_client_keeps_it_whatever_is_published_beside_it(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    world.withhold_partly(kind, "a", "a1")
    world.publish()
    wire = at_rest(world, variant, kind, "a", "b", client=ClientFacts("spiffe://x", kind=GRPC))
    world.serve(kind, "b", "b2")

    (push,) = wire.publish()

    assert versions_of(push).get("b") == "b2"
    assert versions_of(push).get("a") == ("a1" if variant is Variant.SOTW and kind in FULL else None)
    assert push.removed == ()


@both
def test_probe__existing_stream__is_no_newcomer(world: World, variant: Variant) -> None:
    wire = at_rest(world, variant, ROUTE, "b", client=ClientFacts("spiffe://x"))
    world.withhold_partly(ROUTE, "a", "a1")
    wire.publish()

    responses = wire.sotw(ROUTE, "a", "b", nonce="1") if variant is Variant.SOTW else wire.delta(ROUTE, "a")

    assert [errors_of(response) for response in responses] == [{"a": "INTERNAL"}]


def test_mark__verified_identity_counts_and_not_the_node() -> None:
    one, other = ClientFacts("spiffe://a", "n1"), ClientFacts("spiffe://a", "n2")

    assert client_mark(one) == client_mark(other) != client_mark(ClientFacts("", "spiffe://a"))


def test_audience__only_kinds_that_something_is_withheld_from__are_told_apart(world: World) -> None:
    world.withhold_partly(ROUTE, "a", "a1", GRPC)
    snapshot = world.publish().snapshot
    go = ClientFacts(node_id="go", kind=ClientKind(ClientFamily.GRPC_GO, "1.85"))

    assert snapshot.audience(go) == snapshot.audience(CLIENT)
    assert snapshot.audience(GRPC_CLIENT).kind == "grpc-core 1.85"
