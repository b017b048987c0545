"""Small real resources: a cluster with its endpoints, a route, a listener for Envoy and one for gRPC."""

from collections.abc import Mapping
from typing import Any

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from google.protobuf import json_format

Source = Mapping[str, Any]
"""A config source of xDS, as JSON."""
ADS: Source = {"ads": {}, "resource_api_version": "V3"}
_ANY = "type.googleapis.com/"
_ROUTER = {"name": "router", "typed_config": {"@type": _ANY + router_pb2.Router.DESCRIPTOR.full_name}}


def eds_cluster(name: str, connect_timeout: str = "1s", source: Source = ADS) -> cluster_pb2.Cluster:
    """A cluster whose endpoints come over xDS, under its own name."""
    fields = {
        "name": name,
        "type": "EDS",
        "connect_timeout": connect_timeout,
        "eds_cluster_config": {"eds_config": source},
    }
    return json_format.ParseDict(fields, cluster_pb2.Cluster())


def assignment(name: str, *ports: int) -> endpoint_pb2.ClusterLoadAssignment:
    """The endpoints of a cluster, on these ports of the loopback address."""
    endpoints = [
        {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}} for port in ports
    ]
    locality = {"locality": {"region": "r", "zone": "z"}, "load_balancing_weight": 1, "lb_endpoints": endpoints}
    fields = {"cluster_name": name, "endpoints": [locality]}
    return json_format.ParseDict(fields, endpoint_pb2.ClusterLoadAssignment())


def route(name: str, cluster: str) -> route_pb2.RouteConfiguration:
    """A route configuration that sends everything to one cluster."""
    match = {"match": {"prefix": ""}, "route": {"cluster": cluster}}
    fields = {"name": name, "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [match]}]}
    return json_format.ParseDict(fields, route_pb2.RouteConfiguration())


def http_listener(
    name: str, port: int, route_name: str, source: Source = ADS, *, bound: bool = True
) -> listener_pb2.Listener:
    """An HTTP listener for Envoy. One that is not `bound` exists, with its route, but has no port."""
    fields = {
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": _http(route_name, source)}]}],
        "bind_to_port": bound,
    }
    return json_format.ParseDict(fields, listener_pb2.Listener())


def api_listener(name: str, route_name: str, stat_prefix: str = "http") -> listener_pb2.Listener:
    """A listener for a proxyless gRPC client."""
    fields = {"name": name, "api_listener": {"api_listener": _http(route_name, ADS, stat_prefix)}}
    return json_format.ParseDict(fields, listener_pb2.Listener())


def server_listener(
    template: str, port: int, transport_socket: Mapping[str, Any] | None = None
) -> listener_pb2.Listener:
    """The listener of a gRPC server on this port of the loopback address (gRFC A36), which lets every call through.
    `template`: that of its bootstrap for the listener's name.
    """
    passes = {"match": {"prefix": ""}, "non_forwarding_action": {}}
    routes = {"name": "inbound", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [passes]}]}
    connection = {
        "@type": _ANY + http_connection_manager_pb2.HttpConnectionManager.DESCRIPTOR.full_name,
        "stat_prefix": "inbound",
        "route_config": routes,
        "http_filters": [_ROUTER],
    }
    secured = {"transport_socket": dict(transport_socket)} if transport_socket is not None else {}
    fields = {
        "name": template.replace("%s", f"127.0.0.1:{port}"),
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": connection}], **secured}],
    }
    return json_format.ParseDict(fields, listener_pb2.Listener())


def _http(route_name: str, source: Source, stat_prefix: str = "http") -> dict[str, object]:
    return {
        "@type": _ANY + http_connection_manager_pb2.HttpConnectionManager.DESCRIPTOR.full_name,
        "stat_prefix": stat_prefix,
        "rds": {"route_config_name": route_name, "config_source": source},
        "http_filters": [_ROUTER],
    }
