"""What the clients of the benchmark say, and what they read of an answer."""

import pytest
from envoy.service.discovery.v3 import discovery_pb2

from bench.receivers import Asks, Repeats, repeated
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
def test_ack__of_a_response__parses_and_repeats_nonce_and_version(delta: bool) -> None:
    asks = Asks(delta=delta, also=("missing",))
    kind = discovery_pb2.DeltaDiscoveryRequest if delta else discovery_pb2.DiscoveryRequest

    ack = kind.FromString(asks.ack(1) + repeated(b"a-7", b"v42", delta=delta))

    assert (ack.type_url, ack.response_nonce) == (CLUSTER.url, "a-7")
    assert not ack.HasField("error_detail")
    if not delta:
        assert (ack.version_info, list(ack.resource_names)) == ("v42", ["*", "missing"])


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("errors", [(), ("NOT_FOUND",), ("*\x03n-7", "one n-42*\x04n-42 more")])
def test_repeats__of_a_server__are_found_whatever_is_in_front_and_behind(delta: bool, errors: tuple[str, ...]) -> None:
    repeats = Repeats(delta=delta)
    for number, some in ((7, ()), (42, errors), (1042, errors)):
        nonce, version = f"n-{number}", f"v{number}"

        found = repeats.of(_response(nonce, version, errors=some, delta=delta))

        assert found == repeated(nonce.encode(), version.encode(), delta=delta)


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("version", ["v8", ""])
def test_repeats__server_writes_something_else_in_front__is_parsed(delta: bool, version: str) -> None:
    repeats = Repeats(delta=delta)
    repeats.of(_response("n-7", "v7", errors=(), delta=delta))

    found = repeats.of(_response("n-8", version, errors=("NOT_FOUND",), delta=delta, server="other"))

    assert found == repeated(b"n-8", version.encode(), delta=delta)


def _response(nonce: str, version: str, *, errors: tuple[str, ...], delta: bool, server: str = "floor") -> bytes:
    """As both servers write it: errors are behind the nonce."""
    kind = discovery_pb2.DeltaDiscoveryResponse if delta else discovery_pb2.DiscoveryResponse
    body = kind(type_url=CLUSTER.url, control_plane={"identifier": server})
    setattr(body, "system_version_info" if delta else "version_info", version)
    for number in range(3):
        added = body.resources.add()
        if delta:
            added.name = f"resource-{number}"
        else:
            added.type_url = CLUSTER.url
    behind = kind()
    for text in errors:
        behind.resource_errors.add().error_detail.message = text
    return bytes(body.SerializeToString() + kind(nonce=nonce).SerializeToString() + behind.SerializeToString())
