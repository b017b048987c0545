"""Builders of resources with defaults, as operators write them."""

import json
from collections.abc import Mapping

from xdscore.schema import Media, ParsedResource, parse, read_manifests

Tree = dict[str, object]
TYPE = "type.googleapis.com/"


def cluster(name: str = "pay", *, eds: bool = False, **more: object) -> Tree:
    """The manifest of a cluster that is static and empty and needs nothing else; with `eds` its endpoints come over
    ADS.
    """
    tree: Tree = {"@type": TYPE + "envoy.config.cluster.v3.Cluster", "name": name, "connect_timeout": "1s", **more}
    if eds:
        tree |= {"type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3"}}}
    return tree


def endpoints(cluster_name: str, *ports: int, address: str = "127.0.0.1") -> Tree:
    """The manifest of a cluster's endpoints, on loopback unless `address` says otherwise."""
    lb = [
        {
            "endpoint": {"address": {"socket_address": {"address": address, "port_value": port}}},
            "load_balancing_weight": 1,
        }
        for port in ports
    ]
    locality = {"locality": {"region": "local"}, "load_balancing_weight": 1, "lb_endpoints": lb}
    return {
        "@type": TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": cluster_name,
        "endpoints": [locality] if lb else [],
    }


def route(name: str, cluster_name: str, *, domain: str = "*") -> Tree:
    """The manifest of a route configuration that sends everything to one cluster."""
    host = {
        "name": "all",
        "domains": [domain],
        "routes": [{"match": {"prefix": ""}, "route": {"cluster": cluster_name}}],
    }
    return {"@type": TYPE + "envoy.config.route.v3.RouteConfiguration", "name": name, "virtual_hosts": [host]}


def _router() -> Tree:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": TYPE + "envoy.extensions.filters.http.router.v3.Router"},
    }


def _connection_manager(route_name: str) -> Tree:
    return {
        "@type": TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "ingress",
        "rds": {"route_config_name": route_name, "config_source": {"ads": {}, "resource_api_version": "V3"}},
        "http_filters": [_router()],
    }


def listener(name: str, route_name: str, port: int) -> Tree:
    """The manifest of an HTTP listener on loopback for Envoy."""
    return {
        "@type": TYPE + "envoy.config.listener.v3.Listener",
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": _connection_manager(route_name),
                    }
                ]
            }
        ],
    }


def api_listener(name: str, route_name: str) -> Tree:
    """The manifest of a listener for a proxyless gRPC client."""
    return {
        "@type": TYPE + "envoy.config.listener.v3.Listener",
        "name": name,
        "api_listener": {"api_listener": _connection_manager(route_name)},
    }


def tls_secret(name: str, key: str) -> Tree:
    """The manifest of a secret whose private text is `key`."""
    return {
        "@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": name,
        "generic_secret": {"secret": {"inline_string": key}},
    }


def parsed(tree: Mapping[str, object]) -> ParsedResource:
    """The resource of a manifest, parsed; fails the test when it is refused."""
    manifests, findings = read_manifests(json.dumps(tree).encode(), Media.JSON)
    assert not findings, findings
    result = parse(manifests[0])
    assert isinstance(result, ParsedResource), result
    return result
