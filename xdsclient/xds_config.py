"""One consistent configuration of a data plane target (gRFC A74), and the pure rules by which it is put together."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from envoy.config.route.v3.route_pb2 import RouteConfiguration
from google.protobuf.message import Message

from xdsclient.engine.values import Absent, ResourceKey, Status, StatusCode
from xdscore.schema.walk import unpack

AGGREGATE = "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
_HTTP_CONNECTION_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"

# A generated message; its fields are known by descriptor only.
AnyMessage = Any


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """The endpoints of a cluster that is no aggregate, as a ClusterLoadAssignment, also where they come from DNS;
    ABSENT when there are none.

    `resolution_note`: the errors of the resources that lead to them, or the client's node id where there are none (A88,
    "Handling Ambient Errors").
    """

    endpoints: Message | Absent
    resolution_note: str


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """A cluster. `children`: its endpoints or, where it is an aggregate, the names of the clusters below it that are
    none, in order of priority.
    """

    cluster: Message
    children: EndpointConfig | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class XdsConfig:
    """Everything a data plane needs for one target: the clusters are those that the virtual host names, and all below
    them.
    """

    listener: Message
    route: Message
    virtual_host: Message
    clusters: Mapping[str, ClusterConfig | Status]


def rpc_status(status: Status) -> Status:
    """The status with which RPCs of the data plane fail because a resource has this status: its text, and always
    UNAVAILABLE (A54 and A88, "Propagating Status to Data Plane RPCs").
    """
    return Status(StatusCode.UNAVAILABLE, status.message)


def failure_of(key: ResourceKey, status: Status, node_id: str) -> Status:
    """The status with which RPCs fail because of this error of a resource, worded as gRPC does."""
    return rpc_status(Status(status.code, f"{said_of(key, status)} (node ID:{node_id})"))


def resolution_note(troubles: Iterable[str], node_id: str) -> str:
    """The errors in `troubles` as one text with the node id; the node id alone where there are none (A88)."""
    said = "; ".join(troubles)
    return f"{said} (node ID:{node_id})" if said else f"xDS node ID:{node_id}"


def said_of(key: ResourceKey, status: Status) -> str:
    """A sentence about an error of a resource, worded as in statuses of RPCs."""
    return f"{key.kind.short} resource {key.name}: {status.message}"


def route_source(listener: AnyMessage) -> Message | str:
    """Where a listener has its routes: the RouteConfiguration inside it, or the name of one in RDS; "" when it has
    neither, as a listener for servers.
    """
    manager = unpack(listener.api_listener.api_listener)
    if manager is None or manager.DESCRIPTOR.full_name != _HTTP_CONNECTION_MANAGER:
        return ""
    if manager.HasField("route_config"):
        # As one from RDS is: of the class that whoever watches imports.
        inline: Message = RouteConfiguration.FromString(manager.route_config.SerializeToString())
        return inline
    return str(manager.rds.route_config_name)


def virtual_host_for(route: AnyMessage, authority: str) -> Message | None:
    """The virtual host whose domain matches `authority` best: exactly, then by the longest suffix, then by the longest
    prefix, then by "*". None when no domain matches.
    """
    best: tuple[tuple[int, int], Message | None] = ((0, 0), None)
    for virtual_host in route.virtual_hosts:
        for domain in virtual_host.domains:
            rank = _rank(domain.lower(), authority.lower())
            if rank > best[0]:
                best = (rank, virtual_host)
    return best[1]


def _rank(domain: str, authority: str) -> tuple[int, int]:
    """How well a domain of a virtual host matches the authority, higher is better; (0, 0) when it does not match."""
    if domain == authority:
        return (4, 0)
    if domain == "*":
        return (1, 0)
    stem = len(domain) - 1
    if domain.startswith("*") and len(authority) >= stem and authority.endswith(domain[1:]):
        return (3, stem)
    if domain.endswith("*") and len(authority) >= stem and authority.startswith(domain[:-1]):
        return (2, stem)
    return (0, 0)


def clusters_of(virtual_host: AnyMessage) -> tuple[str, ...]:
    """The clusters that the routes of a virtual host lead to, each once, in order."""
    return tuple(dict.fromkeys(name for route in virtual_host.routes for name in _clusters_of_route(route) if name))


def _clusters_of_route(route: AnyMessage) -> Iterator[str]:
    if route.WhichOneof("action") == "route":
        match route.route.WhichOneof("cluster_specifier"):
            case "cluster":
                yield route.route.cluster
            case "weighted_clusters":
                yield from (each.name for each in route.route.weighted_clusters.clusters)


def aggregate_children(cluster: AnyMessage) -> tuple[str, ...]:
    """The names of the clusters below an aggregate cluster (gRFC A37); empty for any other cluster."""
    if cluster.WhichOneof("cluster_discovery_type") != "cluster_type":
        return ()
    config = unpack(cluster.cluster_type.typed_config)
    if config is None or config.DESCRIPTOR.full_name != AGGREGATE:
        return ()
    return tuple(config.clusters)


def dns_name_of(cluster: AnyMessage) -> tuple[str, int]:
    """Host and port of a LOGICAL_DNS cluster; ("", 0) for any other cluster."""
    if cluster.WhichOneof("cluster_discovery_type") != "type" or cluster.type != cluster.LOGICAL_DNS:
        return "", 0
    for locality in cluster.load_assignment.endpoints:
        for endpoint in locality.lb_endpoints:
            address = endpoint.endpoint.address.socket_address
            return str(address.address), int(address.port_value)
    return "", 0
