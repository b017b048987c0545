"""Times that are no times: before their beginning, or longer than the clocks of proxies go. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.relations.said import Rule, Said, no_value
from xdscore.schema.walk import AnyMessage

_MAX_S: Final = 9_223_372_036  # in nanoseconds the last that fits 63 bits


def _times(*fields: str) -> Rule:
    """The rule of these fields, each a Duration that Envoy reads when it reads the message."""

    def rule(message: AnyMessage) -> Iterator[Said]:
        for field in fields:
            time = getattr(message, field)
            if time.seconds < 0 or time.nanos < 0:
                yield no_value((field,), "must not be negative")
            elif time.seconds > _MAX_S:
                yield no_value((field,), f"must be at most {_MAX_S:,} s")

    return rule


_HTTP: Final = "envoy.extensions.filters.http."
_NETWORK: Final = "envoy.extensions.filters.network."
RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.cluster.v3.Cluster": _times("connect_timeout", "dns_refresh_rate"),
    "envoy.config.cluster.v3.Cluster.CommonLbConfig": _times("update_merge_window"),
    "envoy.config.cluster.v3.OutlierDetection": _times("interval"),
    "envoy.config.core.v3.GrpcService": _times("timeout"),
    "envoy.config.core.v3.HealthCheck": _times("interval", "timeout"),
    "envoy.config.core.v3.HttpProtocolOptions": _times("idle_timeout"),
    "envoy.config.listener.v3.Listener": _times("listener_filters_timeout"),
    "envoy.config.route.v3.RetryPolicy.RetryBackOff": _times("max_interval"),
    "envoy.config.route.v3.RouteAction": _times("timeout"),
    "envoy.extensions.clusters.dns.v3.DnsCluster": _times("dns_refresh_rate"),
    "envoy.extensions.filters.common.fault.v3.FaultDelay": _times("fixed_delay"),
    _HTTP + "jwt_authn.v3.RemoteJwks": _times("cache_duration"),
    _NETWORK + "http_connection_manager.v3.HttpConnectionManager": _times("request_timeout", "stream_idle_timeout"),
    _NETWORK + "tcp_proxy.v3.TcpProxy": _times("idle_timeout"),
    "envoy.type.v3.TokenBucket": _times("fill_interval"),
}
"""The rules by the full name of the message that each is about."""
