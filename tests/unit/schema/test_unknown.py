"""What the schema does not know: refused unless a policy takes it, and then secret, kept to the byte and told."""

import base64
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyProto

from tests.unit.schema.test_pool import file
from xdscore.findings import Severity
from xdscore.schema import (
    Manifest,
    ParsedResource,
    Refused,
    canonical,
    holds_secrets,
    parse,
    redact,
    restore_kept,
    secret_values,
    shipped,
    to_json,
    to_json_with_secrets,
)
from xdscore.schema.content_policy import DEFAULT_POLICY, ContentPolicy, Stance, graded
from xdscore.schema.pool import schema_of
from xdscore.schema.sets import schema_with
from xdscore.schema.types_registry import schema, use
from xdscore.schema.unknown import UnknownPart, unknown_in

GOOGLE = "type.googleapis.com/"
OWN = GOOGLE + "acme.Filter"
BYTES = base64.b64encode(b"\x0a\x06secret").decode()
WARNS = ContentPolicy(unknown_fields=Stance.WARN, opaque=Stance.WARN)


def cluster(**more: Any) -> Manifest:
    return Manifest({"@type": GOOGLE + "envoy.config.cluster.v3.Cluster", "name": "pay", **more})


def filtered(value: object = BYTES) -> Manifest:
    socket = {"name": "own", "typed_config": {"@type": OWN, "value": value}}
    return cluster(transport_socket=socket, metadata={"filter_metadata": {"b": {"x": 1}, "a": {}}})


def taken(manifest: Manifest, policy: ContentPolicy) -> ParsedResource:
    result = parse(manifest, policy=policy)
    assert isinstance(result, ParsedResource), result
    return result


def keyed_hash(data: bytes) -> str:
    return f"{len(data)}x{sum(data)}"


def test_unknown_field__by_default__is_an_error() -> None:
    result = parse(cluster(of_tomorrow=1))

    assert isinstance(result, Refused)
    assert [each.code for each in result.findings] == ["XDS1013"]


def test_unknown_field__where_the_policy_warns__is_left_out_with_a_warning_at_its_place() -> None:
    result = taken(cluster(of_tomorrow={"a": 1}, conect_timeout="1s"), WARNS)

    said = graded(result.findings, WARNS)
    assert [(each.code, each.severity, each.pointer) for each in said] == [
        ("XDS1013", Severity.WARNING, "/of_tomorrow"),
        ("XDS1013", Severity.WARNING, "/conect_timeout"),
    ]
    assert said[1].hint == "It is left out. Did you mean 'connect_timeout'?"
    assert result.any_bytes == taken(cluster(), DEFAULT_POLICY).any_bytes
    assert graded(result.findings, ContentPolicy(unknown_fields=Stance.ALLOW)) == ()
    assert graded(result.findings, DEFAULT_POLICY)[0].severity is Severity.ERROR


def test_unknown_field__hides_no_broken_rule_beside_it() -> None:
    checked = {"timeout": "1s", "interval": "1s", "unhealthy_threshold": 1, "healthy_threshold": 1, "of_tomorrow": 1}
    result = parse(cluster(health_checks=[checked], connect_timeout="0s"), policy=WARNS)

    assert isinstance(result, Refused)
    assert sorted((each.code, each.pointer) for each in result.findings if each.severity is Severity.ERROR) == [
        ("XDS1041", "/health_checks/0"),
        ("XDS1043", "/connect_timeout"),
    ]


def test_opaque__by_default__is_an_error_whatever_unknown_fields_are() -> None:
    result = parse(filtered(), policy=ContentPolicy(unknown_fields=Stance.ALLOW))

    assert isinstance(result, Refused)
    assert [(each.code, each.pointer) for each in result.findings] == [
        ("XDS1011", "/transport_socket/typed_config/@type")
    ]


def test_opaque__granted__is_kept_to_the_byte_and_told() -> None:
    result = taken(filtered(), WARNS)

    assert [(each.code, each.severity, each.pointer) for each in graded(result.findings, WARNS)] == [
        ("XDS1077", Severity.WARNING, "/transport_socket/typed_config")
    ]
    assert canonical(result.any_bytes) == result.any_bytes
    again = to_json_with_secrets(result.any_bytes)
    assert taken(Manifest(again), WARNS).any_bytes == result.any_bytes
    assert again["transport_socket"] == {"name": "own", "typed_config": {"@type": OWN, "value": BYTES}}


def test_opaque__wrong_base64_or_more_than_its_bytes__is_an_error() -> None:
    not_base64 = parse(filtered("%"), policy=WARNS)
    fields = parse(cluster(transport_socket={"name": "o", "typed_config": {"@type": OWN, "a": 1}}), policy=WARNS)

    assert [each.code for each in not_base64.findings] == ["XDS1016"]
    assert "XDS1011" in [each.code for each in fields.findings]


def test_opaque__is_secret_as_a_whole() -> None:
    result = taken(filtered(), WARNS)

    assert holds_secrets(result.any_bytes)
    assert secret_values(result.any_bytes) == {b"\x0a\x06secret"}
    shown: Any = to_json(result.any_bytes, keyed_hash)
    assert BYTES not in str(shown)
    assert shown["transport_socket"]["typed_config"]["@type"] == OWN
    assert b"secret" not in redact(AnyProto.FromString(result.any_bytes)).SerializeToString()

    kept = restore_kept(Manifest(shown), result.any_bytes, keyed_hash)
    assert taken(kept, WARNS).any_bytes == result.any_bytes
    refused = parse(Manifest(shown), policy=WARNS)
    assert isinstance(refused, Refused)
    assert [each.code for each in refused.findings] == ["XDS1030"]


def test_schema__once_the_type_is_known__the_same_bytes_are_read() -> None:
    result = taken(filtered(), WARNS)
    before = schema()
    own = file("acme/filter.proto", message="Filter", text=1)

    use(schema_with([("own", [own])]))
    try:
        shown: Any = to_json(result.any_bytes, keyed_hash)
        assert shown["transport_socket"]["typed_config"] == {"@type": OWN, "text": "secret"}
        assert not holds_secrets(result.any_bytes)
        readable = cluster(transport_socket={"name": "own", "typed_config": {"@type": OWN, "text": "secret"}})
        assert isinstance(parse(readable), ParsedResource)
    finally:
        use(before)

    assert isinstance(parse(readable), Refused)


def test_unknown_parts__of_an_older_schema__are_found_with_their_place() -> None:
    listener = Manifest(
        {
            "@type": GOOGLE + "envoy.config.route.v3.RouteConfiguration",
            "name": "r",
            "virtual_hosts": [
                {
                    "name": "v",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/", "cookies": [{"name": "c", "string_match": {"exact": "x"}}]},
                            "route": {"cluster": "c"},
                        }
                    ],
                }
            ],
        }
    )
    packed = AnyProto.FromString(taken(listener, DEFAULT_POLICY).any_bytes)

    older = schema_of(shipped.files_of("envoy-1.36.4"))

    assert list(unknown_in(packed, schema())) == []
    assert list(unknown_in(packed, older)) == [
        UnknownPart(("virtual_hosts", 0, "routes", 0, "match"), "envoy.config.route.v3.RouteMatch", 17)
    ]


@pytest.mark.parametrize("stance", Stance)
def test_command_of_a_format__that_nobody_knows__is_as_the_policy_says_and_stays(stance: Stance) -> None:
    header: Any = {"header": {"key": "x-a", "value": "%NOPE%"}}
    url = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
    manifest = Manifest({"@type": url, "name": "r", "request_headers_to_add": [header]})
    policy = ContentPolicy(unknown_fields=stance)

    result = parse(manifest, policy=policy)

    told = [(each.code, each.severity) for each in graded(result.findings, policy)]
    severities = {Stance.REFUSE: Severity.ERROR, Stance.WARN: Severity.WARNING}
    assert told == ([("XDS1094", severities[stance])] if stance in severities else [])
    assert isinstance(result, ParsedResource) == (stance is not Stance.REFUSE)
    assert isinstance(result, Refused) or b"%NOPE%" in result.any_bytes
