"""Responses joined from parts are the responses protobuf itself would write."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.unknown_fields import UnknownFieldSet
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from adsserver.engine.events import NamedContent, Respond, Variant
from adsserver.wire.discovery import Encoder
from adsserver.wire.fields import varint
from adsserver.wire.recent import Recent
from xdscore.errors import ResourceError, StatusCode
from xdscore.resource_types import CLUSTER, RESOURCE_TYPES, SECRET, ResourceType
from xdscore.snapshot import Content, content_hash

IDENTIFIER = "parley/1.0/host/1"
MISSING = ResourceError("m", StatusCode.NOT_FOUND, "XDS1001", "There is no m.")


class Contents:
    """Any bytes by address; counts what is asked for."""

    def __init__(self, blobs: Mapping[bytes, bytes]) -> None:
        self.blobs = dict(blobs)
        self.asked = 0

    def any_bytes(self, content: Content) -> bytes:
        self.asked += 1
        return self.blobs[content.blob]


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@st.composite
def responses(draw: st.DrawFn) -> tuple[Respond, Contents]:
    kind = draw(st.sampled_from(RESOURCE_TYPES))
    blobs: dict[bytes, bytes] = {}
    resources = []
    for name, value in draw(st.dictionaries(text, st.binary(max_size=300), max_size=5)).items():
        data = AnyMessage(type_url=kind.url, value=value).SerializeToString()
        address = content_hash(data)
        blobs[address] = data
        version = draw(text | st.integers(1, 604_800_000).map("1-ttl{}".format))
        resources.append(NamedContent(name, Content(address, version, len(data))))
    errors = draw(
        st.lists(
            st.builds(ResourceError, text, st.sampled_from(StatusCode), st.sampled_from(["XDS2101"]), text), max_size=4
        )
    )
    removed = draw(st.lists(text, max_size=4))
    unresolved = draw(st.lists(text, max_size=4))
    gone = tuple(removed), tuple(unresolved)
    beats = draw(st.booleans())
    response = Respond(kind, draw(text), draw(text), tuple(resources), tuple(errors), *gone, heartbeat=beats)
    return response, Contents(blobs)


def plainly(
    variant: Variant, response: Respond, contents: Contents, *, wrapped: bool = False, takes_ttls: bool = False
) -> discovery_pb2.DiscoveryResponse:
    """The message built the ordinary way."""
    sotw = variant is Variant.SOTW
    message = discovery_pb2.DiscoveryResponse() if sotw else discovery_pb2.DeltaDiscoveryResponse()
    setattr(message, "version_info" if sotw else "system_version_info", response.version)
    message.type_url = response.kind.url
    message.nonce = response.nonce
    message.control_plane.identifier = IDENTIFIER
    for resource in response.resources:
        packed = AnyMessage.FromString(contents.blobs[resource.content.blob])
        wrapper = discovery_pb2.Resource(name=resource.name, version=resource.content.version, resource=packed)
        if resource.content.ttl_ms and (not sotw or (takes_ttls and response.kind.full_state)):
            wrapper.ttl.FromMilliseconds(resource.content.ttl_ms)
        if not sotw:
            if response.heartbeat:
                wrapper.ClearField("resource")
            message.resources.append(wrapper)
        elif wrapped:
            message.resources.add().Pack(wrapper)
        else:
            message.resources.append(packed)
    if not sotw:
        message.removed_resources.extend(response.removed)
        message.resources.extend(discovery_pb2.Resource(name=name, aliases=[name]) for name in response.unresolved)
    for error in response.errors:
        entry = message.resource_errors.add()
        entry.resource_name.name = error.name
        entry.error_detail.CopyFrom(status_pb2.Status(code=error.code, message=error.text))
        entry.error_detail.details.add().Pack(error_details_pb2.ErrorInfo(reason=error.xds_code, domain="parley"))
    return message


@given(responses(), st.sampled_from(Variant), st.sampled_from([(False, False), (True, False), (True, True)]))
def test_encode__any_response__is_the_message_protobuf_would_build(
    drawn: tuple[Respond, Contents], variant: Variant, reads: tuple[bool, bool]
) -> None:
    """Also what has a ttl (G1), and heartbeats, which never go out in SotW (G2, G3)."""
    (response, contents), (wrapped, takes_ttls) = drawn, reads
    expected = plainly(variant, response, contents, wrapped=wrapped, takes_ttls=takes_ttls)

    data = Encoder(contents, IDENTIFIER).encode(variant, response, wrapped=wrapped, takes_ttls=takes_ttls)

    parsed = type(expected).FromString(data)
    if wrapped and variant is Variant.SOTW:
        for packed in parsed.resources:
            # The order of fields inside the wrapper's bytes is free.
            packed.value = discovery_pb2.Resource.FromString(packed.value).SerializeToString()
    assert parsed == expected
    assert not len(UnknownFieldSet(parsed))


@given(st.integers(1, 2**40))
def test_varint__any_length__is_protobufs(number: int) -> None:
    field_one = Duration(seconds=number).SerializeToString()

    assert field_one == b"\x08" + varint(number)


@pytest.mark.parametrize("variant", Variant)
def test_encode_errors__unknown_type__is_an_errors_only_response(variant: Variant) -> None:
    error = ResourceError("x", StatusCode.NOT_FOUND, "XDS2107", "NOT_FOUND [XDS2107] no")

    data = Encoder(Contents({}), IDENTIFIER).encode_errors(variant, "type.googleapis.com/a.B", "u1", "v", [error])

    expected = plainly(variant, Respond(CLUSTER, "u1", "v", (), (error,)), Contents({}))
    expected.type_url = "type.googleapis.com/a.B"
    assert type(expected).FromString(data) == expected


def respond(kind: ResourceType, resources: tuple[NamedContent, ...], nonce: str = "1") -> Respond:
    return Respond(kind, nonce, "v", resources)


def one_resource(kind: ResourceType) -> tuple[Contents, tuple[NamedContent, ...]]:
    data = AnyMessage(type_url=kind.url, value=b"x").SerializeToString()
    return Contents({b"a": data}), (NamedContent("n", Content(b"a", "1", len(data))),)


def test_encode__same_tuple_on_many_streams__is_joined_once_for_each_layout() -> None:
    contents, resources = one_resource(CLUSTER)
    encoder = Encoder(contents, IDENTIFIER)

    sent = [
        encoder.encode(variant, respond(CLUSTER, resources, str(nonce)), wrapped=wrapped)
        for nonce in range(3)
        for variant, wrapped in ((Variant.SOTW, False), (Variant.SOTW, True), (Variant.DELTA, False))
    ]

    assert contents.asked == 3
    assert len(set(sent)) == 9


@pytest.mark.parametrize("errors", [[], [MISSING]], ids=["plain", "errors"])
def test_encode__same_nonce_on_many_streams__is_the_same_object(errors: list[ResourceError]) -> None:
    contents, resources = one_resource(CLUSTER)
    encoder = Encoder(contents, IDENTIFIER)
    plain = respond(CLUSTER, resources)

    first, second = (encoder.encode(Variant.SOTW, replace(plain, errors=tuple(errors))) for _ in range(2))

    assert first is second


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: replace(plain, errors=(MISSING,)),
        lambda plain: replace(plain, removed=("m",)),
        lambda plain: replace(plain, version="w"),
        lambda plain: replace(plain, nonce="2"),
    ],
    ids=["errors", "removed", "version", "nonce"],
)
def test_encode__same_resources_with_something_else__are_other_bytes(change: Callable[[Respond], Respond]) -> None:
    contents, resources = one_resource(CLUSTER)
    encoder = Encoder(contents, IDENTIFIER)
    plain = respond(CLUSTER, resources)

    for response in (plain, change(plain), plain):
        expected = Encoder(contents, IDENTIFIER).encode(Variant.DELTA, response)
        assert encoder.encode(Variant.DELTA, response) == expected


@pytest.mark.parametrize("variant", Variant)
def test_encode__client_without_the_feature__is_sent_wrappers_in_delta_only(variant: Variant) -> None:
    contents, resources = one_resource(CLUSTER)

    data = Encoder(contents, IDENTIFIER).encode(variant, respond(CLUSTER, resources))

    if variant is Variant.SOTW:
        (bare,) = discovery_pb2.DiscoveryResponse.FromString(data).resources
        assert bare.type_url == CLUSTER.url  # A9, D7: Node refuses anything else
    else:
        (wrapper,) = discovery_pb2.DeltaDiscoveryResponse.FromString(data).resources
        assert wrapper.resource.type_url == CLUSTER.url
        assert not wrapper.HasField("ttl")  # G1


def test_encode__equal_content_in_another_tuple__is_not_mixed_up() -> None:
    contents, resources = one_resource(CLUSTER)
    encoder = Encoder(contents, IDENTIFIER)
    other = (NamedContent("other", resources[0].content),)

    first = encoder.encode(Variant.DELTA, respond(CLUSTER, resources))
    second = encoder.encode(Variant.DELTA, respond(CLUSTER, other))

    assert discovery_pb2.DeltaDiscoveryResponse.FromString(first).resources[0].name == "n"
    assert discovery_pb2.DeltaDiscoveryResponse.FromString(second).resources[0].name == "other"


def test_encode__secrets__are_read_each_time_and_kept_nowhere() -> None:
    contents, resources = one_resource(SECRET)
    encoder = Encoder(contents, IDENTIFIER)

    for _ in range(3):
        encoder.encode(Variant.SOTW, respond(SECRET, resources))

    assert contents.asked == 3


def test_encode__rotated_secret_under_the_same_tuple__new_bytes_are_sent() -> None:
    contents, resources = one_resource(SECRET)
    encoder = Encoder(contents, IDENTIFIER)
    encoder.encode(Variant.SOTW, respond(SECRET, resources))
    contents.blobs[b"a"] = AnyMessage(type_url=SECRET.url, value=b"rotated").SerializeToString()

    data = encoder.encode(Variant.SOTW, respond(SECRET, resources))

    assert discovery_pb2.DiscoveryResponse.FromString(data).resources[0].value == b"rotated"


def test_recent__beyond_its_capacity__forgets_what_was_unused_for_longest() -> None:
    recent: Recent[str, bytes] = Recent(10, len)
    recent.put("a", b"1234")
    recent.put("b", b"1234")
    recent.get("a")

    recent.put("c", b"1234")

    assert recent.get("a") == b"1234"
    assert recent.get("b") is None
    assert recent.get("c") == b"1234"


def test_recent__single_value_above_its_capacity__is_handed_back_and_not_kept() -> None:
    recent: Recent[str, bytes] = Recent(3, len)

    assert recent.put("a", b"1234") == b"1234"
    assert recent.get("a") is None
