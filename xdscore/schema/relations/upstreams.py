"""What is refused of how a cluster speaks to its hosts: protocols, health checks, subsets. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.relations.said import Rule, Said, together
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage, unpack

_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_QUIC: Final = "envoy.transport_sockets.quic"


def judged(cluster: AnyMessage) -> Iterator[Said]:
    """What is wrong with how a cluster speaks to its hosts. gRPC reads none of it."""
    options = _options(cluster)
    yield from _protocols(cluster, options)
    yield from _health(cluster, options)
    if cluster.lb_subset_config.locality_weight_aware and not cluster.common_lb_config.HasField(
        "locality_weighted_lb_config"
    ):
        yield together(
            ("lb_subset_config", "locality_weight_aware"),
            "needs 'locality_weighted_lb_config' in 'common_lb_config'",
        )


def _options(cluster: AnyMessage) -> AnyMessage | None:
    """The HttpProtocolOptions of a cluster; None where it has none, or none that can be read."""
    if _OPTIONS not in cluster.typed_extension_protocol_options:
        return None
    packed = cluster.typed_extension_protocol_options[_OPTIONS]
    return unpack(packed) if message_name(packed.type_url) == _OPTIONS else None


def _protocols(cluster: AnyMessage, options: AnyMessage | None) -> Iterator[Said]:
    if _OPTIONS in cluster.typed_extension_protocol_options and not (
        cluster.typed_extension_protocol_options[_OPTIONS].type_url
    ):
        yield together(("typed_extension_protocol_options", _OPTIONS), "must have a type")
    if options is None:
        return
    kind = options.WhichOneof("upstream_protocol_options")
    if kind is not None and getattr(options, kind).HasField("http3_protocol_options"):
        # Envoy goes by the name here, not by the type.
        if cluster.transport_socket.name != _QUIC:
            yield together(("transport_socket", "name"), f"must be '{_QUIC}' where hosts are spoken to in HTTP/3")
        elif kind == "auto_config" and not options.auto_config.HasField("alternate_protocols_cache_options"):
            yield together(
                ("typed_extension_protocol_options", _OPTIONS, kind, "alternate_protocols_cache_options"),
                "is needed beside 'http3_protocol_options'",
            )


def _health(cluster: AnyMessage, options: AnyMessage | None) -> Iterator[Said]:
    for index, check in enumerate(cluster.health_checks):
        if len(cluster.health_checks) > 1 and not check.name:
            yield together(("health_checks", index, "name"), "is needed where there are several health checks")
        if check.HasField("grpc_health_check") and not _speaks_http2(cluster, options):
            yield together(
                ("health_checks", index, "grpc_health_check"), "needs a cluster whose hosts are spoken to in HTTP/2"
            )


def _speaks_http2(cluster: AnyMessage, options: AnyMessage | None) -> bool:
    """Whether HTTP/2 is among the protocols of a cluster. Options, where there are any, take the place of its own
    field.
    """
    if _OPTIONS not in cluster.typed_extension_protocol_options:
        return bool(cluster.HasField("http2_protocol_options"))
    if options is None:
        return True  # nobody knows
    kind = options.WhichOneof("upstream_protocol_options")
    return kind in (None, "auto_config") or getattr(options, kind).HasField("http2_protocol_options")


def _selector(selector: AnyMessage) -> Iterator[Said]:
    own, fallback = set(selector.keys), set(selector.fallback_keys_subset)
    if selector.fallback_policy != selector.KEYS_SUBSET:
        if fallback:
            yield together(("fallback_keys_subset",), "is for the 'fallback_policy' KEYS_SUBSET only")
    elif not fallback or not fallback < own:
        yield together(("fallback_keys_subset",), "must have some of 'keys', and not all of them")


RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.cluster.v3.Cluster.LbSubsetConfig.LbSubsetSelector": _selector,
}
"""The rules by the full name of the message that each is about."""
