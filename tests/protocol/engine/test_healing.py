"""After a NACK, whoever may have dropped what it had is sent that again, once, and nothing else (F17a, N3; A88)."""

import pytest

from adsserver.engine.events import Acknowledged, Rejected, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import GRPC_CLIENT, SETTINGS, World, names_of, versions_of
from xdscore.access import Effect
from xdscore.client_kinds import ClientFamily, ClientKind
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, ResourceType

KINDS = (LISTENER, CLUSTER, ROUTE, ENDPOINT, SECRET)


def core(names: list[str], *bad: str) -> str:
    rows = [f"resource index {names.index(name)}: {name}: INVALID_ARGUMENT: bad" for name in bad]
    return f"xDS response validation errors: [{'; '.join(rows)}]"


class Client(Wire):
    """A gRPC client that asks for these names of one type, and answers as it is told."""

    def __init__(
        self, world: World, variant: Variant, kind: ResourceType, *names: str, client: ClientFacts = GRPC_CLIENT
    ) -> None:
        super().__init__(world, variant, SETTINGS, client)
        self.kind, self.names, self.variant = kind, names, variant
        self.first = self.delta(kind, *names) if variant is Variant.DELTA else self.sotw(kind, *names)

    def answer(self, nonce: str, nack: str = "") -> list[dict[str, str]]:
        listed = () if self.variant is Variant.DELTA else self.names
        send = self.delta if self.variant is Variant.DELTA else self.sotw
        self.sent = send(self.kind, *listed, nonce=nonce, nack=nack)
        return [versions_of(response) for response in self.sent]

    def push(self) -> str:
        (response,) = self.publish()
        return response.nonce

    def rejected(self) -> Rejected:
        (fact,) = [fact for fact in self.facts if isinstance(fact, Rejected)]
        return fact

    def acknowledged(self) -> Acknowledged:
        (fact,) = [fact for fact in self.facts if isinstance(fact, Acknowledged)]
        return fact


def at_rest(variant: Variant, kind: ResourceType, *names: str, client: ClientFacts = GRPC_CLIENT) -> Client:
    world = World()
    for name in names:
        world.serve(kind, name, f"{name}1")
    made = Client(world, variant, kind, *names, client=client)
    assert made.answer(made.first[-1].nonce) == []
    return made


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)
@pytest.mark.parametrize("variant", Variant)
def test_heal__only_change_is_refused__acknowledged_content_is_sent_again_once(
    variant: Variant, kind: ResourceType
) -> None:
    client = at_rest(variant, kind, "a")
    client.world.serve(kind, "a", "a2")

    sent = client.answer(client.push(), nack="no")
    fact = client.rejected()
    after = client.answer(client.sent[0].nonce)

    assert sent == [{"a": "a1"}]
    assert [(member.name, member.content.version) for member in fact.kept] == [("a", "a1")]
    assert fact.healing
    assert after == []
    assert client.acknowledged().heal  # B11: it proves nothing, and the client still refuses a2
    assert client.publish() == []


@pytest.mark.parametrize("family", [ClientFamily.ENVOY, ClientFamily.GRPC_GO, ClientFamily.GRPC_NODE])
@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_heal__family_that_keeps_what_it_had__is_sent_nothing(
    variant: Variant, kind: ResourceType, family: ClientFamily
) -> None:
    client = at_rest(variant, kind, "a", client=ClientFacts(node_id="n", kind=ClientKind(family, "1.40")))
    client.world.serve(kind, "a", "a2")

    assert client.answer(client.push(), nack="no") == []
    assert [member.content.version for member in client.rejected().kept] == ["a1"]
    assert not client.rejected().healing


@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_heal__is_refused_itself__is_not_healed_again(variant: Variant, kind: ResourceType) -> None:
    client = at_rest(variant, kind, "a")
    client.world.serve(kind, "a", "a2")
    client.answer(client.push(), nack="no")

    assert client.answer(client.sent[0].nonce, nack="not that either") == []
    assert client.rejected().suspects == ()  # N2: it had acknowledged it before
    assert client.publish() == []


@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_heal__text_names_one_of_two__that_one_alone_goes_back(variant: Variant, kind: ResourceType) -> None:
    client = at_rest(variant, kind, "a", "b")
    for name in "ab":
        client.world.serve(kind, name, f"{name}2")
    (push,) = client.publish()

    held: dict[str, str] = {}
    pending = [push]
    texts = [core(names_of(push), "a")]
    while pending:
        response = pending.pop(0)
        text = texts.pop() if texts else ""
        held |= {} if text else versions_of(response)
        client.answer(response.nonce, nack=text)
        pending += client.sent

    assert held == {"a": "a1", "b": "b2"}


@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_heal__text_names_nobody__suspects_are_told_apart_first(variant: Variant, kind: ResourceType) -> None:
    client = at_rest(variant, kind, *"abcd")
    for name in "abcd":
        client.world.serve(kind, name, f"{name}2")
    (push,) = client.publish()

    held = {name: f"{name}1" for name in "abcd"}
    pending = [push]
    while pending:
        response = pending.pop(0)
        versions = versions_of(response)
        bad = versions.get("c") == "c2"
        # It drops what it refuses, and uses the rest (A46).
        held |= {name: version for name, version in versions.items() if version != "c2"}
        if bad:
            held.pop("c", None)
        client.answer(response.nonce, nack="no" if bad else "")
        pending += client.sent

    assert held == {"a": "a2", "b": "b2", "c": "c1", "d": "d2"}


@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_heal__client_that_refuses_everything_new__has_all_it_had_when_the_re_sends_are_used_up(
    variant: Variant, kind: ResourceType
) -> None:
    names = [f"r{number:02}" for number in range(40)]
    client = at_rest(variant, kind, *names)
    for name in names:
        client.world.serve(kind, name, f"{name}-new")
    (push,) = client.publish()

    held = {name: f"{name}1" for name in names}
    pending, count = [push], 0
    while pending:
        response = pending.pop(0)
        count += 1
        versions = versions_of(response)
        refused = {name for name, version in versions.items() if version.endswith("new")}
        held = {name: version for name, version in {**held, **versions}.items() if name not in refused}
        client.answer(response.nonce, nack="no" if refused else "")
        pending += client.sent

    assert held == {name: f"{name}1" for name in names}
    assert count <= 1 + 16 + 17  # N3: every NACK heals at most once


@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_heal__fix_is_there_already__the_fix_is_sent_instead(variant: Variant, kind: ResourceType) -> None:
    client = at_rest(variant, kind, "a")
    client.world.serve(kind, "a", "a2")
    refused = client.push()
    client.world.serve(kind, "a", "a3")
    client.publish()

    assert client.answer(refused, nack="no") == [{"a": "a3"}]


@pytest.mark.parametrize("kind", [CLUSTER, ROUTE])
@pytest.mark.parametrize("variant", Variant)
def test_heal__access_ended_meanwhile__not_one_byte_of_it_is_sent(variant: Variant, kind: ResourceType) -> None:

    client = at_rest(variant, kind, "a")
    client.world.serve(kind, "a", "a2")
    refused = client.push()
    client.world.rule(kind, "a", Effect.DENY)
    client.publish()

    client.answer(refused, nack="no")

    assert all(names_of(response) == [] for response in client.sent)  # S4


@pytest.mark.parametrize("variant", Variant)
def test_heal__was_withheld_meanwhile_and_is_refused_again__is_sent_what_it_had_again(variant: Variant) -> None:
    client = at_rest(variant, ROUTE, "a")
    client.world.serve(ROUTE, "a", "a2")
    client.answer(client.push(), nack="no")
    client.answer(client.sent[0].nonce)
    client.world.withhold(ROUTE, "a")
    client.answer(client.push())
    client.world.serve(ROUTE, "a", "a2")

    assert client.answer(client.push(), nack="no") == [{"a": "a1"}]  # after INTERNAL it goes on with that (TP3)


def test_heal__content_known_by_its_version_alone__what_others_use_is_sent() -> None:
    world = World()
    world.serve(ROUTE, "a", "a2", proven="a1")
    client = Client(world, Variant.DELTA, ROUTE)
    (first,) = client.delta(ROUTE, "a", has={"a": "a0"})

    assert client.answer(first.nonce, nack="no") == [{"a": "a1"}]  # nobody here has the bytes of a0


def test_changed_cluster__endpoints_that_stand_in__follow_it() -> None:
    world = World()
    world.serve(CLUSTER, "a", "c1")
    world.serve(ENDPOINT, "a", "e1")
    wire = Wire(world, Variant.DELTA, SETTINGS, GRPC_CLIENT)
    wire.delta(ENDPOINT, "a")
    clusters, _ = wire.delta(CLUSTER, nonce="")
    wire.delta(CLUSTER, nonce=clusters.nonce)
    wire.delta(ENDPOINT, nonce="1")
    wire.delta(ENDPOINT, nonce="3")
    world.serve(ENDPOINT, "a", "e2")
    (push,) = wire.publish()
    (healed,) = wire.delta(ENDPOINT, nonce=push.nonce, nack="no")
    wire.delta(ENDPOINT, nonce=healed.nonce)
    world.serve(CLUSTER, "a", "c2")

    sent = [versions_of(response) for response in wire.publish()]

    assert sent == [{"a": "c2"}, {"a": "e1"}]  # I3: without its endpoints the new cluster would warm for 15 s
