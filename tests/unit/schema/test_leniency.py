"""Spellings that Envoy takes: what each means, that it is warned of, and what is still refused.

What Envoy itself makes of them: tests/golden/test_spellings.py.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.findings import Severity
from xdscore.schema import Manifest, Media, ParsedResource, Refused, parse, read_manifests, to_json
from xdscore.schema.leniency import SPELLINGS, strictly

TYPE = "type.googleapis.com/"
CLUSTER = TYPE + "envoy.config.cluster.v3.Cluster"
ENDPOINTS = TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment"


def cluster(**fields: Any) -> dict[str, Any]:
    return {"@type": CLUSTER, "name": "pay", **fields}


def read(tree: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The canonical manifest, and (code, pointer) of each warning about its spelling."""
    result = parse(Manifest(tree))
    assert isinstance(result, ParsedResource), result
    shown = to_json(result.any_bytes, lambda _: "")
    return shown, [(each.code, each.pointer) for each in result.findings if each.code in SPELLINGS]


@pytest.mark.parametrize(
    ("field", "written", "meant", "code"),
    [
        ("type", "strict_dns", "STRICT_DNS", "XDS1031"),
        ("type", "Static", "STATIC", "XDS1031"),
        ("lb_policy", "+2", "RING_HASH", "XDS1031"),
        ("respect_dns_ttl", "true", True, "XDS1035"),
        ("respect_dns_ttl", "YES", True, "XDS1035"),
        ("respect_dns_ttl", "1", True, "XDS1035"),
        ("per_connection_buffer_limit_bytes", "+5", 5, "XDS1036"),
        ("per_connection_buffer_limit_bytes", "1e3", 1000, "XDS1036"),
        ("per_connection_buffer_limit_bytes", "5.0", 5, "XDS1036"),
        ("per_connection_buffer_limit_bytes", "0099", 99, "XDS1036"),
        ("per_connection_buffer_limit_bytes", "007", 7, "XDS1036"),
        ("per_connection_buffer_limit_bytes", {"value": 5}, 5, "XDS1038"),
        ("connect_timeout", "005s", "5s", "XDS1036"),
        ("connect_timeout", {"seconds": 5, "nanos": 250_000_000}, "5.250s", "XDS1038"),
        ("alt_stat_name", 4_000_000_000, "4000000000", "XDS1037"),
    ],
)
def test_respelled__value_that_envoy_takes__means_this_and_is_warned_of(
    field: str, written: object, meant: object, code: str
) -> None:
    shown, warned = read(cluster(**{field: written}))

    assert shown[field] == meant
    assert warned == [(code, f"/{field}")]


@pytest.mark.parametrize(
    ("field", "written"),
    [
        ("type", "strict-dns"),
        ("type", "99"),
        ("respect_dns_ttl", "maybe"),
        ("respect_dns_ttl", " true"),
        ("respect_dns_ttl", 1),
        ("per_connection_buffer_limit_bytes", "010"),
        ("per_connection_buffer_limit_bytes", " 5"),
        ("per_connection_buffer_limit_bytes", "5.5"),
        ("per_connection_buffer_limit_bytes", "1e300"),
        ("per_connection_buffer_limit_bytes", "-1"),
        ("per_connection_buffer_limit_bytes", {"value": 5, "wrong": 1}),
        ("per_connection_buffer_limit_bytes", True),
        ("connect_timeout", {"seconds": 10**13}),
        ("connect_timeout", {"seconds": 1, "nanos": -1}),
        ("connect_timeout", {"second": 1}),
        ("alt_stat_name", 5),
        ("alt_stat_name", 1.5),
        ("alt_stat_name", True),
        ("alt_stat_name", ["pay"]),
    ],
)
def test_respelled__what_envoy_refuses_or_what_could_mean_two_things__is_refused(field: str, written: object) -> None:
    assert isinstance(parse(Manifest(cluster(**{field: written}))), Refused)


HOST: dict[str, Any] = {"endpoint": {"address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}}}}


@pytest.mark.parametrize(
    ("hosts", "count", "warned"),
    [
        (HOST, 1, [("XDS1032", "")]),
        ([[HOST], HOST], 2, [("XDS1033", "/0")]),
        ([HOST, [[HOST, HOST], []]], 3, [("XDS1033", "/1"), ("XDS1033", "/1/0"), ("XDS1033", "/1/1")]),
    ],
)
def test_list__one_item_or_lists_inside__are_its_items(
    hosts: object, count: int, warned: list[tuple[str, str]]
) -> None:
    shown, found = read({"@type": ENDPOINTS, "cluster_name": "c", "endpoints": [{"lb_endpoints": hosts}]})

    assert shown["endpoints"][0]["lb_endpoints"] == [HOST] * count
    assert found == [(code, f"/endpoints/0/lb_endpoints{place}") for code, place in warned]


def test_list__null_inside__is_an_empty_item() -> None:
    retry = {"retry_on": "5xx", "retriable_status_codes": [503, None]}
    tree = {"@type": TYPE + "envoy.config.route.v3.VirtualHost", "name": "r/v", "domains": ["*"], "retry_policy": retry}

    shown, warned = read(tree)

    assert shown["retry_policy"]["retriable_status_codes"] == [503, 0]
    assert warned == [("XDS1034", "/retry_policy/retriable_status_codes/1")]


def test_map__null_inside__is_an_empty_value() -> None:
    shown, warned = read(cluster(metadata={"filter_metadata": {"a": None}}))

    assert shown["metadata"] == {"filter_metadata": {"a": {}}}
    assert warned == [("XDS1034", "/metadata/filter_metadata/a")]


def test_rule_violation__in_an_item_without_its_list__points_to_where_it_stands() -> None:
    tree: dict[str, Any] = {
        "@type": ENDPOINTS,
        "cluster_name": "c",
        "endpoints": {"priority": 999, "lb_endpoints": HOST},
    }

    result = parse(Manifest(tree))

    assert [each.pointer for each in result.findings if each.severity is Severity.ERROR] == ["/endpoints/priority"]


def test_spellings__more_than_are_shown__are_counted_and_hide_nothing_that_is_wrong() -> None:
    hosts = [{**HOST, "health_status": "healthy"} for _ in range(60)]
    tree: dict[str, Any] = {"@type": ENDPOINTS, "cluster_name": "c", "endpoints": [{"lb_endpoints": hosts}]}

    sound = parse(Manifest(tree))
    wrong = parse(Manifest({**tree, "endpoints": [{"lb_endpoints": [*hosts, {"wrong": 1}]}]}))

    assert isinstance(sound, ParsedResource)
    assert [each.code for each in sound.findings] == ["XDS1031"] * 50 + ["XDS1039"]
    assert "10 further" in sound.findings[-1].detail
    assert [each.code for each in wrong.findings if each.severity is Severity.ERROR] == ["XDS1013"]


def test_strictly__warnings_about_spelling__are_errors_and_nothing_else_is() -> None:
    wrapped: dict[str, Any] = {
        "@type": TYPE + "envoy.service.discovery.v3.Resource",
        "name": "a",
        "ttl": "60s",
        "resource": cluster(type="static"),
    }

    said = strictly(parse(Manifest(wrapped)).findings)

    assert {each.code: each.severity for each in said} == {"XDS1028": Severity.WARNING, "XDS1031": Severity.ERROR}


def test_number_for_text__is_never_shown__because_it_may_be_a_secret() -> None:
    secret = {"name": "s", "generic_secret": {"secret": {"inline_string": 987_654_321_012}}}
    tree: dict[str, Any] = {"@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.Secret", **secret}

    result = parse(Manifest(tree))

    assert [each.code for each in result.findings] == ["XDS1037"]
    assert "987" not in result.findings[0].detail + result.findings[0].hint


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ({"socket_address": {"address": "10.0.0.1", "port_value": 80}}, "10.0.0.1:80"),
        ({"socketAddress": {"address": "::1", "portValue": "443"}}, "[::1]:443"),
        ({"socket_address": {"protocol": "udp", "address": "10.0.0.1", "port_value": 53}}, "10.0.0.1:53/udp"),
        ({"pipe": {"path": "/run/a.sock"}}, "/run/a.sock"),
        ({"socket_address": {"address": 5}}, ""),
        ("nowhere", ""),
        ({"socket_address": []}, ""),
    ],
)
def test_bootstrap__listener_without_a_name__has_that_of_its_address(address: object, name: str) -> None:
    tree = {"static_resources": {"listeners": [{"address": address}]}}
    text = json.dumps(tree).encode()

    (manifest,), findings = read_manifests(text, Media.JSON)

    assert findings == ()
    assert manifest.tree.get("name", "") == name
    assert [each.code for each in manifest.notes] == (["XDS1063"] if name else [])


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6), st.lists))
def test_respelled__anything_at_all__is_taken_or_refused_and_what_is_taken_reads_back(value: object) -> None:
    for field in ("type", "connect_timeout", "respect_dns_ttl", "per_connection_buffer_limit_bytes", "alt_stat_name"):
        result = parse(Manifest(cluster(**{field: value})))

        if isinstance(result, ParsedResource):
            shown = to_json(result.any_bytes, lambda _: "")
            again = parse(Manifest(shown))
            assert isinstance(again, ParsedResource)
            assert again.any_bytes == result.any_bytes
            assert not {each.code for each in again.findings} & SPELLINGS
