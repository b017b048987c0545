"""The order of filters: the last of a chain is the one that answers or goes on, and no other is of that kind. Pure.

Which kind is of which sort was asked of Envoy 1.40 itself (tests/golden/test_filter_order.py). What is in neither table
is not judged: it may be either by its configuration, or be an operator's own.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from xdscore.schema.positions import Path
from xdscore.schema.relations.said import Said, together
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage


def _kinds(group: str, text: str) -> frozenset[str]:
    return frozenset(f"envoy.extensions.filters.{group}.{each}" for each in text.split())


HTTP_LAST: Final = _kinds("http", "mcp_router.v3.McpRouter router.v3.Router")
"""HTTP filters that are the last of their chain."""
HTTP_BEFORE: Final = _kinds(
    "http",
    """
    a2a.v3.A2a adaptive_concurrency.v3.AdaptiveConcurrency alternate_protocols_cache.v3.FilterConfig
    api_key_auth.v3.ApiKeyAuth aws_request_signing.v3.AwsRequestSigning bandwidth_limit.v3.BandwidthLimit
    basic_auth.v3.BasicAuth buffer.v3.Buffer cache.v3.CacheConfig cdn_loop.v3.CdnLoopConfig composite.v3.Composite
    compressor.v3.Compressor connect_grpc_bridge.v3.FilterConfig cors.v3.Cors csrf.v3.CsrfPolicy
    custom_response.v3.CustomResponse decompressor.v3.Decompressor dynamic_forward_proxy.v3.FilterConfig
    ext_authz.v3.ExtAuthz ext_proc.v3.ExternalProcessor fault.v3.HTTPFault
    file_system_buffer.v3.FileSystemBufferFilterConfig gcp_authn.v3.GcpAuthnFilterConfig
    grpc_http1_bridge.v3.Config grpc_http1_reverse_bridge.v3.FilterConfig grpc_stats.v3.FilterConfig
    grpc_web.v3.GrpcWeb header_mutation.v3.HeaderMutation header_to_metadata.v3.Config health_check.v3.HealthCheck
    ip_tagging.v3.IPTagging json_to_metadata.v3.JsonToMetadata jwt_authn.v3.JwtAuthentication
    local_ratelimit.v3.LocalRateLimit lua.v3.Lua mcp.v3.Mcp oauth2.v3.OAuth2 on_demand.v3.OnDemand
    original_src.v3.OriginalSrc ratelimit.v3.RateLimit rbac.v3.RBAC set_filter_state.v3.Config
    set_metadata.v3.Config stateful_session.v3.StatefulSession
    """,
)
"""HTTP filters that are not."""
NETWORK_LAST: Final = _kinds(
    "network",
    """
    direct_response.v3.Config dubbo_proxy.v3.DubboProxy echo.v3.Echo
    http_connection_manager.v3.HttpConnectionManager redis_proxy.v3.RedisProxy tcp_proxy.v3.TcpProxy
    thrift_proxy.v3.ThriftProxy
    """,
)
"""Network filters that are the last of their chain."""
NETWORK_BEFORE: Final = _kinds(
    "network",
    """
    connection_limit.v3.ConnectionLimit ext_authz.v3.ExtAuthz ext_proc.v3.NetworkExternalProcessor
    local_ratelimit.v3.LocalRateLimit mongo_proxy.v3.MongoProxy ratelimit.v3.RateLimit rbac.v3.RBAC
    set_filter_state.v3.Config sni_cluster.v3.SniCluster sni_dynamic_forward_proxy.v3.FilterConfig
    tcp_bandwidth_limit.v3.TcpBandwidthLimit zookeeper_proxy.v3.ZooKeeperProxy
    """,
)
"""Network filters that are not."""


def order(
    filters: Sequence[AnyMessage], place: Path, *, last: Collection[str], before: Collection[str]
) -> Iterator[Said]:
    """The violations that one of these filters, a list at `place`, must be the last and is not, or is and cannot be.
    `last`, `before`: the messages that configure filters of either sort.
    """
    end = len(filters) - 1
    for index, each in enumerate(filters):
        kind = message_name(each.typed_config.type_url)
        inside: Path = (*place, index, "typed_config")
        if index < end and kind in last:
            yield together(inside, "is of a filter that must be the last of its chain")
        elif index == end and kind in before:
            yield together(inside, "is of a filter that cannot be the last of its chain: it hands on what comes")
