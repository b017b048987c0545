"""Resource errors, case by case (protocol.md F, xRFC TP3)."""

import pytest
from envoy.service.discovery.v3 import discovery_pb2
from google.rpc import error_details_pb2

from adsserver.engine.events import Rejected, Respond, Variant
from adsserver.engine.session import Session
from adsserver.wire.discovery import Encoder
from tests.protocol.engine.half import Half
from tests.protocol.engine.model import ModelClient
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import SETTINGS, World, errors_of, names_of, versions_of
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, ResourceType
from xdscore.snapshot import Content


class Contents:
    """Bytes that nobody looks at."""

    def any_bytes(self, content: Content) -> bytes:
        return content.blob


@pytest.fixture
def world() -> World:
    world = World()
    for kind in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
        world.serve(kind, "a", "a1")
        world.serve(kind, "b", "b1")
    return world


def ask(
    wire: Wire, variant: Variant, kind: ResourceType, *names: str, nonce: str = "", nack: str = ""
) -> list[Respond]:
    if variant is Variant.SOTW:
        return wire.sotw(kind, *names, nonce=nonce, nack=nack)
    return wire.delta(kind, *(names if not nonce else ()), nonce=nonce, nack=nack)


@pytest.mark.parametrize("variant", Variant)
def test_entry__on_the_wire__has_the_name_the_code_and_a_reason_for_programs(world: World, variant: Variant) -> None:
    (response,) = ask(Wire(world, variant), variant, ROUTE, "nope")
    sotw = variant is Variant.SOTW
    message = discovery_pb2.DiscoveryResponse() if sotw else discovery_pb2.DeltaDiscoveryResponse()

    message.ParseFromString(Encoder(Contents(), "parley").encode(variant, response))

    (entry,) = message.resource_errors
    (detail,) = entry.error_detail.details
    info = error_details_pb2.ErrorInfo()
    assert (entry.resource_name.name, entry.error_detail.code) == ("nope", 5)
    assert not entry.resource_name.HasField("dynamic_parameter_constraints")
    assert entry.error_detail.message.startswith("NOT_FOUND [XDS2101] RouteConfiguration 'nope'")
    assert detail.Unpack(info)
    # Nothing of the environment, the client or a rule.
    assert (info.reason, info.domain, dict(info.metadata)) == ("XDS2101", "parley", {})
    assert (message.version_info if sotw else message.system_version_info, message.nonce) == (response.version, "1")


def test_codes__of_every_decision__are_those_that_clients_understand(world: World) -> None:
    world.remove(ROUTE, "removed")
    world.withhold(ROUTE, "withheld")
    world.rule(ROUTE, "denied", Effect.DENY)
    world.rule(ROUTE, "hidden", Effect.HIDE)
    world.publish()

    (response,) = Wire(world, Variant.SOTW).sotw(ROUTE, "a", "never", "removed", "withheld", "denied", "hidden")

    assert names_of(response) == ["a"]
    assert [(e.name, e.code.name, e.xds_code) for e in response.errors] == [
        ("denied", "PERMISSION_DENIED", "XDS2103"),
        ("hidden", "NOT_FOUND", "XDS2101"),
        ("never", "NOT_FOUND", "XDS2101"),
        ("removed", "NOT_FOUND", "XDS2102"),
        ("withheld", "INTERNAL", "XDS2106"),
    ]  # F2, F16


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, LISTENER])
def test_name_under_a_wildcard__asked_for_by_itself__is_explained(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    (response,) = ask(Wire(world, variant), variant, kind, "*", "nope")

    assert names_of(response) == ["a", "b"]
    assert errors_of(response) == {"nope": "NOT_FOUND"}  # F4


@pytest.mark.parametrize("variant", Variant)
def test_withheld__name_asked_for__is_internal_with_its_reason(world: World, variant: Variant) -> None:
    world.withhold(ROUTE, "w", "its cluster is gone")
    world.publish()

    (response,) = ask(Wire(world, variant), variant, ROUTE, "w")

    assert errors_of(response) == {"w": "INTERNAL"}  # F18
    assert "RouteConfiguration 'w' is withheld: its cluster is gone." in response.errors[0].text


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [CLUSTER, ENDPOINT, LISTENER, ROUTE])
@pytest.mark.parametrize(
    ("how", "code"),
    [("remove", "NOT_FOUND"), ("deny", "PERMISSION_DENIED"), ("hide", "NOT_FOUND")],
)
def test_lost__how_it_is_told_by_variant_and_type(
    world: World, variant: Variant, kind: ResourceType, how: str, code: str
) -> None:
    wire = Wire(world, variant)
    ask(wire, variant, kind, "a", "b")
    ask(wire, variant, kind, "a", "b", nonce="1")
    if how in {"deny", "hide"}:
        world.rule(kind, "a", Effect(how))
    else:
        getattr(world, how)(kind, "a")

    (response,) = wire.publish()

    assert errors_of(response) == {"a": code}  # F12, F13
    assert names_of(response) == (["b"] if variant is Variant.SOTW and kind.full_state else [])
    assert response.removed == (("a",) if variant is Variant.DELTA else ())


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [LISTENER, ROUTE])
def test_new_stream__same_error__is_told_again(world: World, variant: Variant, kind: ResourceType) -> None:
    told = [ask(Wire(world, variant), variant, kind, "nope")[0].errors for _ in range(2)]

    assert told[0] == told[1] != ()  # F10


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [LISTENER, ROUTE])
def test_code_changes__is_told_at_once(world: World, variant: Variant, kind: ResourceType) -> None:
    wire = Wire(world, variant)
    ask(wire, variant, kind, "nope")
    ask(wire, variant, kind, "nope", nonce="1")
    world.rule(kind, "nope", Effect.DENY)

    assert [errors_of(r) for r in wire.publish()] == [{"nope": "PERMISSION_DENIED"}]  # F10


@pytest.mark.parametrize("variant", Variant)
def test_errors_only__rejected__blames_nothing_and_is_not_repeated(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    ask(wire, variant, ROUTE, "nope")

    assert ask(wire, variant, ROUTE, "nope", nonce="1", nack="resource_errors index 0: resource_name unset") == []

    (fact,) = wire.facts
    assert isinstance(fact, Rejected)
    assert (fact.resources, fact.suspects) == ((), ())  # F8


@pytest.mark.parametrize("variant", Variant)
def test_alternating__fifty_flips_while_acks_lag__the_last_state_is_told(world: World, variant: Variant) -> None:
    wire = Wire(world, variant)
    written = ask(wire, variant, ROUTE, "a")
    nonces = [r.nonce for r in written]
    for flip in range(51):
        if flip % 2:
            world.serve(ROUTE, "a", "a1")
        else:
            world.remove(ROUTE, "a")
        written += wire.publish()
        if flip % 5 == 0 and nonces:
            written += ask(wire, variant, ROUTE, "a", nonce=nonces.pop())
        nonces += [r.nonce for r in written if r.nonce not in nonces][-1:]
    for _ in range(5):
        written += ask(wire, variant, ROUTE, "a", nonce=written[-1].nonce)

    assert errors_of(written[-1]) == {"a": "NOT_FOUND"}  # T5


def test_many_errors__are_split_over_responses() -> None:
    wire = Wire(World(), Variant.DELTA)
    names = [f"{number:04}-" + "n" * 1000 for number in range(1500)]

    responses = wire.delta(ROUTE, *names)

    encoder = Encoder(Contents(), "parley")
    assert len(responses) == 2
    assert all(len(encoder.encode(Variant.DELTA, r)) < 2 * 1024 * 1024 for r in responses)
    assert sorted(name for r in responses for name in errors_of(r)) == names  # F23


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("value", ["off", "false"])
def test_errors_switched_off__the_rest_is_unchanged(world: World, variant: Variant, value: str) -> None:
    told, spared = Wire(world, variant), Wire(world, variant)
    client = ClientFacts(node_id="n", metadata={"parley.resource_errors": value})
    spared.session = Session(variant, client, SETTINGS, world.publication)

    for kind in (CLUSTER, ENDPOINT, ROUTE):
        (with_errors,) = ask(told, variant, kind, "a", "nope")
        (without,) = ask(spared, variant, kind, "a", "nope")

        assert errors_of(with_errors) == {"nope": "NOT_FOUND"}
        assert without.errors == ()  # F24
        assert (without.resources, without.removed) == (with_errors.resources, with_errors.removed)


class Old(ModelClient):
    """A client from before TP3: it does not read field 7 or 9."""

    def _apply(self, half: Half, response: Respond, bad: set[str]) -> None:
        stripped = Respond(response.kind, response.nonce, response.version, response.resources, (), response.removed)
        super()._apply(half, stripped, bad)


@pytest.mark.parametrize("variant", Variant)
def test_client_that_ignores_errors__holds_what_is_served(world: World, variant: Variant) -> None:
    kinds = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
    client = Old(world, variant, kinds)
    held = []
    for kind in kinds:
        client.want(kind, frozenset({"a", "b", "nope"}), wildcard=False)
    for step in ("start", "remove", "deny", "back"):
        for kind in kinds:
            if step == "remove":
                world.remove(kind, "a")
            elif step == "deny":
                world.rule(kind, "b", Effect.DENY)
            elif step == "back":
                world.serve(kind, "a", "a1")
                world.rule(kind, "b", Effect.ALLOW)
        client.publish()
        while client.write() or client.in_flight:
            client.read()
        held.append({kind.short: sorted(client.halves[kind].held) for kind in kinds})

    parts, full = ("EDS", "RDS"), ("CDS", "LDS")
    both: dict[str, list[str]] = {short: ["a", "b"] for short in (*parts, *full)}
    only_b, nothing = {short: ["b"] for short in both}, {short: list[str]() for short in both}
    if variant is Variant.SOTW:
        # SotW cannot take endpoints and routes away: whoever does not read errors goes on with its copies (F13).
        only_b |= {short: ["a", "b"] for short in parts}
        nothing |= {short: ["a", "b"] for short in parts}
    assert held == [both, only_b, nothing, both]  # T9, A10


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("kind", [ENDPOINT, ROUTE, SECRET])
def test_unreadable__name_the_client_has_nothing_of__is_unavailable_and_takes_nothing_away(
    world: World, variant: Variant, kind: ResourceType
) -> None:
    world.unread(kind, "x")
    wire = Wire(world, variant)

    (response,) = (wire.delta if variant is Variant.DELTA else wire.sotw)(kind, "x")

    assert errors_of(response) == {"x": "UNAVAILABLE"}  # law 3: no data error, and no removal that would be one
    assert (response.resources, response.removed) == ((), ())


def test_unreadable__then_gone__the_copy_the_client_kept_is_removed(world: World) -> None:
    world.unread(SECRET, "x")
    wire = Wire(world, Variant.DELTA)
    (told,) = wire.delta(SECRET, "x", has={"x": "v1"})
    wire.delta(SECRET, nonce=told.nonce)
    world.remove(SECRET, "x")

    (gone,) = wire.publish()

    assert (errors_of(told), told.removed) == ({"x": "UNAVAILABLE"}, ())
    assert (errors_of(gone), gone.removed) == ({"x": "NOT_FOUND"}, ("x",))


def test_unreadable__can_be_read_again__is_sent_although_the_client_may_have_it(world: World) -> None:
    world.serve(SECRET, "x", "v1")
    wire = Wire(world, Variant.DELTA)
    wire.delta(SECRET, "x")
    wire.delta(SECRET, nonce="1")
    world.unread(SECRET, "x")
    (told,) = wire.publish()
    wire.delta(SECRET, nonce=told.nonce)
    world.serve(SECRET, "x", "v1")

    (again,) = wire.publish()

    assert told.removed == ()  # F14
    assert versions_of(again) == {"x": "v1"}  # F11


def test_unreadable__member_of_a_collection__is_told_by_its_own_name(world: World) -> None:
    member = "xdstp://x/envoy.extensions.transport_sockets.tls.v3.Secret/d/m"
    world.unread(SECRET, member)
    wire = Wire(world, Variant.DELTA)

    (response,) = wire.delta(SECRET, "xdstp://x/envoy.extensions.transport_sockets.tls.v3.Secret/d/*")

    assert errors_of(response) == {member: "UNAVAILABLE"}  # F19
