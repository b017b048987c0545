"""Which resources a resource needs: names with the place that names them. Called by `parse`; the builder judges them.

Only names that this control plane would be asked for: a config source that is a file or another server is not followed,
nor are the clusters of a config source itself, which Envoy wants in its bootstrap ("must be statically defined"). Walks
through nested Anys.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from xdscore.names import canonical
from xdscore.resource_types import CLUSTER, ENDPOINT, EXTENSION, ROUTE, SECRET, ResourceType
from xdscore.schema.positions import Path
from xdscore.schema.shapes import ANY, SPECIAL
from xdscore.schema.types_registry import kept
from xdscore.schema.walk import AnyMessage, children, unpack

_ROUTE = "envoy.config.route.v3."
_NETWORK = "envoy.extensions.filters.network."
_CLUSTER_FIELDS = (
    _ROUTE + "RouteAction.cluster",
    _ROUTE + "RouteAction.RequestMirrorPolicy.cluster",
    _ROUTE + "WeightedCluster.ClusterWeight.name",
    "envoy.config.core.v3.GrpcService.EnvoyGrpc.cluster_name",
    "envoy.config.core.v3.HttpUri.cluster",
    "envoy.config.trace.v3.DatadogConfig.collector_cluster",
    "envoy.config.trace.v3.LightstepConfig.collector_cluster",
    "envoy.config.trace.v3.ZipkinConfig.collector_cluster",
    "envoy.data.dns.v3.DnsTable.DnsEndpoint.cluster_name",
    "envoy.data.dns.v3.DnsTable.DnsServiceTarget.cluster_name",
    "envoy.extensions.access_loggers.fluentd.v3.FluentdAccessLogConfig.cluster",
    "envoy.extensions.clusters.aggregate.v3.ClusterConfig.clusters",
    "envoy.extensions.filters.http.gcp_authn.v3.GcpAuthnFilterConfig.cluster",
    "envoy.extensions.filters.http.mcp_router.v3.McpRouter.McpCluster.cluster",
    _NETWORK + "dubbo_proxy.v3.RouteAction.cluster",
    _NETWORK + "generic_proxy.action.v3.RouteAction.cluster",
    _NETWORK + "redis_proxy.v3.RedisProxy.PrefixRoutes.Route.ReadCommandPolicy.cluster",
    _NETWORK + "redis_proxy.v3.RedisProxy.PrefixRoutes.Route.RequestMirrorPolicy.cluster",
    _NETWORK + "redis_proxy.v3.RedisProxy.PrefixRoutes.Route.cluster",
    _NETWORK + "tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight.name",
    _NETWORK + "tcp_proxy.v3.TcpProxy.cluster",
    _NETWORK + "thrift_proxy.v3.RouteAction.RequestMirrorPolicy.cluster",
    _NETWORK + "thrift_proxy.v3.RouteAction.cluster",
    _NETWORK + "thrift_proxy.v3.WeightedCluster.ClusterWeight.name",
    "envoy.extensions.filters.udp.udp_proxy.v3.Route.cluster",
    "envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.cluster",
    "envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig.default_cluster",
    "envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction.cluster",
    "envoy.extensions.tracers.fluentd.v3.FluentdConfig.cluster",
)
_NAMED_FIELDS: dict[str, ResourceType] = {
    **dict.fromkeys(_CLUSTER_FIELDS, CLUSTER),
    _ROUTE + "ScopedRouteConfiguration.route_configuration_name": ROUTE,
}


@dataclass(frozen=True, slots=True)
class _Sourced:
    """A message type (by its fields' names) in which the name of a resource of type `kind` stands beside the
    ConfigSource that says where it comes from.
    """

    kind: ResourceType
    name_field: str
    source_field: str


_SOURCED: dict[str, _Sourced] = {
    _NETWORK + "http_connection_manager.v3.Rds": _Sourced(ROUTE, "route_config_name", "config_source"),
    "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig": _Sourced(SECRET, "name", "sds_config"),
    **dict.fromkeys(
        (
            _NETWORK + "http_connection_manager.v3.HttpFilter",
            "envoy.config.listener.v3.Filter",
            "envoy.config.listener.v3.ListenerFilter",
            "envoy.config.cluster.v3.Filter",
            "envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig.SessionFilter",
        ),
        _Sourced(EXTENSION, "name", "config_discovery"),
    ),
}
NAMED_TYPES = frozenset(
    kind.word for kind in (ENDPOINT, *_NAMED_FIELDS.values(), *(sourced.kind for sourced in _SOURCED.values()))
)
"""The words of the types whose resources others name. Clients come to the rest by themselves: by wildcard, or by names
of their own.
"""
_EDS_NAME = CLUSTER.message + ".EdsClusterConfig.service_name"
_CONFIG_SOURCE = "envoy.config.core.v3.ConfigSource"
_NOT_FOLLOWED = (SPECIAL - {ANY}) | {_CONFIG_SOURCE}
_OURS = ("ads", "self")
_XDSTP = "xdstp://"


@dataclass(frozen=True, slots=True)
class Reference:
    """The fact that a resource needs another one, of the type with the word `type`. `pointer` is the JSON pointer of
    the field that names it.
    """

    type: str
    name: str
    pointer: str


Named = tuple[ResourceType, str, Path]


def named_by(message: AnyMessage) -> Iterator[Named]:
    """Every resource that `message` names, by canonical name (H1), with the path of the naming field; repeated if named
    twice.
    """
    return ((kind, canonical(name), path) for kind, name, path in _walk(message, ()))


def kind_named_in(field: FieldDescriptor) -> ResourceType | None:
    """The type of the resources that this field of a message may name; None where it names none."""
    if field.full_name == _EDS_NAME:
        return ENDPOINT
    sourced = _SOURCED.get(field.containing_type.full_name) if field.containing_type is not None else None
    if sourced is not None and field.name == sourced.name_field:
        return sourced.kind
    return _NAMED_FIELDS.get(field.full_name)


def eds_name_of(message: AnyMessage) -> str:
    """The name under which a cluster asks EDS for its endpoints; empty for a cluster that does not, and for any other
    message (protocol.md I3).
    """
    if message.DESCRIPTOR.full_name != CLUSTER.message or not _uses_eds(message):
        return ""
    return canonical(message.eds_cluster_config.service_name or message.name)


def _uses_eds(cluster: AnyMessage) -> bool:
    return bool(cluster.WhichOneof("cluster_discovery_type") == "type" and cluster.type == cluster.EDS)


@kept
def _name_fields(descriptor: Descriptor) -> tuple[tuple[str, bool, ResourceType], ...]:
    """The fields of a message that hold names of resources, each as (field, whether it is a list, the type of what is
    named).
    """
    named = ((field, _NAMED_FIELDS.get(field.full_name)) for field in descriptor.fields)
    return tuple((field.name, field.is_repeated, kind) for field, kind in named if kind is not None)


def _walk(message: AnyMessage, path: Path) -> Iterator[Named]:
    full_name = message.DESCRIPTOR.full_name
    if full_name == ANY:
        inner = unpack(message)
        if inner is not None:
            yield from _walk(inner, (*path, "value") if inner.DESCRIPTOR.full_name in SPECIAL else path)
        return
    if full_name in _NOT_FOLLOWED:
        return
    if full_name in _SOURCED:
        yield from _sourced(message, _SOURCED[full_name], path)
    if full_name == CLUSTER.message and _uses_eds(message):
        yield from _eds(message, path)
    for field, repeated, kind in _name_fields(message.DESCRIPTOR):
        value = getattr(message, field)
        if repeated:
            yield from ((kind, name, (*path, field, index)) for index, name in enumerate(value) if name)
        elif value:
            yield kind, value, (*path, field)
    for below, child in children(message):
        yield from _walk(child, path + below)


def _sourced(message: AnyMessage, sourced: _Sourced, path: Path) -> Iterator[Named]:
    name = getattr(message, sourced.name_field)
    if not name:
        return
    source = _config_source(message, sourced.source_field)
    if name.startswith(_XDSTP) or (source is not None and source.WhichOneof("config_source_specifier") in _OURS):
        yield sourced.kind, name, (*path, sourced.name_field)


def _config_source(message: AnyMessage, field: str) -> AnyMessage | None:
    """The ConfigSource under `field` of a message, or inside the `config_discovery` there; None where there is none."""
    if not message.HasField(field):
        return None
    source = getattr(message, field)
    return source if source.DESCRIPTOR.full_name == _CONFIG_SOURCE else source.config_source


def _eds(cluster: AnyMessage, path: Path) -> Iterator[Named]:
    config = cluster.eds_cluster_config
    name = config.service_name or cluster.name
    if name and (name.startswith(_XDSTP) or config.eds_config.WhichOneof("config_source_specifier") in _OURS):
        place = (*path, "eds_cluster_config", "service_name") if config.service_name else (*path, "name")
        yield ENDPOINT, name, place
