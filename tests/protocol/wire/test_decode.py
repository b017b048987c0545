"""Requests as real clients write them, read by adsserver.wire.discovery."""

from collections.abc import Callable

import pytest
from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.rpc import status_pb2

from adsserver.engine.events import DeltaRequest, Nack, SotwRequest, Variant
from adsserver.wire.discovery import (
    Decoder,
    Incoming,
    MalformedRequestError,
    NodeFacts,
    OversizedRequestError,
    UnknownTypeRequest,
    decode,
)
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, LISTENER, ResourceType

LIMITS = Limits()
UNKNOWN = "type.googleapis.com/example.Unknown"


def sotw(service: ResourceType | None = None, limits: Limits = LIMITS, **fields: object) -> Incoming:
    data = discovery_pb2.DiscoveryRequest(**fields).SerializeToString()
    return decode(data, Variant.SOTW, service, limits)


def delta(service: ResourceType | None = None, limits: Limits = LIMITS, **fields: object) -> Incoming:
    data = discovery_pb2.DeltaDiscoveryRequest(**fields).SerializeToString()
    return decode(data, Variant.DELTA, service, limits)


def test_decode__sotw_nack_with_names__every_field_survives() -> None:
    incoming = sotw(
        type_url=LISTENER.url,
        resource_names=["b", "a", "b", ""],
        response_nonce="7",
        version_info="v",
        error_detail=status_pb2.Status(code=13, message="bad a"),
    )

    expected = SotwRequest(LISTENER, ("b", "a", "b", ""), "7", "v", Nack(13, "bad a"))
    assert incoming == Incoming(None, LISTENER.url, expected)


def test_decoder__same_bytes_of_many_streams__are_read_once() -> None:
    decoder = Decoder(LIMITS)
    ack = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, response_nonce="2", version_info="v").SerializeToString()

    first = decoder.decode(ack, Variant.SOTW, None)

    assert first == decode(ack, Variant.SOTW, None, LIMITS)
    assert decoder.decode(bytes(bytearray(ack)), Variant.SOTW, None) is first


def test_decoder__bytes_that_mean_something_else_elsewhere__are_not_confused() -> None:
    decoder = Decoder(LIMITS)
    named = discovery_pb2.DiscoveryRequest(resource_names=["a"]).SerializeToString()

    kinds = [decoder.decode(named, Variant.SOTW, kind).request for kind in (CLUSTER, LISTENER)]
    variants = [decoder.decode(named, variant, CLUSTER).request for variant in (Variant.SOTW, Variant.DELTA)]

    assert kinds == [SotwRequest(CLUSTER, ("a",)), SotwRequest(LISTENER, ("a",))]
    assert variants == [SotwRequest(CLUSTER, ("a",)), DeltaRequest(CLUSTER, ("a",))]


def test_decoder__request_with_a_node__belongs_to_its_client() -> None:
    decoder = Decoder(LIMITS)
    first = discovery_pb2.DiscoveryRequest(type_url=CLUSTER.url, node=base_pb2.Node(id="n")).SerializeToString()

    assert decoder.decode(first, Variant.SOTW, None) is not decoder.decode(first, Variant.SOTW, None)


def test_decode__delta_request__every_field_survives() -> None:
    incoming = delta(
        type_url=CLUSTER.url,
        resource_names_subscribe=["a"],
        resource_names_unsubscribe=["b"],
        initial_resource_versions={"a": "1"},
        response_nonce="3",
        error_detail=status_pb2.Status(code=3),
    )

    assert incoming.request == DeltaRequest(CLUSTER, ("a",), ("b",), {"a": "1"}, "3", Nack(3, ""))


def test_decode__no_error_detail__is_no_nack() -> None:
    incoming = sotw(type_url=CLUSTER.url, response_nonce="1", version_info="")

    assert isinstance(incoming.request, SotwRequest)
    assert incoming.request.nack is None


def test_decode__empty_error_detail__is_a_nack() -> None:
    # protocol.md B2: presence alone makes a NACK.
    incoming = sotw(type_url=CLUSTER.url, response_nonce="1", error_detail=status_pb2.Status())

    assert isinstance(incoming.request, SotwRequest)
    assert incoming.request.nack == Nack(0, "")


def test_decode__names_in_locators__are_names() -> None:
    locator = discovery_pb2.ResourceLocator(name="b", dynamic_parameters={"k": "v"})

    incoming = sotw(type_url=CLUSTER.url, resource_names=["a"], resource_locators=[locator])
    both = delta(
        type_url=CLUSTER.url,
        resource_locators_subscribe=[locator],
        resource_locators_unsubscribe=[discovery_pb2.ResourceLocator(name="c")],
    )

    assert isinstance(incoming.request, SotwRequest)
    assert incoming.request.names == ("a", "b")
    assert both.request == DeltaRequest(CLUSTER, ("b",), ("c",))


def test_decode__versions_of_more_resources_than_an_environment_may_have__oversized() -> None:
    limits = Limits(resources_per_environment=2)

    def reported(*names: str) -> bytes:
        versions = dict.fromkeys(names, "v")
        message = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER.url, initial_resource_versions=versions)
        data: bytes = message.SerializeToString()
        return data

    assert decode(reported("a", "b"), Variant.DELTA, None, limits).request == DeltaRequest(
        CLUSTER, initial_versions={"a": "v", "b": "v"}
    )
    with pytest.raises(OversizedRequestError, match="3 resources are held; at most 2 are allowed"):
        decode(reported("a", "b", "c"), Variant.DELTA, None, limits)


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05a", b"\x22\x02\xff\xff", b"\x1a\x01\xc0"])
def test_decode__garbage__malformed(data: bytes, variant: Variant) -> None:
    with pytest.raises(MalformedRequestError, match="DiscoveryRequest"):
        decode(data, variant, None, LIMITS)


@pytest.mark.parametrize("read", [sotw, delta])
def test_decode__no_type_on_an_aggregated_stream__malformed(read: object) -> None:
    with pytest.raises(MalformedRequestError, match="type_url"):
        read()  # type: ignore[operator]


def test_decode__no_type_on_a_single_type_service__means_its_type() -> None:
    assert sotw(CLUSTER).request == SotwRequest(CLUSTER, ())


def test_decode__foreign_type_on_a_single_type_service__malformed() -> None:
    with pytest.raises(MalformedRequestError, match=CLUSTER.url):
        sotw(CLUSTER, type_url=LISTENER.url)


def test_decode__unknown_type__says_so_with_its_names() -> None:
    assert sotw(type_url=UNKNOWN, resource_names=["x"], response_nonce="u1").request == UnknownTypeRequest(
        UNKNOWN, ("x",), "u1"
    )
    assert delta(type_url=UNKNOWN, resource_names_subscribe=["x"]).request == UnknownTypeRequest(UNKNOWN, ("x",), "")


def test_decode__node__facts_of_envoy_are_read() -> None:
    node = base_pb2.Node(id="n-1", cluster="c-1", user_agent_name="envoy")
    node.metadata.update({"team": "pay", "tier": 2, "canary": True, "nested": {"a": "b"}, "none": None})
    node.user_agent_build_version.version.major_number = 1
    node.user_agent_build_version.version.minor_number = 40

    incoming = sotw(type_url=CLUSTER.url, node=node)

    metadata = {"canary": "true", "team": "pay", "tier": "2"}
    assert incoming.node == NodeFacts("n-1", "c-1", metadata, "envoy", "1.40.0")


@pytest.mark.parametrize(
    ("features", "takes_wrappers"),
    [
        (["envoy.lb.does_not_support_overprovisioning", "xds.config.resource-in-sotw"], True),  # C-core, Go
        (["xds.config.supports-resource-in-sotw"], True),  # the protocol's text
        (["envoy.lb.does_not_support_overprovisioning"], False),  # Node
        ([], False),  # Envoy
    ],
)
def test_decode__client_features__say_whether_resources_may_be_wrapped(
    features: list[str], takes_wrappers: bool
) -> None:
    incoming = sotw(type_url=CLUSTER.url, node=base_pb2.Node(id="n", client_features=features))

    assert incoming.node is not None
    assert incoming.node.takes_wrappers is takes_wrappers  # A9
    assert not incoming.node.takes_ttls


@pytest.mark.parametrize(
    ("features", "takes_ttls"),
    [
        (["xds.config.supports-resource-ttl"], False),  # nothing of SotW that could hold one
        (["xds.config.supports-resource-ttl", "xds.config.supports-resource-in-sotw"], True),
    ],
)
def test_decode__client_features__say_who_reads_a_ttl_in_sotw(features: list[str], takes_ttls: bool) -> None:
    incoming = sotw(type_url=CLUSTER.url, node=base_pb2.Node(id="n", client_features=features))

    assert incoming.node is not None
    assert incoming.node.takes_ttls is takes_ttls  # A9


def test_decode__node_of_grpc__version_is_its_text() -> None:
    node = base_pb2.Node(id="n", user_agent_name="gRPC Go", user_agent_version="1.85\r\n\x1b[31m")

    incoming = sotw(type_url=CLUSTER.url, node=node)

    assert incoming.node is not None
    assert incoming.node.user_agent_version == "1.85   [31m"


def test_decode__metadata_beyond_its_bounds__is_left_out() -> None:
    node = base_pb2.Node(id="n")
    node.metadata.update({f"key{number:03}": "v" for number in range(100)} | {"a": "x" * 257, "b": "x" * 256})

    incoming = sotw(type_url=CLUSTER.url, node=node)

    assert incoming.node is not None
    assert len(incoming.node.metadata) == 64
    assert "a" not in incoming.node.metadata
    assert "b" in incoming.node.metadata


@pytest.mark.parametrize(("count", "allowed"), [(2, True), (3, True), (4, False)])
def test_decode__number_of_names__is_bounded(count: int, allowed: bool) -> None:
    limits = Limits(names_per_request=3)
    names = [f"n{number}" for number in range(count)]
    attempts: list[Callable[[], Incoming]] = [
        lambda: sotw(type_url=CLUSTER.url, resource_names=names, limits=limits),
        lambda: delta(type_url=CLUSTER.url, resource_names_subscribe=names, limits=limits),
        lambda: delta(type_url=CLUSTER.url, resource_names_unsubscribe=names, limits=limits),
    ]

    for attempt in attempts:
        if allowed:
            attempt()
        else:
            with pytest.raises(OversizedRequestError, match="4 names; at most 3"):
                attempt()


@pytest.mark.parametrize("unit", ["a", "é", "€", "😀"])
def test_decode__length_of_a_name__is_bounded_in_bytes(unit: str) -> None:
    limits = Limits(name_bytes=48)
    fits = unit * (48 // len(unit.encode()))

    sotw(type_url=CLUSTER.url, resource_names=[fits], limits=limits)

    with pytest.raises(OversizedRequestError, match="more than 48 bytes"):
        sotw(type_url=CLUSTER.url, resource_names=["short", fits + unit], limits=limits)
