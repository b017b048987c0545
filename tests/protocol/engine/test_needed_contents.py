"""Which contents a stream may have to send again, whether or not a snapshot still has them (F17, F17a)."""

import pytest

from adsserver.engine.events import Variant
from tests.protocol.engine.test_healing import Client
from tests.protocol.engine.world import World
from xdscore.resource_types import CLUSTER, ROUTE, ResourceType

both = pytest.mark.parametrize("variant", Variant)
each = pytest.mark.parametrize("kind", [CLUSTER, ROUTE], ids=lambda kind: kind.word)


def needed(client: Client) -> set[str]:
    return {content.version for content in client.session.needed()}


def started(variant: Variant, kind: ResourceType) -> Client:
    world = World()
    world.serve(kind, "a", "a1")
    client = Client(world, variant, kind, "a")
    client.answer(client.first[0].nonce)
    return client


@both
@each
def test_needed__stream_at_rest__nothing(variant: Variant, kind: ResourceType) -> None:
    assert needed(started(variant, kind)) == set()


@both
@each
def test_needed__change_is_not_answered__what_the_client_had(variant: Variant, kind: ResourceType) -> None:
    client = started(variant, kind)
    client.world.serve(kind, "a", "a2")
    nonce = client.push()

    assert needed(client) == {"a1"}

    client.answer(nonce)
    assert needed(client) == set()


@both
@each
def test_needed__change_is_refused__what_the_client_had_for_as_long_as_it_stands_in(
    variant: Variant, kind: ResourceType
) -> None:
    client = started(variant, kind)
    client.world.serve(kind, "a", "a2")
    client.answer(client.push(), nack="no")
    client.answer(client.sent[0].nonce)

    assert "a1" in needed(client)

    client.world.serve(kind, "a", "a3")
    client.answer(client.push())
    assert needed(client) == set()


@both
@each
def test_needed__change_waits_for_the_answer_to_another__what_the_client_had_of_both(
    variant: Variant, kind: ResourceType
) -> None:
    client = started(variant, kind)
    client.world.serve(kind, "a", "a2")
    client.push()
    client.world.serve(kind, "a", "a3")

    assert client.publish() == []  # I3
    assert {"a1"} <= needed(client) <= {"a1", "a2"}


def test_needed__client_says_what_it_holds_by_versions_alone__nothing_that_has_no_bytes() -> None:
    world = World()
    world.serve(ROUTE, "a", "a1")
    client = Client(world, Variant.DELTA, ROUTE)
    client.delta(ROUTE, "a", has={"a": "a0"})

    assert needed(client) == set()
