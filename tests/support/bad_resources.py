"""A base of resources that a real Envoy and a real gRPC client accept, and single ones that they refuse.

Each maker takes a name and a number, which makes its content one of a kind: what a client refused is not sent again.
"""

from typing import Any

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import extension_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.buffer.v3 import buffer_pb2  # noqa: F401 - in the pool for Any
from envoy.extensions.filters.http.header_to_metadata.v3 import header_to_metadata_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2  # noqa: F401
from envoy.extensions.transport_sockets.tls.v3 import common_pb2, secret_pb2, tls_pb2  # noqa: F401
from google.protobuf import json_format

_ADS = {"ads": {}, "resource_api_version": "V3"}
_ANY = "type.googleapis.com/"
_BUFFER = _ANY + "envoy.extensions.filters.http.buffer.v3.Buffer"
_ROUTER = {"name": "router", "typed_config": {"@type": _ANY + "envoy.extensions.filters.http.router.v3.Router"}}
_BAD_REGEX = {"safe_regex": {"google_re2": {}, "regex": "("}}


def cluster(name: str, number: int, **more: object) -> Any:
    """A static cluster without endpoints, with these fields besides."""
    fields = {"name": name, "type": "STATIC", "connect_timeout": f"{number + 1}s", **more}
    return json_format.ParseDict(fields, cluster_pb2.Cluster())


def cluster_of_unknown_kind(name: str, number: int) -> Any:
    made = cluster_pb2.Cluster(name=name)
    made.connect_timeout.seconds = number + 1
    made.cluster_type.name = "acme.unknown"
    return made


def cluster_that_times_out_in_the_past(name: str, number: int) -> Any:
    """A cluster that Envoy refuses with a text that names no resource (texts.md F8)."""
    made = cluster_pb2.Cluster(name=name, type=cluster_pb2.Cluster.STATIC)
    made.connect_timeout.seconds = -1 - number
    return made


def cluster_without_eds(name: str, number: int) -> Any:
    return cluster(name, number, type="EDS")


def cluster_with_port_beyond_65535(name: str, number: int) -> Any:
    return cluster(name, number, load_assignment=_load(name, "127.0.0.1", 65_536 + number))


def eds_cluster(name: str, number: int, **more: object) -> Any:
    return cluster(name, number, type="EDS", eds_cluster_config={"eds_config": _ADS}, **more)


def tls_cluster(name: str, secret: str) -> Any:
    """A cluster that gets its trusted authorities over SDS."""
    context = {
        "@type": _ANY + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": {"validation_context_sds_secret_config": {"name": secret, "sds_config": _ADS}},
    }
    return cluster(name, 0, transport_socket={"name": "tls", "typed_config": context})


def endpoints(name: str, number: int) -> Any:
    return _assignment(name, "127.0.0.1", 1_000 + number)


def endpoints_by_host_name(name: str, number: int) -> Any:
    return _assignment(name, f"host-{number}.example", 80)


def endpoints_of_priority_200(name: str, number: int) -> Any:
    made = _assignment(name, "127.0.0.1", 1_000 + number)
    made.endpoints[0].priority = 200
    return made


def endpoints_without_priority_0(name: str, number: int) -> Any:
    made = _assignment(name, "127.0.0.1", 1_000 + number)
    made.endpoints[0].priority = 1
    return made


def endpoints_twice_in_a_locality(name: str, number: int) -> Any:
    made = _assignment(name, "127.0.0.1", 1_000 + number)
    made.endpoints.add().CopyFrom(made.endpoints[0])
    return made


def route(name: str, number: int, clusters: tuple[str, ...] = ("c0",), **more: object) -> Any:
    weighted = {"weighted_clusters": {"clusters": [{"name": each, "weight": 1} for each in clusters]}}
    routes = [{"match": {"prefix": ""}, "route": weighted | {"timeout": f"{number + 1}s"}}]
    hosts = [{"name": "all", "domains": ["*"], "routes": routes}]
    return json_format.ParseDict({"name": name, "virtual_hosts": hosts, **more}, route_pb2.RouteConfiguration())


def route_with_bad_regex(name: str, number: int) -> Any:
    routes = [{"match": _BAD_REGEX, "route": {"cluster": "c0", "timeout": f"{number + 1}s"}}]
    return route(name, number, virtual_hosts=[{"name": "all", "domains": ["*"], "routes": routes}])


def route_without_domains(name: str, number: int) -> Any:
    return route(name, number, virtual_hosts=[{"name": f"none-{number}", "domains": []}])


def route_to_unknown_cluster(name: str, number: int) -> Any:
    return route(name, number, (f"no-such-{number}",), validate_clusters=True)


def route_with_two_wildcards(name: str, number: int) -> Any:
    hosts = [{"name": f"{which}-{number}", "domains": ["*"]} for which in ("one", "two")]
    return route(name, number, virtual_hosts=hosts)


def listener(name: str, number: int, route_name: str, *filters: str) -> Any:
    """An HTTP listener that gets its filters over ECDS; `number` names its statistics."""
    discovered = [
        {"name": each, "config_discovery": {"config_source": _ADS, "type_urls": [_BUFFER]}} for each in filters
    ]
    return _listener(name, _http(number, route_name, *discovered))


def listener_with_unknown_filter(name: str, number: int) -> Any:
    unknown = {"name": f"acme-{number}", "typed_config": {"@type": _ANY + "envoy.config.core.v3.Address"}}
    return _listener(name, _http(number, "r1", unknown))


def listener_with_bad_inline_route(name: str, number: int) -> Any:
    config = json_format.MessageToDict(route_with_bad_regex("inline", number), preserving_proto_field_name=True)
    http = _http(number, "r1")
    del http["rds"]
    return _listener(name, http | {"route_config": config})


def listener_without_address(name: str, number: int) -> Any:
    made = _listener(name, _http(number, "r1"))
    made.ClearField("address")
    return made


def listener_without_stat_prefix(name: str, number: int) -> Any:
    return _listener(name, _http(number, "r1") | {"stat_prefix": "", "server_name": f"s{number}"})


def extension(name: str, number: int) -> Any:
    return _extension(name, {"@type": _BUFFER, "max_request_bytes": number + 1})


def extension_of_another_type(name: str, number: int) -> Any:
    return _extension(name, {"@type": _ANY + "envoy.config.core.v3.DataSource", "inline_string": str(number)})


def extension_without_limit(name: str, number: int) -> Any:
    """A buffer filter without max_request_bytes, which it demands. An unset one of its own number cannot be made, so
    zero is wrapped once.
    """
    return _extension(name, {"@type": _BUFFER, **({"max_request_bytes": 0} if number % 2 else {})})


def secret(name: str, number: int) -> Any:
    """A secret with trusted authorities that are always there: the system's."""
    fields = {"name": name, "validation_context": {"only_verify_leaf_cert_crl": bool(number % 2)}}
    return json_format.ParseDict(fields, secret_pb2.Secret())


def secret_that_is_no_certificate(name: str, number: int) -> Any:
    fields = {"name": name, "validation_context": {"trusted_ca": {"inline_string": f"no certificate {number}"}}}
    return json_format.ParseDict(fields, secret_pb2.Secret())


def api_listener(name: str, number: int, route_name: str) -> Any:
    fields = {"name": name, "api_listener": {"api_listener": _http(number, route_name)}}
    return json_format.ParseDict(fields, listener_pb2.Listener())


def api_listener_without_router(name: str, number: int) -> Any:
    fields = {"name": name, "api_listener": {"api_listener": _http(number, "gr") | {"http_filters": []}}}
    return json_format.ParseDict(fields, listener_pb2.Listener())


def cluster_of_policy_maglev(name: str, number: int) -> Any:
    return eds_cluster(name, number, lb_policy="MAGLEV")


def _listener(name: str, http: dict[str, object]) -> Any:
    fields = {
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": http}]}],
    }
    return json_format.ParseDict(fields, listener_pb2.Listener())


def _http(number: int, route_name: str, *filters: object) -> dict[str, object]:
    return {
        "@type": _ANY + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": f"http-{number}",
        "rds": {"route_config_name": route_name, "config_source": _ADS},
        "http_filters": [*filters, _ROUTER],
    }


def _extension(name: str, config: dict[str, object]) -> Any:
    return json_format.ParseDict({"name": name, "typed_config": config}, extension_pb2.TypedExtensionConfig())


def _load(name: str, address: str, port: int) -> dict[str, object]:
    endpoint = {"endpoint": {"address": {"socket_address": {"address": address, "port_value": port}}}}
    locality = {"locality": {"region": "r"}, "load_balancing_weight": 1, "lb_endpoints": [endpoint]}
    return {"cluster_name": name, "endpoints": [locality]}


def _assignment(name: str, address: str, port: int) -> endpoint_pb2.ClusterLoadAssignment:
    return json_format.ParseDict(_load(name, address, port), endpoint_pb2.ClusterLoadAssignment())
