"""What a client has changes without a word: content that it refused makes way, and nothing is left to be sent (truth.md
H1, protocol.md F17a). No request follows from which that could be learnt, so the session says it.
"""

from collections.abc import Callable

import pytest

from adsserver.engine.events import Respond, Variant
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import CLIENT, GRPC_CLIENT, World, names_of, versions_of
from xdscore.environment_choice import ClientFacts
from xdscore.holdings import Holding, HoldingState
from xdscore.resource_types import CLUSTER, ROUTE, ResourceType

BAD = "a2"
ACKED, NACKED, ERROR_SENT = HoldingState.ACKED, HoldingState.NACKED, HoldingState.ERROR_SENT


class Client:
    """A client of clusters that refuses what it cannot use, by name, and asks for everything unless for `names`."""

    def __init__(
        self,
        world: World,
        variant: Variant,
        *names: str,
        facts: ClientFacts = CLIENT,
        kind: ResourceType = CLUSTER,
    ) -> None:
        self._names, self._kind = names, kind
        self.world = world
        self.wire = Wire(world, variant, client=facts)
        self._send = self.wire.sotw if variant is Variant.SOTW else self.wire.delta
        self._again = names if variant is Variant.SOTW else ()
        self.answers(self._send(kind, *names))

    def answers(self, responses: list[Respond]) -> None:
        """Answer these responses and all that follow."""
        while responses:
            response = responses.pop(0)
            bad = [i for i, name in enumerate(names_of(response)) if versions_of(response)[name] == BAD]
            rows = "".join(f"resource index {index}: a: bad" for index in bad)
            nack = f"xDS response validation errors: [{rows}]" if bad else ""
            responses += self._send(self._kind, *self._again, nonce=response.nonce, nack=nack)

    def publishes(self, version: str) -> list[Respond]:
        """What the client is sent when `a` is published in this version."""
        self.world.serve(self._kind, "a", version)
        return self.wire.publish()

    @property
    def has(self) -> Holding | None:
        """What it has of `a` when the session is asked."""
        found = self.wire.session.holdings(self._kind)
        assert found is not None
        return {**dict(found.ground.everything()), **found.apart}.get("a")

    def unheard(self) -> Holding | str | None:
        """What the session says of `a` by itself."""
        return next(
            (
                {**dict(holdings.ground.everything()), **holdings.apart}.get("a")
                for _, holdings in self.wire.session.unheard()
            ),
            "nothing",
        )


@pytest.fixture
def world() -> World:
    world = World()
    for name in "ab":
        world.serve(CLUSTER, name, f"{name}1")
    return world


def refused(world: World, variant: Variant, *names: str, facts: ClientFacts = CLIENT) -> Client:
    """A client that had the first content and refused the second."""
    client = Client(world, variant, *names, facts=facts)
    client.answers(client.publishes(BAD))
    assert client.has == Holding(NACKED, BAD, "a1")
    assert client.unheard() == "nothing"  # it answered, and all was learnt from that
    return client


@pytest.mark.parametrize("names", [(), ("a", "b")], ids=["everything", "by name"])
def test_delta__took_back_what_is_published_again__the_session_says_that_it_has_it(
    world: World, names: tuple[str, ...]
) -> None:
    client = refused(world, Variant.DELTA, *names, facts=GRPC_CLIENT)

    sent = client.publishes("a1")

    assert sent == []
    assert client.unheard() == Holding(ACKED, "a1", "a1")
    assert client.unheard() == "nothing"  # once


def test_full_state__took_back_what_is_published_again__is_sent_the_state_and_answers(world: World) -> None:
    client = refused(world, Variant.SOTW, facts=GRPC_CLIENT)

    sent = client.publishes("a1")
    client.answers(sent)

    assert client.has == Holding(ACKED, "a1", "a1")


@pytest.mark.parametrize("lose", [World.remove, World.withhold], ids=["removed", "withheld"])
def test_full_state__refused_at_first_sight_and_gone__the_session_says_that_it_has_nothing(
    world: World, lose: Callable[[World, ResourceType, str], None]
) -> None:
    world.serve(CLUSTER, "a", BAD)
    client = Client(world, Variant.SOTW)
    assert client.has == Holding(NACKED, BAD)
    lose(world, CLUSTER, "a")

    sent = client.wire.publish()

    assert sent == []
    assert client.unheard() is None


def test_delta__refused_at_first_sight_and_removed__is_told_so_and_has_nothing(world: World) -> None:
    world.serve(CLUSTER, "a", BAD)
    client = Client(world, Variant.DELTA)
    world.remove(CLUSTER, "a")

    sent = client.wire.publish()
    removed = [response.removed for response in sent]
    client.answers(sent)

    assert removed == [("a",)]
    assert client.has is None


@pytest.mark.parametrize("variant", Variant)
def test_withheld_after_a_refusal__goes_on_with_what_it_had__and_refuses_again_what_comes_back(
    world: World, variant: Variant
) -> None:
    client = refused(world, variant, facts=GRPC_CLIENT)
    world.withhold(CLUSTER, "a")

    assert client.wire.publish() == []
    assert client.unheard() == Holding(ACKED, "a1", "a1")
    client.answers(client.publishes(BAD))
    assert client.unheard() in {Holding(NACKED, BAD, "a1"), "nothing"}
    assert client.has == Holding(NACKED, BAD, "a1")


def test_delta__refused_at_first_sight_and_withheld__has_nothing(world: World) -> None:
    world.serve(CLUSTER, "a", BAD)
    client = Client(world, Variant.DELTA)
    world.withhold(CLUSTER, "a")

    assert client.wire.publish() == []
    assert client.unheard() is None


def test_delta__told_an_error_after_a_refusal__goes_on_with_what_it_acknowledged(world: World) -> None:
    client = refused(world, Variant.DELTA, "a", "b")
    world.withhold(CLUSTER, "a")

    client.answers(client.wire.publish())

    assert client.has is not None
    assert (client.has.state, client.has.acked) == (ERROR_SENT, "a1")


@pytest.mark.parametrize("variant", Variant)
def test_removed_after_a_refusal__acknowledged__it_has_nothing_to_go_on_with(world: World, variant: Variant) -> None:
    client = refused(world, variant, "a", "b")
    world.remove(CLUSTER, "a")

    client.answers(client.wire.publish())
    gone = client.has
    client.answers(client.publishes(BAD))

    assert gone is not None
    assert (gone.state, gone.acked) == (ERROR_SENT, "")
    assert client.has == Holding(NACKED, BAD)


def test_delta__goes_on_with_a_copy_after_an_error__is_given_it_back_when_it_refuses_what_comes(world: World) -> None:
    client = refused(world, Variant.DELTA, "a", "b", facts=GRPC_CLIENT)
    world.withhold(CLUSTER, "a")
    client.answers(client.wire.publish())

    client.answers(client.publishes(BAD))

    assert client.has == Holding(NACKED, BAD, "a1")  # F17a


def test_delta__removal_acknowledged_while_new_content_is_on_its_way__goes_on_with_nothing(world: World) -> None:
    client = refused(world, Variant.DELTA, "a", "b")
    world.remove(CLUSTER, "a")
    (removal,) = client.wire.publish()
    world.serve(CLUSTER, "a", "a3")
    client.wire.session.offer(world.publish(), client.wire.now)
    assert client.wire.delta(CLUSTER, "a") != []  # who asks is answered at once

    client.wire.delta(CLUSTER, nonce=removal.nonce)

    assert client.has == Holding(HoldingState.SENT, "a3")


def test_session__client_owes_an_answer__says_nothing_before_that_came(world: World) -> None:
    client = refused(world, Variant.DELTA, facts=GRPC_CLIENT)
    world.serve(CLUSTER, "b", "b2")
    (on_its_way,) = client.wire.publish()
    world.serve(CLUSTER, "b", "b3")

    assert client.publishes("a1") == []  # b3 waits for the answer to b2
    assert client.unheard() == "nothing"
    client.answers([on_its_way])
    assert client.has == Holding(ACKED, "a1", "a1")


def test_delta__collection_whose_members_it_holds__the_session_says_that_it_waits_for_nothing(world: World) -> None:
    world.serve(ROUTE, "xdstp://x/t/d/m", "m1")
    wire = Wire(world, Variant.DELTA)

    assert wire.delta(ROUTE, "xdstp://x/t/d/*", has={"xdstp://x/t/d/m": "m1"}) == []
    [(_, holdings)] = wire.session.unheard()
    assert {**dict(holdings.ground.everything()), **holdings.apart} == {"xdstp://x/t/d/m": Holding(ACKED, "m1", "m1")}
