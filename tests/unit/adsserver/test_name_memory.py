"""What is counted for what a stream makes its server remember is what it costs (threat 10)."""

import gc
import tracemalloc

import pytest
from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2

from adsserver.engine.events import DeltaRequest, SotwRequest, Variant
from adsserver.engine.session import Session
from adsserver.wire.discovery import decode
from tests.protocol.engine.scenario import Wire
from tests.protocol.engine.world import World
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE

NAMES = 10_000


def held(variant: Variant, length: int) -> tuple[Session, int]:
    """A stream that asked for so many names, which do not exist, and was answered; what that took, in bytes."""
    wire = Wire(World(), variant)
    wire.publish()
    gc.collect()
    tracemalloc.start()
    try:
        names = tuple(f"{number}".rjust(length, "n") for number in range(NAMES))
        asked = DeltaRequest(ENDPOINT, names) if variant is Variant.DELTA else SotwRequest(ENDPOINT, names)
        wire.session.receive(asked, wire.now)
        while (response := wire.session.compose(wire.now)) is not None:
            nonce = response.nonce
            wire.session.receive(
                DeltaRequest(ENDPOINT, nonce=nonce)
                if variant is Variant.DELTA
                else SotwRequest(ENDPOINT, names, nonce),
                wire.now,
            )
        del asked, names
        gc.collect()
        return wire.session, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("variant", list(Variant))
@pytest.mark.parametrize("length", [5, 60])
def test_names__of_a_stream__count_about_what_they_cost(variant: Variant, length: int) -> None:
    session, cost = held(variant, length)

    # Twice as exact would need to know of each name what is kept of it.
    assert 0.6 * cost <= session.name_bytes <= 2 * cost


@pytest.mark.parametrize("variant", list(Variant))
def test_names__of_four_types_as_many_as_allowed__are_within_the_defaults(variant: Variant) -> None:
    wire = Wire(World(), variant)
    for kind in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
        names = tuple(f"{number}".rjust(60, "n") for number in range(Limits().names_per_type))
        asked = DeltaRequest(kind, names) if variant is Variant.DELTA else SotwRequest(kind, names)
        wire.session.receive(asked, wire.now)

    assert 4 * 60 * Limits().names_per_type < wire.session.name_bytes <= Limits().name_bytes_per_stream


def test_names__that_a_client_comes_back_with_in_other_versions__are_within_the_defaults() -> None:
    wire = Wire(World(), Variant.DELTA)
    wire.publish()

    wire.delta(CLUSTER, has={f"{number}".rjust(70, "n"): "1" for number in range(Limits().resources_per_environment)})

    assert 0 < wire.session.name_bytes <= Limits().name_bytes_per_stream


@pytest.mark.parametrize("text", ["x", "\N{GRINNING FACE}"])
def test_node__that_says_as_much_as_is_kept__counts_about_what_it_costs(text: str) -> None:
    node = base_pb2.Node(id="n", cluster=text * 256)
    node.metadata.update({f"{number:03}" + text * 253: f"{number:03}" + text * 253 for number in range(64)})
    data = discovery_pb2.DeltaDiscoveryRequest(node=node, type_url=ENDPOINT.url).SerializeToString()
    gc.collect()
    tracemalloc.start()
    try:
        kept = decode(data, Variant.DELTA, None, Limits()).node
        gc.collect()
        cost = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert kept is not None
    assert 0.8 * cost <= kept.kept_bytes <= 1.2 * cost


@pytest.mark.parametrize("variant", list(Variant))
def test_names__of_four_types_as_many_and_as_long_as_allowed__are_beyond_the_defaults(variant: Variant) -> None:
    wire = Wire(World(), variant)
    for kind in (CLUSTER, ENDPOINT, LISTENER, ROUTE):
        names = tuple(f"{number}".rjust(Limits().name_bytes, "n") for number in range(Limits().names_per_type))
        asked = DeltaRequest(kind, names) if variant is Variant.DELTA else SotwRequest(kind, names)
        wire.session.receive(asked, wire.now)

    assert wire.session.name_bytes > Limits().name_bytes_per_stream
