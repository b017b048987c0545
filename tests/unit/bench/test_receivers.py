"""What the clients of the benchmark say, and what they read of an answer."""

import pytest
from envoy.service.discovery.v3 import discovery_pb2

from bench.receivers import Asks, _nonce
from bench.resources import cluster_name
from xdscore.resource_types import CLUSTER, ENDPOINT

SOME = Asks(delta=True, type_url=ENDPOINT.url, each=20, of=50)


def test_first_request__of_some_names__asks_for_what_wants_says() -> None:
    request = discovery_pb2.DeltaDiscoveryRequest.FromString(SOME.first(6))

    wanted = {cluster_name(number) for number in range(50) if SOME.wants(6, number)}
    assert set(request.resource_names_subscribe) == wanted
    assert len(wanted) == 20


def test_first_request__everything_and_a_name__says_both_and_who_asks() -> None:
    asks = Asks(also=("missing",), workloads=("a", "b"), errors=False)

    request = discovery_pb2.DiscoveryRequest.FromString(asks.first(3))

    assert list(request.resource_names) == ["*", "missing"]
    assert request.node.cluster == "b"
    assert request.node.metadata["parley.resource_errors"] == "off"


@pytest.mark.parametrize("delta", [False, True])
def test_answer__to_a_nonce__is_an_ack_that_parses(delta: bool) -> None:
    asks = Asks(delta=delta, also=("missing",))
    kind = discovery_pb2.DeltaDiscoveryRequest if delta else discovery_pb2.DiscoveryRequest

    ack = kind.FromString(asks.ack_before_nonce(1) + b"\x03a-7")

    assert (ack.type_url, ack.response_nonce) == (CLUSTER.url, "a-7")
    assert not ack.HasField("error_detail")


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("errors", [False, True])
def test_nonce__of_a_response__is_found_at_its_end_or_before_errors(delta: bool, errors: bool) -> None:
    kind = discovery_pb2.DeltaDiscoveryResponse if delta else discovery_pb2.DiscoveryResponse
    response = kind(type_url=CLUSTER.url, nonce="n-42")
    if errors:
        response.resource_errors.add().error_detail.message = "NOT_FOUND"
    fields = response.SerializeToString()
    if not errors:  # as both servers write it: the nonce last
        fields = kind(type_url=CLUSTER.url).SerializeToString() + kind(nonce="n-42").SerializeToString()

    assert _nonce(fields, delta=delta) == b"n-42"
