"""The demo's resources, as an operator would write them. All belong to the owner `demo`."""

OWNER = "demo"
HTTP_CLUSTER, GRPC_CLUSTER = "demo-http", "demo-grpc"
ROUTES, LISTENER = "demo-routes", "demo-http"
BILLING_CLUSTER = "demo-billing"
GRPC_TARGET = "echo.demo"
MISSING_TARGET = "pay.internal"

Tree = dict[str, object]

_TYPE = "type.googleapis.com/"
_ADS: Tree = {"ads": {}, "resource_api_version": "V3"}


def manifests(*, http_backend: int, grpc_backend: int, listener: int) -> list[Tree]:
    """The manifests for one request through Envoy and one call through `xds:///`; the arguments are ports on
    loopback.
    """
    return [
        _cluster(HTTP_CLUSTER),
        _endpoints(HTTP_CLUSTER, http_backend),
        _routes(ROUTES, HTTP_CLUSTER),
        {
            "@type": _TYPE + "envoy.config.listener.v3.Listener",
            "name": LISTENER,
            "address": {"socket_address": {"address": "127.0.0.1", "port_value": listener}},
            "filter_chains": [{"filters": [{"name": "http", "typed_config": _http(ROUTES)}]}],
        },
        _cluster(GRPC_CLUSTER),
        _endpoints(GRPC_CLUSTER, grpc_backend),
        _routes(GRPC_TARGET, GRPC_CLUSTER),
        {
            "@type": _TYPE + "envoy.config.listener.v3.Listener",
            "name": GRPC_TARGET,
            "api_listener": {"api_listener": _http(GRPC_TARGET)},
        },
        billing(checked=False),
    ]


def billing(*, checked: bool) -> Tree:
    """The manifest of a cluster that nothing uses. `checked` by a health checker that Envoy does not have: sound by
    every rule of the field, so only the proxy can refuse it.
    """
    checker: Tree = {
        "timeout": "1s",
        "interval": "5s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "custom_health_check": {"name": "billing.health"},
    }
    return {
        "@type": _TYPE + "envoy.config.cluster.v3.Cluster",
        "name": BILLING_CLUSTER,
        "type": "STATIC",
        "connect_timeout": "1s",
        **({"health_checks": [checker]} if checked else {}),
    }


def _cluster(name: str) -> Tree:
    return {
        "@type": _TYPE + "envoy.config.cluster.v3.Cluster",
        "name": name,
        "type": "EDS",
        "connect_timeout": "1s",
        "eds_cluster_config": {"eds_config": _ADS},
    }


def _endpoints(cluster: str, port: int) -> Tree:
    endpoint = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}
    locality = {
        "locality": {"region": "demo"},
        "load_balancing_weight": 1,
        "lb_endpoints": [{"endpoint": endpoint, "load_balancing_weight": 1}],
    }
    return {
        "@type": _TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": cluster,
        "endpoints": [locality],
    }


def _routes(name: str, cluster: str) -> Tree:
    everything = {"match": {"prefix": ""}, "route": {"cluster": cluster}}
    return {
        "@type": _TYPE + "envoy.config.route.v3.RouteConfiguration",
        "name": name,
        "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [everything]}],
    }


def _http(routes: str) -> Tree:
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": _TYPE + "envoy.extensions.filters.http.router.v3.Router"},
    }
    return {
        "@type": _TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "demo",
        "rds": {"route_config_name": routes, "config_source": _ADS},
        "http_filters": [router],
    }
