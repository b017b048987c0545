"""Which facts the judge of a rollout waits for (rollouts.md R3)."""

import pytest

from adsserver.engine.events import Acknowledged, Fact, Nack, NamedContent, Rejected, Subscribed, Variant, Violated
from adsserver.engine.judged import is_about
from tests.protocol.engine.world import content
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE, ResourceType

DIFFERING = {"cluster": frozenset({"pay"})}


def acknowledged(*names: str, kind: ResourceType = CLUSTER, removed: tuple[str, ...] = ()) -> Fact:
    resources = tuple(NamedContent(name, content(f"{name}-v1")) for name in names)
    return Acknowledged(kind, "1", "v", resources, (), removed)


@pytest.mark.parametrize(
    ("fact", "awaited"),
    [
        (acknowledged("shop", "pay"), True),
        (acknowledged(removed=("pay",)), True),
        (acknowledged("shop", removed=("cart",)), False),
        (acknowledged("pay", kind=ROUTE), False),
        (Subscribed(CLUSTER, False, frozenset({"shop"})), True),
        (Subscribed(ROUTE, True, frozenset()), False),
        (Rejected(CLUSTER, "1", "v", Nack(3, "no"), (), ()), True),
        (Rejected(ROUTE, "1", "v", Nack(3, "no"), (), ()), False),
        (Violated("A1", "why"), False),
    ],
)
def test_fact__of_a_name_in_which_the_sides_differ_or_of_another__is_awaited_or_not(fact: Fact, awaited: bool) -> None:
    assert is_about(DIFFERING, fact, Variant.DELTA) is awaited


@pytest.mark.parametrize(("kind", "awaited"), [(CLUSTER, True), (LISTENER, False)])
def test_fact__ack_of_a_full_state__is_about_every_name_of_its_type(kind: ResourceType, awaited: bool) -> None:
    assert is_about(DIFFERING, acknowledged("shop", kind=kind), Variant.SOTW) is awaited
