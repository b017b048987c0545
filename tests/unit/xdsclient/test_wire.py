"""Discovery messages in and out."""

from typing import Any

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from tests.support.xds_resources import eds_cluster
from xdsclient.bootstrap import Locality, Node
from xdsclient.decoding import CLUSTERS, STANDARD_TYPES, ClientType, InvalidResourceError
from xdsclient.engine.events import (
    DeltaRequest,
    Heartbeat,
    Invalid,
    Nack,
    ReportedError,
    SotwRequest,
    Valid,
    Variant,
)
from xdsclient.engine.values import Status
from xdsclient.names import UnwatchableNameError, WatchedName, watched_collection, watched_name
from xdsclient.wire import MalformedResponseError, Wire
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE, ResourceType

NODE = Node("n", "c", Locality("r", "z", "s"), {"team": "pay"})
XDSTP = "xdstp://auth/envoy.config.cluster.v3.Cluster/a"
GLOB = "xdstp://auth/envoy.config.cluster.v3.Cluster/d/*"


def wire(variant: Variant = Variant.SOTW) -> Wire:
    return Wire(NODE, variant, STANDARD_TYPES)


def packed(message: Message) -> AnyMessage:
    any_message = AnyMessage()
    any_message.Pack(message)
    return any_message


def sotw(*resources: AnyMessage, **fields: Any) -> bytes:
    message = discovery_pb2.DiscoveryResponse(
        type_url=CLUSTER.url, version_info="7", nonce="n", resources=resources, **fields
    )
    data: bytes = message.SerializeToString()
    return data


def wrapped(name: str, message: Message | None, version: str = "w") -> Any:
    wrapper = discovery_pb2.Resource(name=name, version=version)
    if message is not None:
        wrapper.resource.Pack(message)
    return wrapper


def test_request__first_of_a_stream__carries_the_node_and_later_ones_do_not() -> None:
    """protocol.md A3."""
    request = SotwRequest(CLUSTER, ("a", "b"), "n1", "7", Nack(3, "why"))

    first = discovery_pb2.DiscoveryRequest.FromString(wire().request(request, first=True))
    later = discovery_pb2.DiscoveryRequest.FromString(wire().request(request, first=False))

    assert first.node == base_pb2.Node(
        id="n",
        cluster="c",
        locality=base_pb2.Locality(region="r", zone="z", sub_zone="s"),
        metadata={"team": "pay"},
        user_agent_name="Parley xdsclient",
        user_agent_version="0.1.0",
        client_features=["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"],
    )
    assert not later.HasField("node")
    assert (later.type_url, list(later.resource_names)) == (CLUSTER.url, ["a", "b"])
    assert (later.response_nonce, later.version_info) == ("n1", "7")
    assert (later.error_detail.code, later.error_detail.message) == (3, "why")


def test_delta_request__ack__has_no_error_detail() -> None:
    request = DeltaRequest(CLUSTER, ("a",), ("b",), {"c": "1"}, "n1")

    written = discovery_pb2.DeltaDiscoveryRequest.FromString(wire(Variant.DELTA).request(request, first=False))

    assert list(written.resource_names_subscribe) == ["a"]
    assert list(written.resource_names_unsubscribe) == ["b"]
    assert dict(written.initial_resource_versions) == {"c": "1"}
    assert (written.response_nonce, written.HasField("error_detail")) == ("n1", False)


@pytest.mark.parametrize("in_wrapper", [False, True], ids=["plain", "wrapped"])
def test_sotw_response__valid_resource__has_the_version_of_the_response(in_wrapper: bool) -> None:
    cluster = eds_cluster("a")
    resource = packed(wrapped("a", cluster)) if in_wrapper else packed(cluster)

    response = wire().response(sotw(resource))

    assert response.resources == (Valid("a", "7", cluster, cluster.SerializeToString()),)
    assert (response.type_url, response.version, response.nonce) == (CLUSTER.url, "7", "n")


def test_delta_response__everything_in_it__is_read() -> None:
    cluster = eds_cluster("a")
    message = discovery_pb2.DeltaDiscoveryResponse(
        type_url=CLUSTER.url,
        system_version_info="s",
        nonce="n",
        resources=[wrapped("other", cluster, "1"), wrapped("still there", None, "2")],
        removed_resources=["gone"],
    )
    message.resources[0].ttl.FromMilliseconds(1_500)
    message.resources[1].ttl.FromSeconds(30)
    error = message.resource_errors.add()
    error.resource_name.name = "denied"
    error.error_detail.code = 7
    error.error_detail.message = "no"
    message.resource_errors.add()

    response = wire(Variant.DELTA).response(message.SerializeToString())

    assert response.resources == (
        Valid("other", "1", cluster, cluster.SerializeToString(), 1.5),
        Heartbeat("still there", "2", 30.0),
    )
    assert response.removed == ("gone",)
    assert response.errors == (ReportedError("denied", Status(7, "no")), ReportedError("", Status(0)))


def test_response__resource_against_the_field_rules__is_invalid_with_every_reason() -> None:
    """The same rules as the server's: `xdscore.schema`."""
    bad = cluster_pb2.Cluster(name="a", type=2, lb_policy=0)
    bad.connect_timeout.seconds = -1
    bad.transport_socket_matches.add()

    (resource,) = wire().response(sotw(packed(bad))).resources

    assert isinstance(resource, Invalid)
    assert (resource.name, resource.raw) == ("a", bad.SerializeToString())
    assert "/connect_timeout: " in resource.text
    assert "/transport_socket_matches/0/name: " in resource.text


@pytest.mark.parametrize(
    ("resource", "name", "text"),
    [
        (AnyMessage(type_url=CLUSTER.url, value=b"\xff"), "", "cannot be decoded as envoy.config.cluster.v3.Cluster"),
        (AnyMessage(type_url=LISTENER.url), "", f"is a '{LISTENER.url}' in a response of type '{CLUSTER.url}'"),
        (packed(wrapped("", eds_cluster("a"))), "", "the Resource wrapper has no name"),
        (
            AnyMessage(type_url="type.googleapis.com/envoy.service.discovery.v3.Resource", value=b"\xff"),
            "",
            "the Resource wrapper cannot be decoded",
        ),
    ],
    ids=["bytes", "type", "nameless wrapper", "broken wrapper"],
)
def test_response__what_cannot_be_read__is_invalid(resource: AnyMessage, name: str, text: str) -> None:
    (read,) = wire().response(sotw(resource)).resources

    assert isinstance(read, Invalid)
    assert (read.name, read.text) == (name, text)


def test_response__any_within_any__is_refused_and_not_a_crash() -> None:
    """reliability threat 11: depth costs a sender a few bytes a level."""
    inner = AnyMessage(type_url="type.googleapis.com/google.protobuf.Any")
    for _ in range(3000):
        inner = AnyMessage(type_url="type.googleapis.com/google.protobuf.Any", value=inner.SerializeToString())
    cluster = eds_cluster("a")
    cluster.metadata.typed_filter_metadata["x"].CopyFrom(inner)

    (read,) = wire().response(sotw(packed(cluster))).resources

    assert isinstance(read, Invalid)
    assert read.text == "is nested too deeply"


def test_response__not_a_response__is_malformed() -> None:
    with pytest.raises(MalformedResponseError):
        wire().response(b"\xff\xff")


def test_response__type_of_ones_own__builds_its_value_or_refuses() -> None:
    def read(data: bytes) -> int:
        if len(data) > 100:
            raise InvalidResourceError("is too long for me")
        return len(data)

    own = Wire(NODE, Variant.SOTW, [ClientType(CLUSTER, read)])
    short, long = cluster_pb2.Cluster(name="a"), cluster_pb2.Cluster(name="b" * 200)

    first, second = own.response(sotw(packed(short), packed(long))).resources

    assert first == Valid("a", "7", short.ByteSize(), short.SerializeToString())
    assert isinstance(second, Invalid)
    assert (second.name, second.text) == ("b" * 200, "is too long for me")


def test_response__reader_of_ones_own_fails__costs_that_resource_only() -> None:
    def read(data: bytes) -> str:
        name: str = cluster_pb2.Cluster.FromString(data).name
        return {"good": "value"}[name]

    own = Wire(NODE, Variant.SOTW, [ClientType(CLUSTER, read)])
    good, bad = cluster_pb2.Cluster(name="good"), cluster_pb2.Cluster(name="bad")

    first, second = own.response(sotw(packed(bad), packed(good))).resources

    assert first == Invalid("bad", "7", "the client's reader failed: KeyError", bad.SerializeToString())
    assert second == Valid("good", "7", "value", good.SerializeToString())


def test_xdstp_name__parameters_in_another_order__is_the_same_name() -> None:
    """xRFC TP1; protocol.md H1."""
    asked = watched_name(XDSTP + "?b=1&a=2", CLUSTER)

    (read,) = wire().response(sotw(packed(wrapped(XDSTP + "?b=1&a=2", eds_cluster("a"))))).resources

    assert (asked.text, asked.authority) == (XDSTP + "?a=2&b=1", "auth")
    assert read.name == asked.text


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ("*", "every resource"),
        ("xdstp:/auth", "is not an xdstp name"),
        ("xdstp://auth/envoy.config.cluster.v3.Cluster", "is not an xdstp name"),
        ("xdstp://auth/envoy.config.listener.v3.Listener/a", "names a envoy.config.listener.v3.Listener"),
    ],
)
def test_name__that_cannot_be_asked_for__says_why(name: str, problem: str) -> None:
    with pytest.raises(UnwatchableNameError, match=problem):
        watched_name(name, CLUSTER)


@pytest.mark.parametrize(
    ("name", "kind", "text", "authority"),
    [
        ("*", CLUSTER, "*", "#old"),
        (GLOB + "?b=1&a=2", CLUSTER, GLOB + "?a=2&b=1", "auth"),
    ],
)
def test_collection_name__is_canonical_and_has_an_authority(
    name: str, kind: ResourceType, text: str, authority: str
) -> None:
    assert watched_collection(name, kind) == WatchedName(text, authority)


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("*", ROUTE, "only Cluster, Listener, ScopedRouteConfiguration have it"),
        ("a", CLUSTER, "names one resource and no collection"),
        ("a/*", CLUSTER, "names one resource and no collection"),
        ("xdstp://auth/envoy.config.cluster.v3.ClusterCollection/a", CLUSTER, "a list collection, which this client"),
        ("xdstp://auth/envoy.config.listener.v3.Listener/*", CLUSTER, "names a envoy.config.listener.v3.Listener"),
    ],
)
def test_collection_name__that_cannot_be_asked_for__says_why(name: str, kind: ResourceType, problem: str) -> None:
    with pytest.raises(UnwatchableNameError, match=problem):
        watched_collection(name, kind)


def test_standard_type__of_clusters__reads_what_the_server_accepts() -> None:
    assert CLUSTERS.read(eds_cluster("a").SerializeToString()) == eds_cluster("a")
