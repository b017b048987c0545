"""Dangerous content: every spelling of loopback and of metadata services, every field that names a file (threat 20)."""

from typing import Any

import pytest

from controlplane.api.shapes.environments import ContentIn
from controlplane.console.environment_settings import CONTENT_TITLES
from xdscore.codes import CATALOGUE
from xdscore.schema import Manifest, ParsedResource, parse
from xdscore.schema.content_policy import (
    DEFAULT_POLICY,
    KIND_OF_CODE,
    KINDS,
    OPEN_POLICY,
    Stance,
    policy_of,
    stances_of,
)
from xdscore.schema.dangers import FILE_FIELDS, NO_DESTINATIONS
from xdscore.schema.destinations import is_link_local, is_loopback
from xdscore.schema.types_registry import descriptors

GOOGLE = "type.googleapis.com/"
LOOPBACK = (
    "127.0.0.1 127.9.9.9 127.1 0x7f000001 2130706433 0.0.0.0 ::1 :: ::ffff:127.0.0.1 ::1%lo "
    "localhost LOCALHOST. a.localhost localhost.localdomain localhost6 ip6-localhost IP6-loopback. "
    "::127.0.0.1 ::ffff:0:127.0.0.1 2002:7f00:1:: 2002:7f00:1::5 64:ff9b::127.0.0.1 64:ff9b:1::7f00:1 "
    "64:ff9b:1:7f00:0:100::"
)
LINK_LOCAL = (
    "169.254.169.254 169.254.170.2 169.254.1 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.169.254. "
    "fe80::1 FE80::1%eth0 febf::1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe "
    "::169.254.169.254 2002:a9fe:a9fe::1 64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:: "
    "100.100.100.200 168.63.129.16 metadata.google.internal METADATA.google.internal. metadata metadata.goog "
    "instance-data.ec2.internal"
)
ELSEWHERE = [
    "192.0.2.1", "::2", "localhost.example", "127.example", "", "a b", "x" * 300, "169.253.1.1", "fec0::1", "fd00::254",
    "2002:c000:201::", "64:ff9b::c000:201", "metadata.example", "metadata.google.internal.example",
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK.split())
def test_is_loopback__each_spelling__is_known(host: str) -> None:
    assert is_loopback(host)
    assert not is_link_local(host)


@pytest.mark.parametrize("host", LINK_LOCAL.split())
def test_is_link_local__each_spelling__is_known(host: str) -> None:
    assert is_link_local(host)
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_is_loopback_or_link_local__anything_else__is_not(host: str) -> None:
    assert not is_loopback(host)
    assert not is_link_local(host)


@pytest.mark.parametrize(
    ("target", "codes"),
    [
        ("169.254.169.254:80", ["XDS1076"]),
        ("dns:///metadata.google.internal:80", ["XDS1076"]),
        ("ipv4:192.0.2.1:80,169.254.169.254:80", ["XDS1076"]),
        ("ipv4:192.0.2.1:80,127.0.0.1:80", ["XDS1074"]),
        ("ipv6:[2001:db8::1]:80,[fe80::1]:80", ["XDS1076"]),
        ("ipv6:%5B::ffff:169.254.169.254%5D:80", ["XDS1076"]),
        ("DNS:///%6cocalhost:80", ["XDS1074"]),
        ("ipv4:192.0.2.1:80,192.0.2.2:80", []),
        # gRPC reads a target as a URI: neither its query nor its fragment says where it leads.
        ("dns:///127.0.0.1:80?a/192.0.2.1:80", ["XDS1074"]),
        ("ipv4:192.0.2.1:80,169.254.169.254:80?a:b/c:1", ["XDS1076"]),
        ("ipv4:127.0.0.1:80#/192.0.2.1:80", ["XDS1074"]),
        ("dns:///169.254.169.254?a", ["XDS1076"]),
        ("localhost#a", ["XDS1074"]),
        # Without brackets an address of IPv6 has no port.
        ("dns:///::ffff:169.254.169.254", ["XDS1076"]),
        ("::1", ["XDS1074"]),
    ],
)
def test_grpc_target__each_of_its_addresses__is_looked_at(target: str, codes: list[str]) -> None:
    tree = {
        "@type": GOOGLE + "envoy.config.core.v3.TypedExtensionConfig",
        "name": "authz",
        "typed_config": {
            "@type": GOOGLE + "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
            "grpc_service": {"google_grpc": {"target_uri": target, "stat_prefix": "a"}},
        },
    }

    assert noted(tree) == codes


def noted(tree: dict[str, Any]) -> list[str]:
    """The codes of everything that is said of a resource."""
    return [each.code for each in parse(Manifest(tree)).findings]


def filter_of(url: str | None, value: dict[str, Any], struct: str = "xds.type.v3.TypedStruct") -> dict[str, Any]:
    """An HTTP filter that is written as a TypedStruct."""
    held = {"@type": GOOGLE + struct, "value": value}
    return {
        "@type": GOOGLE + "envoy.config.core.v3.TypedExtensionConfig",
        "name": "f",
        "typed_config": held if url is None else held | {"type_url": url},
    }


@pytest.mark.parametrize("struct", ["xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"])
@pytest.mark.parametrize(
    "url",
    [GOOGLE + "envoy.extensions.filters.http.luau.v3.Lua", "no.such.Type", "", None, GOOGLE + "google.protobuf.Any"],
)
def test_typed_struct__of_a_type_nobody_can_look_into__is_refused_like_such_an_any(
    url: str | None, struct: str
) -> None:
    tree = filter_of(url, {"default_source_code": {"inline_string": "os.execute('id')"}}, struct)

    outcome = parse(Manifest(tree))

    assert not isinstance(outcome, ParsedResource)
    assert [each.code for each in outcome.findings if each.severity.value == "error"] == ["XDS1011"]
    assert outcome.findings[0].pointer.startswith("/typed_config")


def test_typed_struct__unknown_any_inside_of_it__is_refused_there() -> None:
    inner = {"name": "x", "typed_config": {"@type": GOOGLE + "no.such.Type", "code": "os.execute('id')"}}
    tree = filter_of(GOOGLE + "envoy.config.core.v3.TypedExtensionConfig", inner)

    outcome = parse(Manifest(tree))

    assert not isinstance(outcome, ParsedResource)
    assert [(each.code, each.pointer) for each in outcome.findings] == [
        ("XDS1011", "/typed_config/value/typed_config/@type")
    ]


def test_typed_struct__of_a_known_type__is_taken_with_what_is_noted_of_its_content() -> None:
    value = {"address": "169.254.169.254", "port_value": 80}
    tree = filter_of(GOOGLE + "envoy.config.core.v3.SocketAddress", value)

    outcome = parse(Manifest(tree))

    assert isinstance(outcome, ParsedResource), outcome
    assert [(each.code, each.pointer) for each in outcome.findings] == [("XDS1076", "/typed_config/value/address")]


STRUCTS = ("Struct", "Value", "ListValue", "StringValue")


@pytest.mark.parametrize("held", STRUCTS)
def test_cluster_options__json_in_place_of_a_message__are_refused_because_envoy_reads_them_by_their_key(
    held: str,
) -> None:
    lua = {"@type": GOOGLE + "envoy.extensions.filters.http.lua.v3.Lua", "default_source_code": {"inline_string": "x"}}
    options: Any = {"explicit_http_config": {}, "http_filters": [{"name": "l", "typed_config": lua}]}
    content = {"Value": options, "Struct": options, "ListValue": [options], "StringValue": "x"}[held]
    key = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    tree: dict[str, Any] = {
        "@type": GOOGLE + "envoy.config.cluster.v3.Cluster",
        "name": "pay",
        "type": "EDS",
        "eds_cluster_config": {"eds_config": {"ads": {}}},
        "typed_extension_protocol_options": {key: {"@type": f"{GOOGLE}google.protobuf.{held}", "value": content}},
    }

    outcome = parse(Manifest(tree))

    assert not isinstance(outcome, ParsedResource)
    assert [(each.code, each.pointer) for each in outcome.findings] == [
        ("XDS1011", f"/typed_extension_protocol_options/{key}/@type")
    ]


def test_plugin_configuration__of_a_struct__is_taken_because_the_plugin_reads_it() -> None:
    plugin = {"configuration": {"@type": GOOGLE + "google.protobuf.Struct", "value": {"a": 1}}}
    tree = {
        "@type": GOOGLE + "envoy.config.core.v3.TypedExtensionConfig",
        "name": "w",
        "typed_config": {"@type": GOOGLE + "envoy.extensions.filters.http.wasm.v3.Wasm", "config": plugin},
    }

    assert "XDS1011" not in noted(tree)


def test_tables__every_field__exists_in_the_api() -> None:
    fields = {field.full_name for descriptor in descriptors().values() for field in descriptor.fields}

    assert (FILE_FIELDS | NO_DESTINATIONS) - fields == set()


def test_policy__what_is_stored__reads_back() -> None:
    assert policy_of({}) == DEFAULT_POLICY
    assert policy_of(stances_of(OPEN_POLICY)) == OPEN_POLICY


def test_policy__stored_before_there_was_a_kind__refuses_it_and_no_policy_is_open_to_metadata_services() -> None:
    assert policy_of({kind: "allow" for kind in KINDS if kind != "link_local"}).link_local is Stance.REFUSE
    assert {DEFAULT_POLICY.link_local, OPEN_POLICY.link_local} == {Stance.REFUSE}


def test_kinds__each__has_one_code_one_title_and_one_field_over_rest() -> None:
    dangers = {code for code, each in CATALOGUE.items() if code.startswith("XDS107")}

    assert KIND_OF_CODE.keys() == dangers | {"XDS1013", "XDS1094", "XDS1056"}  # what is not known may be a danger
    assert set(KIND_OF_CODE.values()) == set(KINDS) == set(CONTENT_TITLES) == set(ContentIn().fields)
