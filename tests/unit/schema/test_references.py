"""References: what a resource needs, where it says so, and what is none of our business."""

from typing import Any

import pytest

from xdscore.schema import Manifest, ParsedResource, parse
from xdscore.schema.references import _NAMED_FIELDS, _SOURCED
from xdscore.schema.types_registry import descriptors

GOOGLE = "type.googleapis.com/"
FILTERS = "envoy.extensions.filters.network."
ADS = {"ads": {}, "resource_api_version": "V3"}
FILE = {"path_config_source": {"path": "/x"}}
ROUTE_TYPE = GOOGLE + "envoy.config.route.v3.RouteConfiguration"

ONE_HOST = {"endpoints": [{"lb_endpoints": [{}]}], "cluster_name": "x"}


def references(tree: dict[str, Any]) -> list[tuple[str, str, str]]:
    outcome = parse(Manifest({"name": "x", **tree}))
    assert isinstance(outcome, ParsedResource), outcome
    return [(found.type, found.name, found.pointer) for found in outcome.references]


def listener(type_name: str, **fields: Any) -> dict[str, Any]:
    config = {"@type": GOOGLE + type_name, "stat_prefix": "s", **fields}
    filters = [{"name": "n", "typed_config": config}]
    return {
        "@type": GOOGLE + "envoy.config.listener.v3.Listener",
        "address": {"pipe": {"path": "@l"}},
        "filter_chains": [{"filters": filters}],
    }


def cluster(**fields: Any) -> dict[str, Any]:
    return {"@type": GOOGLE + "envoy.config.cluster.v3.Cluster", **fields}


CONFIG = "/filter_chains/0/filters/0/typed_config"
HCM = FILTERS + "http_connection_manager.v3.HttpConnectionManager"


def test_references__listener__names_routes_filters_and_secrets() -> None:
    tree = listener(
        HCM,
        rds={"route_config_name": "r", "config_source": ADS},
        http_filters=[{"name": "ext", "config_discovery": {"config_source": ADS, "type_urls": ["t"]}}],
    )
    tls = GOOGLE + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
    secrets = [{"name": "cert", "sds_config": ADS}, {"name": "file", "sds_config": FILE}, {"name": "static"}]
    context = {"@type": tls, "common_tls_context": {"tls_certificate_sds_secret_configs": secrets}}
    tree["filter_chains"][0]["transport_socket"] = {"name": "tls", "typed_config": context}

    assert references(tree) == [
        ("route", "r", CONFIG + "/rds/route_config_name"),
        ("extension", "ext", CONFIG + "/http_filters/0/name"),
        (
            "secret",
            "cert",
            "/filter_chains/0/transport_socket/typed_config/common_tls_context/tls_certificate_sds_secret_configs/0/name",
        ),
    ]


def test_references__routes__name_every_cluster_with_its_place() -> None:
    weighted = {"clusters": [{"name": "b", "weight": 1}, {"name": "c", "weight": 1}]}
    routes = [
        {"match": {"prefix": "/a"}, "route": {"cluster": "a", "request_mirror_policies": [{"cluster": "m"}]}},
        {"match": {"prefix": "/b"}, "route": {"weightedClusters": weighted}},
        {"match": {"prefix": "/h"}, "route": {"cluster_header": "x-cluster"}},
        {"match": {"prefix": "/r"}, "redirect": {"host_redirect": "x"}},
    ]
    place = "/virtual_hosts/0/routes"

    found = references({"@type": ROUTE_TYPE, "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": routes}]})

    assert found == [
        ("cluster", "a", place + "/0/route/cluster"),
        ("cluster", "m", place + "/0/route/request_mirror_policies/0/cluster"),
        ("cluster", "b", place + "/1/route/weightedClusters/clusters/0/name"),
        ("cluster", "c", place + "/1/route/weightedClusters/clusters/1/name"),
    ]


@pytest.mark.parametrize(
    ("fields", "eds_name", "expected"),
    [
        ({"type": "EDS", "eds_cluster_config": {"eds_config": ADS}}, "x", [("endpoint", "x", "/name")]),
        (
            {"type": "EDS", "eds_cluster_config": {"eds_config": ADS, "service_name": "s"}},
            "s",
            [("endpoint", "s", "/eds_cluster_config/service_name")],
        ),
        ({"type": "EDS", "eds_cluster_config": {"eds_config": FILE}}, "x", []),
        ({"type": "STATIC"}, "", []),
        ({"type": "LOGICAL_DNS", "eds_cluster_config": {"eds_config": ADS}, "load_assignment": ONE_HOST}, "", []),
        (
            {
                "cluster_type": {
                    "name": "aggregate",
                    "typed_config": {
                        "@type": GOOGLE + "envoy.extensions.clusters.aggregate.v3.ClusterConfig",
                        "clusters": ["p", "q"],
                    },
                }
            },
            "",
            [
                ("cluster", "p", "/cluster_type/typed_config/clusters/0"),
                ("cluster", "q", "/cluster_type/typed_config/clusters/1"),
            ],
        ),
    ],
)
def test_references__clusters__name_endpoints_and_other_clusters(
    fields: dict[str, Any], eds_name: str, expected: list[tuple[str, str, str]]
) -> None:
    outcome = parse(Manifest({"name": "x", **cluster(**fields)}))

    assert isinstance(outcome, ParsedResource)
    assert outcome.eds_name == eds_name
    assert references(cluster(**fields)) == expected


def test_references__clusters_of_a_config_source__belong_to_the_bootstrap() -> None:
    grpc = {
        "api_type": "GRPC",
        "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}],
        "transport_api_version": "V3",
    }
    tree = listener(HCM, rds={"route_config_name": "r", "config_source": {"api_config_source": grpc}})

    assert references(tree) == []


def test_references__xdstp_name_without_source__is_ours() -> None:
    tree = listener(HCM, rds={"route_config_name": "xdstp://a/r", "config_source": FILE})

    assert references(tree) == [("route", "xdstp://a/r", CONFIG + "/rds/route_config_name")]


def test_references__context_parameters_in_any_order__name_one_resource() -> None:
    tree = listener(HCM, rds={"route_config_name": "xdstp://a/r?z=1&a=2", "config_source": FILE})

    assert references(tree) == [("route", "xdstp://a/r?a=2&z=1", CONFIG + "/rds/route_config_name")]


def test_references__other_filters__name_clusters_and_scopes_name_routes() -> None:
    proxy = listener(FILTERS + "tcp_proxy.v3.TcpProxy", cluster="t")
    scope = {
        "@type": GOOGLE + "envoy.config.route.v3.ScopedRouteConfiguration",
        "route_configuration_name": "r",
        "key": {"fragments": [{"string_key": "k"}]},
    }

    assert references(proxy) == [("cluster", "t", CONFIG + "/cluster")]
    assert references(scope) == [("route", "r", "/route_configuration_name")]


def test_references__the_table__names_only_fields_that_exist() -> None:
    known = {field.full_name for descriptor in descriptors().values() for field in descriptor.fields}

    assert set(_NAMED_FIELDS) <= known
    for message, sourced in _SOURCED.items():
        assert {f"{message}.{sourced.name_field}", f"{message}.{sourced.source_field}"} <= known
