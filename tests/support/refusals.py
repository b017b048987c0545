"""Services that have everything they need, and of each type one resource that a client refuses although every rule for
fields allows it: what a new NACK begins with.
"""

from dataclasses import dataclass
from typing import Any, Final

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import config_source_pb2
from envoy.extensions.filters.http.buffer.v3 import buffer_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from google.protobuf import json_format
from google.protobuf.message import Message

from tests.support.xds_resources import api_listener, assignment, eds_cluster, http_listener, route
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType

KINDS: Final = (LISTENER, ROUTE, CLUSTER, ENDPOINT)
"""The types that both gRPC and Envoy read, in the order in which a call meets them."""
_UNKNOWN_CHECKER: Final = {
    "timeout": "1s",
    "interval": "5s",
    "unhealthy_threshold": 1,
    "healthy_threshold": 1,
    "custom_health_check": {"name": "no.such.checker"},
}


@dataclass(frozen=True, slots=True)
class Service:
    """A listener, a route, a cluster and its endpoints, all of one name, which lead to a port of this machine. Envoy
    opens `port`; a gRPC client calls `xds:///name`, and `port` is 0.
    """

    name: str
    backend: int
    port: int = 0

    @property
    def target(self) -> str:
        """The address that steady load calls."""
        return f"http://127.0.0.1:{self.port}/" if self.port else f"xds:///{self.name}"

    def sound(self, kind: ResourceType) -> Any:
        """The service's resource of this type, which clients accept."""
        if kind is LISTENER:
            return http_listener(self.name, self.port, self.name) if self.port else api_listener(self.name, self.name)
        if kind is ROUTE:
            return route(self.name, self.name)
        return eds_cluster(self.name) if kind is CLUSTER else assignment(self.name, self.backend)

    def refused(self, kind: ResourceType) -> Any:
        """The service's resource of this type, changed so that Envoy, or gRPC for Python and Node, refuses it."""
        resource = self.sound(kind)
        (_REFUSED_BY_ENVOY if self.port else _REFUSED_BY_GRPC)[kind](resource)
        return resource


def manifest(resource: Message) -> dict[str, object]:
    """The manifest of a resource, as REST takes it."""
    tree: dict[str, object] = json_format.MessageToDict(resource, preserving_proto_field_name=True)
    return {"@type": f"type.googleapis.com/{resource.DESCRIPTOR.full_name}", **tree}


def _unknown_filter(listener: Any) -> None:
    """Put into the listener, before its filters, one whose type is that of no filter."""
    found = listener.filter_chains[0].filters[0].typed_config
    _change_http(found, config_source_pb2.AggregatedConfigSource())


def _unknown_variable(route_configuration: Any) -> None:
    added = route_configuration.request_headers_to_add.add()
    added.header.key, added.header.value = "x-refused", "%NO_SUCH_VARIABLE%"


def _unknown_checker(cluster: Any) -> None:
    json_format.ParseDict({"health_checks": [_UNKNOWN_CHECKER]}, cluster)


def _host_name(load_assignment: Any) -> None:
    load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address = "host.example"


def _filter_of_envoy_s(listener: Any) -> None:
    limit = buffer_pb2.Buffer()
    limit.max_request_bytes.value = 1
    _change_http(listener.api_listener.api_listener, limit)


def _change_http(packed: Any, filter_config: Message) -> None:
    """Put a filter before the others of a packed connection manager."""
    http = http_connection_manager_pb2.HttpConnectionManager()
    packed.Unpack(http)
    others = list(http.http_filters)
    del http.http_filters[:]
    http.http_filters.add(name="first").typed_config.Pack(filter_config)
    http.http_filters.extend(others)
    packed.Pack(http)


def _star_in_the_middle(route_configuration: Any) -> None:
    route_configuration.virtual_hosts[0].domains[0] = "a*b"


def _maglev(cluster: Any) -> None:
    cluster.lb_policy = cluster_pb2.Cluster.MAGLEV


def _no_priority_0(load_assignment: Any) -> None:
    load_assignment.endpoints[0].priority = 3


_REFUSED_BY_GRPC: Final = {
    LISTENER: _filter_of_envoy_s,
    ROUTE: _star_in_the_middle,
    CLUSTER: _maglev,
    ENDPOINT: _no_priority_0,
}
_REFUSED_BY_ENVOY: Final = {
    LISTENER: _unknown_filter,
    ROUTE: _unknown_variable,
    CLUSTER: _unknown_checker,
    ENDPOINT: _host_name,
}
