"""Resources by the thousand: manifests of a plausible fleet, in the proportions of services behind Envoy."""

from collections.abc import Iterator, Mapping

_TYPE = "type.googleapis.com/"
_ADS: Mapping[str, object] = {"ads": {}, "resource_api_version": "V3"}
# Of ten services, so many have routes and endpoints of their own; the rest is what clusters are: SotW clients are sent
# all of them in one response, so an environment of 100,000 resources holds them as a small part.
_PER_CLUSTER = 6


def fleet(resources: int) -> Iterator[dict[str, object]]:
    """The manifests of this number of resources: for each cluster its endpoints, and four routes to it and to the next
    cluster.
    """
    clusters = max(resources // _PER_CLUSTER, 1)
    made = 0
    for number in range(clusters + 1):
        group = (
            cluster(number),
            endpoints(number),
            *(route(number, part, (number, (number + 1) % clusters)) for part in range(_PER_CLUSTER - 2)),
        )
        for manifest in group:
            if made == resources or number == clusters:
                break
            yield manifest
            made += 1
    for number in range(resources - made):
        yield endpoints(number, extra=True)


def cluster(number: int, *, timeout_s: int = 1) -> dict[str, object]:
    """The manifest of the cluster with this number, which gets its endpoints over ADS. `timeout_s`: its connect
    timeout, to make versions of it differ.
    """
    return {
        "@type": _TYPE + "envoy.config.cluster.v3.Cluster",
        "name": cluster_name(number),
        "type": "EDS",
        "eds_cluster_config": {"eds_config": dict(_ADS)},
        "connect_timeout": f"{timeout_s}s",
        "lb_policy": "LEAST_REQUEST",
    }


def cluster_name(number: int) -> str:
    """The name of the cluster with this number."""
    return f"service-{number:06}"


def endpoints(number: int, *, extra: bool = False) -> dict[str, object]:
    """The manifest of the endpoints of the cluster with this number. `extra`: under a name to which no client
    subscribes.
    """
    hosts = [
        {"endpoint": {"address": {"socket_address": {"address": f"10.0.{part}.{number % 250}", "port_value": 8080}}}}
        for part in range(3)
    ]
    return {
        "@type": _TYPE + "envoy.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": f"extra-{number:06}" if extra else cluster_name(number),
        "endpoints": [{"locality": {"zone": "a"}, "load_balancing_weight": 1, "lb_endpoints": hosts}],
    }


def listener(name: str, routes: str) -> dict[str, object]:
    """The manifest of an HTTP listener with these routes."""
    manager = {
        "@type": _TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "rds": {"route_config_name": routes, "config_source": dict(_ADS)},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": _TYPE + "envoy.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    return {
        "@type": _TYPE + "envoy.config.listener.v3.Listener",
        "name": name,
        "address": {"socket_address": {"address": "10.0.0.1", "port_value": 8080}},
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }


def route_name(number: int, part: int) -> str:
    """The name of a route configuration: the cluster with this number has several, of which `part` is one."""
    return f"routes-{number:06}-{part}"


def route(number: int, part: int, clusters: tuple[int, int]) -> dict[str, object]:
    """The manifest of a route configuration with one virtual host, which leads to one of two clusters, by path.
    `number`,
    `part`: those of its name.
    """
    first, second = (cluster_name(each) for each in clusters)
    return {
        "@type": _TYPE + "envoy.config.route.v3.RouteConfiguration",
        "name": route_name(number, part),
        "virtual_hosts": [
            {
                "name": "all",
                "domains": [f"{part}.{number}.example.com"],
                "routes": [
                    {"match": {"prefix": "/v1/"}, "route": {"cluster": first, "timeout": "5s"}},
                    {"match": {"prefix": "/"}, "route": {"cluster": second}},
                ],
            }
        ],
    }
