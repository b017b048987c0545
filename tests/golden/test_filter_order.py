"""Which filters are the last of their chain, and which cannot be: the tables of ours, asked of a real Envoy."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import TYPE, Tree
from tests.support.mutations import Mutation, envoy_refusal
from tests.support.seeds import SEEDS
from xdscore.schema import Manifest, Refused, parse
from xdscore.schema.relations.order import HTTP_BEFORE, HTTP_LAST, NETWORK_BEFORE, NETWORK_LAST

_SERVICE = {"envoy_grpc": {"cluster_name": "c"}}
_LIMITS: Tree = {"domain": "d", "rate_limit_service": {"grpc_service": _SERVICE, "transport_api_version": "V3"}}
_GRADIENT = {
    "concurrency_limit_params": {"concurrency_update_interval": "1s"},
    "min_rtt_calc_params": {"interval": "60s"},
}
_CODER = "envoy.extensions.compression.gzip."


def _coder(kind: str) -> Tree:
    return {"name": "gzip", "typed_config": {"@type": TYPE + _CODER + kind}}


# What filters need to be made at all: Envoy looks at their order afterwards.
NEEDS: dict[str, Tree] = {
    "http.adaptive_concurrency.v3.AdaptiveConcurrency": {"gradient_controller_config": _GRADIENT},
    "http.aws_request_signing.v3.AwsRequestSigning": {"service_name": "s3", "region": "r"},
    "http.bandwidth_limit.v3.BandwidthLimit": {"stat_prefix": "s"},
    "http.basic_auth.v3.BasicAuth": {"users": {"inline_string": "u:{SHA}tESsBmE/yNY3lb6a0L6vVQEZNqw="}},
    "http.buffer.v3.Buffer": {"max_request_bytes": 10},
    "http.cache.v3.CacheConfig": {"disabled": True},
    "http.cdn_loop.v3.CdnLoopConfig": {"cdn_id": "x"},
    "http.compressor.v3.Compressor": {"compressor_library": _coder("compressor.v3.Gzip")},
    "http.csrf.v3.CsrfPolicy": {"filter_enabled": {"default_value": {"numerator": 1}}},
    "http.decompressor.v3.Decompressor": {"decompressor_library": _coder("decompressor.v3.Gzip")},
    "http.ext_proc.v3.ExternalProcessor": {"grpc_service": _SERVICE},
    "http.grpc_http1_reverse_bridge.v3.FilterConfig": {"content_type": "a/b"},
    "http.health_check.v3.HealthCheck": {"pass_through_mode": True},
    "http.ip_tagging.v3.IPTagging": {
        "ip_tags": [{"ip_tag_name": "t", "ip_list": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]}]
    },
    "http.local_ratelimit.v3.LocalRateLimit": {"stat_prefix": "s"},
    "http.ratelimit.v3.RateLimit": _LIMITS,
    "network.connection_limit.v3.ConnectionLimit": {"stat_prefix": "s", "max_connections": 1},
    "network.ext_authz.v3.ExtAuthz": {"stat_prefix": "s", "grpc_service": _SERVICE, "transport_api_version": "V3"},
    "network.ext_proc.v3.NetworkExternalProcessor": {"stat_prefix": "s", "grpc_service": _SERVICE},
    "network.local_ratelimit.v3.LocalRateLimit": {
        "stat_prefix": "s",
        "token_bucket": {"max_tokens": 1, "fill_interval": "1s"},
    },
    "network.ratelimit.v3.RateLimit": {
        "stat_prefix": "s",
        "descriptors": [{"entries": [{"key": "a", "value": "b"}]}],
        **_LIMITS,
    },
    "network.redis_proxy.v3.RedisProxy": {
        "stat_prefix": "s",
        "settings": {"op_timeout": "1s"},
        "prefix_routes": {"catch_all_route": {"cluster": "c"}},
    },
    "network.sni_dynamic_forward_proxy.v3.FilterConfig": {"dns_cache_config": {"name": "x"}},
    "network.tcp_proxy.v3.TcpProxy": {"stat_prefix": "s", "cluster": "c"},
    "network.http_connection_manager.v3.HttpConnectionManager": {"stat_prefix": "s", "route_config": {"name": "r"}},
    **{
        f"network.{each}": {"stat_prefix": "s"}
        for each in (
            "dubbo_proxy.v3.DubboProxy",
            "mongo_proxy.v3.MongoProxy",
            "rbac.v3.RBAC",
            "tcp_bandwidth_limit.v3.TcpBandwidthLimit",
            "thrift_proxy.v3.ThriftProxy",
            "zookeeper_proxy.v3.ZooKeeperProxy",
        )
    },
}


def _filter(kind: str) -> Tree:
    needs = NEEDS.get(kind.removeprefix("envoy.extensions.filters."), {})
    return {"name": kind, "typed_config": {"@type": TYPE + kind, **needs}}


def _listener(network: list[Tree]) -> Mutation:
    tree: Any = {**SEEDS["web"].tree, "filter_chains": [{"filters": network}]}
    return Mutation(SEEDS["web"], f"{network}", tree)


def _of_http(*kinds: str) -> Mutation:
    manager: Any = _filter("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager")
    manager["typed_config"]["http_filters"] = list(map(_filter, kinds))
    return _listener([manager])


def _of_network(*kinds: str) -> Mutation:
    return _listener(list(map(_filter, kinds)))


def _said(mutation: Mutation) -> bool:
    found = parse(Manifest(mutation.manifest))
    return isinstance(found, Refused) and any("of its chain" in each.detail for each in found.findings)


ROUTER = "envoy.extensions.filters.http.router.v3.Router"
ECHO = "envoy.extensions.filters.network.echo.v3.Echo"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(HTTP_BEFORE | NETWORK_BEFORE))
def test_filter__that_cannot_be_the_last__envoy_says_so_too(kind: str, tmp_path: Path) -> None:
    mutation = _of_http(kind) if kind in HTTP_BEFORE else _of_network(kind)

    assert _said(mutation)
    assert "non-terminal filter named" in envoy_refusal(mutation, (), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(HTTP_LAST | NETWORK_LAST))
def test_filter__that_must_be_the_last__envoy_says_so_too(kind: str, tmp_path: Path) -> None:
    before, alone = (
        (_of_http(kind, ROUTER), _of_http(kind)) if kind in HTTP_LAST else (_of_network(kind, ECHO), _of_network(kind))
    )

    assert _said(before)
    assert "must be the last filter" in envoy_refusal(before, (), tmp_path)
    assert not _said(alone)
    assert envoy_refusal(alone, (), tmp_path) == ""


@pytest.mark.slow
def test_filter__by_discovery__may_be_the_last_for_all_that_is_known(tmp_path: Path) -> None:
    manager = _of_http(ROUTER)
    source = {"config_source": {"ads": {}, "resource_api_version": "V3"}, "type_urls": [TYPE + ROUTER]}
    chain: Any = manager.tree["filter_chains"]
    chain[0]["filters"][0]["typed_config"]["http_filters"] = [{"name": "x", "config_discovery": source}]

    assert not _said(manager)
    assert envoy_refusal(manager, (), tmp_path) == ""
