"""Sound resources that a real Envoy accepts, to be spoiled (`mutations`): each with much of what people write."""

from dataclasses import dataclass
from typing import Any, Final

from tests.support.manifests import TYPE, Tree

_LB: Final = TYPE + "envoy.extensions.load_balancing_policies."
_HTTP: Final = TYPE + "envoy.extensions.filters.http."
_NETWORK: Final = TYPE + "envoy.extensions.filters.network."
_SOURCE: Final = {"ads": {}, "resource_api_version": "V3"}


@dataclass(frozen=True, slots=True)
class Seed:
    """A sound resource. `section`: where a bootstrap has it; `message`: its type."""

    section: str
    message: str
    tree: Tree

    @property
    def url(self) -> str:
        """The type URL of the resource."""
        return TYPE + self.message


def _socket(address: str, port: int, **more: Any) -> Tree:
    return {"socket_address": {"address": address, "port_value": port, **more}}


def _hosts(*addresses: Tree) -> Tree:
    return {
        "cluster_name": "d",
        "policy": {"overprovisioning_factor": 140, "drop_overloads": [{"category": "x", "drop_percentage": {}}]},
        "endpoints": [
            {
                "locality": {"region": "eu"},
                "priority": 0,
                "load_balancing_weight": 1,
                "lb_endpoints": [{"endpoint": {"address": each}, "load_balancing_weight": 1} for each in addresses],
            }
        ],
    }


def _cluster(**fields: Any) -> Seed:
    tree = {"name": "d", "connect_timeout": "1s", **fields}
    return Seed("clusters", "envoy.config.cluster.v3.Cluster", tree)


_RING = _cluster(
    type="STATIC",
    per_connection_buffer_limit_bytes=32768,
    lb_policy="RING_HASH",
    ring_hash_lb_config={"minimum_ring_size": 8, "maximum_ring_size": 16},
    common_lb_config={"healthy_panic_threshold": {"value": 50}, "update_merge_window": "1s"},
    health_checks=[
        {
            "timeout": "1s",
            "interval": "5s",
            "unhealthy_threshold": 2,
            "healthy_threshold": 2,
            "http_health_check": {
                "path": "/healthz",
                "host": "h",
                "expected_statuses": [{"start": 200, "end": 300}],
                "request_headers_to_add": [{"header": {"key": "x-a", "value": "1"}}],
            },
        }
    ],
    outlier_detection={"consecutive_5xx": 5, "interval": "10s", "max_ejection_percent": 10},
    circuit_breakers={"thresholds": [{"priority": "HIGH", "max_connections": 10, "retry_budget": {}}]},
    load_assignment=_hosts(_socket("127.0.0.1", 8081), _socket("127.0.0.2", 8081)),
    metadata={"filter_metadata": {"envoy.lb": {"a": "b"}}},
)
_EDS = _cluster(
    type="EDS",
    eds_cluster_config={"eds_config": _SOURCE, "service_name": "e"},
    lb_policy="LEAST_REQUEST",
    least_request_lb_config={"choice_count": 2},
    typed_extension_protocol_options={
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": TYPE + "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {"max_concurrent_streams": 100}},
            "common_http_protocol_options": {"idle_timeout": "60s"},
        }
    },
    transport_socket={
        "name": "tls",
        "typed_config": {
            "@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
            "sni": "d.example.com",
            "common_tls_context": {
                "alpn_protocols": ["h2"],
                "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
                "validation_context_sds_secret_config": {"name": "ca", "sds_config": _SOURCE},
            },
        },
    },
)
_LOGICAL = _cluster(
    type="LOGICAL_DNS",
    dns_lookup_family="V4_ONLY",
    dns_refresh_rate="5s",
    lb_policy="MAGLEV",
    maglev_lb_config={"table_size": 65537},
    load_assignment=_hosts(_socket("d.example.com", 443)),
)
_STRICT = _cluster(
    type="STRICT_DNS",
    respect_dns_ttl=True,
    lb_policy="ROUND_ROBIN",
    lb_subset_config={"fallback_policy": "ANY_ENDPOINT", "subset_selectors": [{"keys": ["a"]}]},
    upstream_bind_config={"source_address": {"address": "127.0.0.1", "port_value": 0}},
    upstream_connection_options={"tcp_keepalive": {"keepalive_probes": 3}},
    load_assignment=_hosts(_socket("d.example.com", 443), _socket("e.example.com", 443)),
)
_POLICIES = _cluster(
    cluster_type={
        "name": "envoy.clusters.dns",
        "typed_config": {
            "@type": TYPE + "envoy.extensions.clusters.dns.v3.DnsCluster",
            "dns_refresh_rate": "5s",
            "all_addresses_in_single_endpoint": False,
        },
    },
    load_balancing_policy={
        "policies": [
            {
                "typed_extension_config": {
                    "name": "maglev",
                    "typed_config": {"@type": _LB + "maglev.v3.Maglev", "table_size": 65537},
                }
            }
        ]
    },
    load_assignment=_hosts(_socket("d.example.com", 443)),
)

_ROUTES = [
    {
        "match": {"prefix": "/", "headers": [{"name": "x-a", "string_match": {"exact": "1"}}]},
        "route": {
            "cluster": "c",
            "timeout": "15s",
            "retry_policy": {
                "retry_on": "5xx",
                "num_retries": 2,
                "retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"},
            },
            "hash_policy": [{"header": {"header_name": "x-user"}}],
            "host_rewrite_literal": "h",
            "upgrade_configs": [{"upgrade_type": "websocket"}],
            "rate_limits": [{"actions": [{"generic_key": {"descriptor_value": "v"}}]}],
        },
        "request_headers_to_add": [{"header": {"key": "x-b", "value": "2"}, "append_action": "ADD_IF_ABSENT"}],
        "request_headers_to_remove": ["x-d"],
    },
    {"match": {"safe_regex": {"regex": "/a.*"}}, "direct_response": {"status": 503, "body": {"inline_string": "no"}}},
    {"match": {"path": "/x"}, "redirect": {"host_redirect": "h", "path_redirect": "/y", "response_code": "FOUND"}},
    {
        "match": {"path_separated_prefix": "/w"},
        "route": {"weighted_clusters": {"clusters": [{"name": "c", "weight": 1}]}},
    },
]


def _manager(filters: list[Tree], **fields: Any) -> Tree:
    router = {"name": "router", "typed_config": {"@type": _HTTP + "router.v3.Router"}}
    hosts = [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}]
    return {
        "@type": _NETWORK + "http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "s",
        "route_config": {"name": "r", "virtual_hosts": hosts},
        "http_filters": [*filters, router],
        **fields,
    }


def _listener(chains: list[Tree], **fields: Any) -> Seed:
    tree = {"name": "l", "address": _socket("127.0.0.1", 0), "filter_chains": chains, **fields}
    return Seed("listeners", "envoy.config.listener.v3.Listener", tree)


def _chain(config: Tree, **fields: Any) -> Tree:
    return {"filters": [{"name": "last", "typed_config": config}], **fields}


def _log(text: str) -> Tree:
    file = TYPE + "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"
    return {
        "name": "log",
        "typed_config": {"@type": file, "log_format": {"text_format_source": {"inline_string": text}}},
    }


_WEB = _listener(
    [
        _chain(
            _manager(
                [
                    {
                        "name": "fault",
                        "typed_config": {
                            "@type": _HTTP + "fault.v3.HTTPFault",
                            "abort": {"http_status": 503, "percentage": {"numerator": 1, "denominator": "HUNDRED"}},
                            "delay": {"fixed_delay": "1s", "percentage": {"numerator": 1}},
                        },
                    }
                ],
                codec_type="AUTO",
                max_request_headers_kb=60,
                stream_idle_timeout="5s",
                http2_protocol_options={"max_concurrent_streams": 100, "initial_stream_window_size": 65536},
                upgrade_configs=[{"upgrade_type": "websocket"}, {"upgrade_type": "CONNECT"}],
                access_log=[_log("%START_TIME% %REQ(:PATH)%\n")],
                route_config={
                    "name": "r",
                    "virtual_hosts": [
                        {"name": "v", "domains": ["a.example.com", "*.b.example.com"], "routes": _ROUTES},
                        {"name": "w", "domains": ["*"], "require_tls": "ALL"},
                    ],
                    "response_headers_to_remove": ["x-c"],
                    "response_headers_to_add": [{"header": {"key": "x-e", "value": "%UPSTREAM_CLUSTER%"}}],
                },
            ),
            name="f",
        )
    ],
    per_connection_buffer_limit_bytes=32768,
    listener_filters_timeout="5s",
)
_TLS: Tree = {
    "name": "tls",
    "typed_config": {
        "@type": TYPE + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "require_client_certificate": True,
        "common_tls_context": {
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2", "cipher_suites": ["ECDHE-RSA-AES128-GCM-SHA256"]},
            "tls_certificate_sds_secret_configs": [{"name": "cert", "sds_config": _SOURCE}],
            "alpn_protocols": ["h2", "http/1.1"],
        },
    },
}
_TCP: Tree = {
    "@type": _NETWORK + "tcp_proxy.v3.TcpProxy",
    "stat_prefix": "t",
    "cluster": "c",
    "idle_timeout": "60s",
    "access_log": [_log("%DOWNSTREAM_REMOTE_ADDRESS%\n")],
}
_CHAINS = _listener(
    [
        _chain(
            _TCP,
            name="a",
            transport_socket=_TLS,
            filter_chain_match={
                "server_names": ["a.example.com", "*.b.example.com"],
                "transport_protocol": "tls",
                "application_protocols": ["h2"],
            },
        ),
        _chain(
            {**_TCP, "tunneling_config": {"hostname": "h.example.com:443"}},
            name="b",
            filter_chain_match={
                "destination_port": 443,
                "prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}],
                "source_type": "EXTERNAL",
                "source_ports": [1, 2],
            },
        ),
    ],
    default_filter_chain=_chain(_TCP, name="c"),
    listener_filters=[
        {
            "name": "tls",
            "typed_config": {"@type": TYPE + "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"},
        }
    ],
    additional_addresses=[{"address": _socket("127.0.0.2", 0)}],
    connection_balance_config={"exact_balance": {}},
    enable_reuse_port=True,
)


def _http_filter(kind: str, **fields: Any) -> Tree:
    return {"name": kind.split(".", maxsplit=1)[0], "typed_config": {"@type": _HTTP + kind, **fields}}


_FILTERS = _listener(
    [
        _chain(
            _manager(
                [
                    _http_filter("cors.v3.Cors"),
                    _http_filter(
                        "local_ratelimit.v3.LocalRateLimit",
                        stat_prefix="l",
                        token_bucket={"max_tokens": 10, "tokens_per_fill": 10, "fill_interval": "1s"},
                        filter_enabled={"default_value": {"numerator": 100, "denominator": "HUNDRED"}},
                        response_headers_to_add=[{"header": {"key": "x-l", "value": "1"}}],
                    ),
                    _http_filter(
                        "rbac.v3.RBAC",
                        rules={
                            "action": "ALLOW",
                            "policies": {
                                "p": {
                                    "permissions": [{"header": {"name": "x-a", "string_match": {"exact": "1"}}}],
                                    "principals": [{"remote_ip": {"address_prefix": "10.0.0.0", "prefix_len": 8}}],
                                }
                            },
                        },
                    ),
                    _http_filter(
                        "jwt_authn.v3.JwtAuthentication",
                        providers={
                            "p": {
                                "issuer": "https://i.example.com",
                                "audiences": ["a"],
                                "remote_jwks": {
                                    "http_uri": {"uri": "https://i.example.com/jwks", "cluster": "c", "timeout": "1s"},
                                    "cache_duration": "300s",
                                },
                            }
                        },
                        rules=[{"match": {"prefix": "/"}, "requires": {"provider_name": "p"}}],
                    ),
                    _http_filter(
                        "ext_authz.v3.ExtAuthz",
                        grpc_service={"envoy_grpc": {"cluster_name": "c"}, "timeout": "1s"},
                        transport_api_version="V3",
                        failure_mode_allow=True,
                    ),
                    _http_filter(
                        "header_mutation.v3.HeaderMutation",
                        mutations={
                            "request_mutations": [
                                {"append": {"header": {"key": "x-m", "value": "%REQ(x-n)%"}}},
                                {"remove": "x-o"},
                            ]
                        },
                    ),
                ],
                local_reply_config={
                    "mappers": [
                        {
                            "filter": {
                                "status_code_filter": {
                                    "comparison": {"op": "EQ", "value": {"default_value": 503, "runtime_key": "k"}}
                                }
                            },
                            "status_code": 500,
                            "headers_to_add": [{"header": {"key": "x-r", "value": "1"}}],
                        }
                    ],
                    "body_format": {"json_format": {"status": "%RESPONSE_CODE%"}},
                },
                server_name="s",
                request_timeout="30s",
                use_remote_address=True,
                xff_num_trusted_hops=1,
                common_http_protocol_options={"idle_timeout": "60s", "max_headers_count": 100},
            )
        )
    ]
)
SEEDS: Final[dict[str, Seed]] = {
    "ring": _RING,
    "eds": _EDS,
    "logical": _LOGICAL,
    "strict": _STRICT,
    "policies": _POLICIES,
    "web": _WEB,
    "chains": _CHAINS,
    "filters": _FILTERS,
}
"""The seeds by name."""
