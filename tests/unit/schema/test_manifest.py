"""Bodies to manifests: every form a file of resources may have."""

import json
from typing import Any

import pytest

from xdscore.findings import Severity
from xdscore.schema import ManifestLimits, Media, ParsedResource, manifests_of, parse, read_manifests, read_text

GOOGLE = "type.googleapis.com/"
CLUSTER = GOOGLE + "envoy.config.cluster.v3.Cluster"
LISTENER = GOOGLE + "envoy.config.listener.v3.Listener"
ROUTE = GOOGLE + "envoy.config.route.v3.RouteConfiguration"


def cluster(name: str) -> dict[str, Any]:
    return {"@type": CLUSTER, "name": name}


def pointers(body: object) -> list[str]:
    manifests, findings = read_manifests(json.dumps(body).encode(), Media.JSON)
    assert findings == ()
    return [manifest.pointer for manifest in manifests]


API = {
    "api_listener": {
        "@type": GOOGLE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "rds": {"route_config_name": "r", "config_source": {"ads": {}}},
    }
}


def names(body: object) -> list[str]:
    manifests, _ = read_manifests(json.dumps(body).encode(), Media.JSON)
    parsed = [parse(manifest) for manifest in manifests]
    assert all(isinstance(outcome, ParsedResource) for outcome in parsed), parsed
    return [f"{outcome.type.word}:{outcome.name}" for outcome in parsed if isinstance(outcome, ParsedResource)]


def test_read__one_object__is_one_manifest_at_the_root() -> None:
    assert pointers(cluster("a")) == [""]


def test_read__a_list__is_one_manifest_an_item() -> None:
    assert pointers([cluster("a"), cluster("b")]) == ["/0", "/1"]


def test_read__several_yaml_documents__number_the_documents() -> None:
    body = f"'@type': {CLUSTER}\nname: a\n---\n- '@type': {CLUSTER}\n  name: b\n  bogus: 1\n".encode()

    manifests, findings = read_manifests(body, Media.YAML)
    refused = parse(manifests[1])

    assert findings == ()
    assert [manifest.pointer for manifest in manifests] == ["/0", "/1/0"]
    assert [(found.pointer, found.line, found.column) for found in refused.findings] == [("/1/0/bogus", 6, 3)]


def test_read__part_of_an_apply_body__points_into_the_body() -> None:
    body = b'{"message": "m",\n "resources": [{"@type": "' + CLUSTER.encode() + b'",\n  "nam": "a"}]}'
    (document,) = read_text(body, Media.JSON).documents

    (manifest,), findings = manifests_of(document, "/resources")
    refused = parse(manifest)

    assert findings == ()
    assert [(found.pointer, found.line, found.column) for found in refused.findings] == [("/resources/0/nam", 3, 3)]


def test_read__bootstrap__adds_the_types_that_the_places_imply() -> None:
    static = {
        "listeners": [{"name": "l", "api_listener": API}],
        "clusters": [{"name": "c"}],
        "secrets": [{"name": "s", "generic_secret": {"secret": {"inline_string": "x"}}}],
    }

    assert names({"admin": {}, "static_resources": static}) == ["listener:l", "cluster:c", "secret:s"]
    assert names({"staticResources": static}) == ["listener:l", "cluster:c", "secret:s"]
    assert names(static) == ["listener:l", "cluster:c", "secret:s"]
    assert pointers({"static_resources": {"clusters": [{"name": "c"}]}}) == ["/static_resources/clusters/0"]


def test_read__bootstrap__says_of_each_other_section_that_it_is_left_out() -> None:
    body = {"admin": {}, "static_resources": {"clusters": [{"name": "c"}], "other": []}, "statsSinks": []}

    manifests, findings = read_manifests(json.dumps(body).encode(), Media.JSON)

    assert [each.pointer for each in manifests] == ["/static_resources/clusters/0"]
    assert [(each.code, each.pointer) for each in findings] == [
        ("XDS1062", "/admin"),
        ("XDS1062", "/static_resources/other"),
        ("XDS1062", "/statsSinks"),
    ]


def test_read__discovery_response__in_both_variants() -> None:
    sotw = {"version_info": "7", "type_url": CLUSTER, "nonce": "n", "resources": [cluster("a")]}
    delta = {"systemVersionInfo": "7", "resources": [{"name": "a", "version": "7", "resource": cluster("a")}]}

    assert names(sotw) == ["cluster:a"]
    assert names({"@type": GOOGLE + "envoy.service.discovery.v3.DiscoveryResponse", **sotw}) == ["cluster:a"]
    assert names(delta) == ["cluster:a"]
    _, findings = read_manifests(json.dumps({**delta, "removedResources": ["b", "c"]}).encode(), Media.JSON)
    assert [(each.code, each.pointer, "names: 2" in each.detail) for each in findings] == [
        ("XDS1130", "/removedResources", True)
    ]


def test_read__config_dump__takes_what_came_over_xds_and_says_what_it_left() -> None:
    admin = GOOGLE + "envoy.admin.v3."
    dump = {
        "configs": [
            {"@type": admin + "BootstrapConfigDump", "bootstrap": {}},
            {
                "@type": admin + "ClustersConfigDump",
                "static_clusters": [{"cluster": cluster("xds")}],
                "dynamic_active_clusters": [{"version_info": "1", "cluster": cluster("a")}],
                "dynamic_warming_clusters": [{"cluster": cluster("b")}],
            },
            {
                "@type": admin + "ListenersConfigDump",
                "dynamic_listeners": [
                    {"name": "l", "active_state": {"listener": {"@type": LISTENER, "name": "l", "api_listener": API}}},
                    {"name": "bad", "error_state": {"details": "no"}},
                ],
            },
            {
                "@type": admin + "RoutesConfigDump",
                "dynamicRouteConfigs": [{"routeConfig": {"@type": ROUTE, "name": "r"}}],
            },
            {
                "@type": admin + "ScopedRoutesConfigDump",
                "dynamic_scoped_route_configs": [
                    {
                        "name": "x",
                        "scoped_route_configs": [
                            {
                                "@type": GOOGLE + "envoy.config.route.v3.ScopedRouteConfiguration",
                                "name": "s",
                                "route_configuration_name": "r",
                                "key": {"fragments": [{"string_key": "k"}]},
                            }
                        ],
                    }
                ],
            },
            {"@type": admin + "SecretsConfigDump", "dynamic_active_secrets": [{"name": "tls"}]},
        ]
    }

    _, findings = read_manifests(json.dumps(dump).encode(), Media.JSON)

    assert names(dump) == ["cluster:a", "cluster:b", "listener:l", "route:r", "scoped_route:s"]
    assert [(found.code, found.severity, found.pointer) for found in findings] == [
        ("XDS1062", Severity.NOTE, "/configs/0"),
        ("XDS1060", Severity.NOTE, "/configs/1"),
        ("XDS1131", Severity.WARNING, "/configs/2/dynamic_listeners/1"),
        ("XDS1061", Severity.WARNING, "/configs/5"),
    ]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ("5", "XDS1006", ""),
        ('"text"', "XDS1006", ""),
        ('[1, {"@type": "x"}]', "XDS1006", "/0"),
        ("[]", "XDS1007", ""),
        ('{"static_resources": {"clusters": 5}}', "XDS1014", "/static_resources/clusters"),
        ('{"static_resources": []}', "XDS1014", "/static_resources"),
        ('{"configs": [1]}', "XDS1006", "/configs/0"),
    ],
)
def test_read__no_resource_in_it__says_where(body: str, code: str, pointer: str) -> None:
    manifests, findings = read_manifests(body.encode(), Media.JSON)

    assert manifests == ()
    assert [(found.code, found.pointer) for found in findings] == [(code, pointer)]


def test_read__more_resources_than_allowed__is_refused() -> None:
    body = json.dumps([cluster("a"), cluster("b"), cluster("c")]).encode()

    assert len(read_manifests(body, Media.JSON, ManifestLimits(max_resources=3))[0]) == 3
    manifests, (finding,) = read_manifests(body, Media.JSON, ManifestLimits(max_resources=2))

    assert manifests == ()
    assert finding.code == "XDS1004"
