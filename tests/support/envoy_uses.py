"""What an Envoy has to have to ask for each type of resource: bootstraps and listeners that use it."""

from typing import Any

from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_components_pb2, route_pb2, scoped_route_pb2
from envoy.extensions.filters.http.on_demand.v3 import on_demand_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2
from google.protobuf import json_format

from tests.support.xds_resources import ADS, Source
from xdscore.resource_types import TYPE_URL_PREFIX

Tree = dict[str, Any]

ROUTER: Tree = {"name": "router", "typed_config": {"@type": TYPE_URL_PREFIX + router_pb2.Router.DESCRIPTOR.full_name}}
TENANT = "x-tenant"
"""The header that chooses the scope of `scoped_routes`."""


def on_demand(source: Source | None = None, *, timeout: str = "5s") -> Tree:
    """The filter that makes a request wait for a virtual host, or with `source` for a cluster, that is not there."""
    clusters = {"odcds": {"source": dict(source), "timeout": timeout}} if source is not None else {}
    typed = {"@type": TYPE_URL_PREFIX + on_demand_pb2.OnDemand.DESCRIPTOR.full_name, **clusters}
    return {"name": "envoy.filters.http.on_demand", "typed_config": typed}


def scoped_routes(source: Source, **more: Any) -> Tree:
    """How an HTTP connection manager takes its routes by scope, which the header TENANT chooses."""
    extractor = {"name": TENANT, "element_separator": ";", "index": 0}
    return {
        "scoped_routes": {
            "name": "scopes",
            "scope_key_builder": {"fragments": [{"header_value_extractor": extractor}]},
            "rds_config_source": dict(source),
            "scoped_rds": {"scoped_rds_config_source": dict(source), **more},
        }
    }


def manager(routes: Tree, *filters: Tree) -> Tree:
    """An HTTP connection manager with these routes, and these filters before the router."""
    return {
        "@type": TYPE_URL_PREFIX + http_connection_manager_pb2.HttpConnectionManager.DESCRIPTOR.full_name,
        "stat_prefix": "http",
        **routes,
        "http_filters": [*filters, ROUTER],
    }


def listening(name: str, port: int, connection: Tree, *, bound: bool = True, secret: Tree | None = None) -> Tree:
    """A listener on this port of the loopback address, as JSON; over TLS with the certificate that `secret` names."""
    chain: Tree = {"filters": [{"name": "http", "typed_config": connection}]}
    if secret is not None:
        context = {"common_tls_context": {"tls_certificate_sds_secret_configs": [secret]}}
        tls = {"@type": TYPE_URL_PREFIX + tls_pb2.DownstreamTlsContext.DESCRIPTOR.full_name, **context}
        chain["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": tls}
    return {
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [chain],
        "bind_to_port": bound,
    }


def as_listener(tree: Tree) -> listener_pb2.Listener:
    """The listener that this JSON says."""
    return json_format.ParseDict(tree, listener_pb2.Listener())


def scope(name: str, key: str, route_name: str, **more: Any) -> scoped_route_pb2.ScopedRouteConfiguration:
    """A scope: requests with this key take the routes of this name."""
    fields = {"name": name, "route_configuration_name": route_name, "key": {"fragments": [{"string_key": key}]}, **more}
    return json_format.ParseDict(fields, scoped_route_pb2.ScopedRouteConfiguration())


def answering(name: str, text: str) -> route_pb2.RouteConfiguration:
    """A route configuration that answers every request with this text by itself."""
    fields = {"name": name, "virtual_hosts": [host("all", text, "*")]}
    return json_format.ParseDict(fields, route_pb2.RouteConfiguration())


def host(name: str, text: str, *domains: str) -> Tree:
    """A virtual host of these domains that answers every request with this text by itself, as JSON."""
    direct = {"match": {"prefix": ""}, "direct_response": {"status": 200, "body": {"inline_string": text}}}
    return {"name": name, "domains": list(domains), "routes": [direct]}


def virtual_host(tree: Tree) -> route_components_pb2.VirtualHost:
    """The virtual host that this JSON says."""
    return json_format.ParseDict(tree, route_components_pb2.VirtualHost())


def on_demand_route(name: str, source: Source = ADS) -> route_pb2.RouteConfiguration:
    """A route configuration that takes its virtual hosts on demand (VHDS)."""
    fields = {"name": name, "vhds": {"config_source": dict(source)}}
    return json_format.ParseDict(fields, route_pb2.RouteConfiguration())
