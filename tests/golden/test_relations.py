"""What we say of fields that do not go together, a real Envoy says, too: both ways, one small change of a sound
resource at a time. What none of our rules refuses is in `SOUND`, each beside something refused that looks like it.
"""

from copy import deepcopy
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import TYPE
from tests.support.mutations import Mutation, envoy_refusal
from tests.support.seeds import SEEDS
from xdscore.findings import Severity
from xdscore.schema import Manifest, parse
from xdscore.schema.relations.formats import COMMANDS

_MANAGER = "filter_chains/0/filters/0/typed_config/"
_HOST = _MANAGER + "route_config/virtual_hosts/0/"
_ROUTE = _HOST + "routes/0/"
_CHAIN = "filter_chains/0/filter_chain_match"
_MATCHER = {
    "on_no_match": {
        "action": {"name": "a", "typed_config": {"@type": TYPE + "google.protobuf.StringValue", "value": "a"}}
    }
}
_HOSTS = "load_assignment/endpoints/0/lb_endpoints/"
_PERMISSIONS = _MANAGER + "http_filters/2/typed_config/rules/policies/p/permissions"
_ROUTING = {
    "on_no_match": {
        "action": {
            "name": "a",
            "typed_config": {
                "@type": TYPE + "envoy.config.route.v3.Route",
                "match": {"prefix": "/"},
                "route": {"cluster": "c"},
            },
        }
    }
}
_NO_PORTS: list[dict[str, int]] = [{}, {"start": 80, "end": 80}, {"start": -1, "end": 80}, {"start": 1, "end": 65_537}]
_POLICY = _MANAGER + "http_filters/2/typed_config/rules/policies/p/"
_LIMIT = _MANAGER + "http_filters/1/typed_config/"
_TCP = "filter_chains/1/filters/0/typed_config/"
_TLV = {"type": 1, "value": "eA=="}
_TEXT = {"text_format_source": {"inline_string": "%PROTOCOL%"}}
_CERTIFICATES = "filter_chains/0/transport_socket/typed_config/common_tls_context/tls_certificate_sds_secret_configs"
_SOURCE = "eds_cluster_config/eds_config"
_SERVICE = {"envoy_grpc": {"cluster_name": "c"}}
_NO_SOURCES: list[dict[str, Any]] = [
    {},
    {"cluster_names": ["c"]},
    {"api_type": "REST"},
    {"api_type": "REST", "cluster_names": ["c"]},
    {"api_type": "REST", "cluster_names": ["c", "c"], "refresh_delay": "5s"},
    {"api_type": "REST", "grpc_services": [_SERVICE], "refresh_delay": "5s"},
    {"api_type": "GRPC", "cluster_names": ["c"]},
    {"api_type": "GRPC", "grpc_services": [_SERVICE, _SERVICE]},
    {"api_type": "GRPC", "grpc_services": [_SERVICE], "transport_api_version": "V2"},
]
_OPTIONS = "typed_extension_protocol_options"
_QUIC = "envoy.transport_sockets.quic"
_GRPC_CHECK: dict[str, Any] = {
    "timeout": "1s",
    "interval": "1s",
    "unhealthy_threshold": 1,
    "healthy_threshold": 1,
    "grpc_health_check": {},
}
_NO_SELECTORS: list[dict[str, Any]] = [
    {"keys": ["a"], "fallback_policy": "KEYS_SUBSET"},
    {"keys": ["a"], "fallback_policy": "KEYS_SUBSET", "fallback_keys_subset": ["a"]},
    {"keys": ["a"], "fallback_policy": "KEYS_SUBSET", "fallback_keys_subset": ["c"]},
    {"keys": ["a", "b"], "fallback_keys_subset": ["a"]},
]
_UDP = {"socket_address": {"protocol": "UDP", "address": "127.0.0.1", "port_value": 0}}
_ENDPOINT = {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 80}}}}


class Absent(Enum):
    """What stands for a value that is taken out; as an enum it reads alike in the names of tests everywhere."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


def _header(name: str, value: str = "v", **more: Any) -> list[dict[str, Any]]:
    return [{"header": {"key": name, "value": value}, **more}]


def _log(**fields: Any) -> list[dict[str, Any]]:
    kind = TYPE + "envoy.extensions.access_loggers.file.v3.FileAccessLog"
    return [{"name": "log", "typed_config": {"@type": kind, "path": "/dev/null", **fields}}]


def _upgrades(*kinds: str) -> list[dict[str, Any]]:
    return [{"upgrade_type": kind} for kind in kinds]


def _maglev(size: int, *more: str) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"@type": TYPE + "envoy.extensions.load_balancing_policies.maglev.v3.Maglev", "table_size": size},
        *({"@type": f"{TYPE}envoy.extensions.load_balancing_policies.{each}"} for each in more),
    ]
    return {"policies": [{"typed_extension_config": {"name": "p", "typed_config": each}} for each in kinds]}


def _prefix(address: str, length: int) -> dict[str, Any]:
    return {"address_prefix": address, "prefix_len": length}


def _bucket(interval: str) -> dict[str, Any]:
    return {"max_tokens": 1, "fill_interval": interval}


def _api(**fields: Any) -> dict[str, Any]:
    return {"resource_api_version": "V3", "api_config_source": {"transport_api_version": "V3", **fields}}


def _protocols(kind: str, **fields: Any) -> dict[str, Any]:
    name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {name: {"@type": TYPE + name, kind: fields}}


_WITHOUT_HTTP2 = [
    _protocols("explicit_http_config", http_protocol_options={}),
    _protocols("use_downstream_protocol_config"),
]
_WITH_HTTP2 = [_protocols("use_downstream_protocol_config", http2_protocol_options={}), _protocols("auto_config")]

# A seed, and what is put where in it.
Change = tuple[str, dict[str, Any]]
REFUSED: list[Change] = [
    ("web", {_HOST + "domains": ["a.com", "A.com"]}),
    ("web", {_HOST + "domains": ["*"]}),  # the second virtual host has it
    *(("web", {_ROUTE + "request_headers_to_add": _header(name)}) for name in (":path", ":x", "host", "Host")),
    ("web", {_HOST + "response_headers_to_add": _header(":status")}),
    ("web", {_ROUTE + "request_headers_to_remove": ["HOST"]}),
    ("web", {_ROUTE + "request_headers_to_add": _header("x", append=True, append_action="ADD_IF_ABSENT")}),
    *(
        ("web", {_ROUTE + "request_headers_to_add": _header("x", value)})
        for value in (
            *("%NOPE%", "%", "100%", "%%%", "%protocol%", "%REQ%", "%REQ()%", "%REQ(a?b?c)%", "%REQ(a b)%"),
            *("%PROTOCOL(a)%", "%PROTOCOL:3%", "%REQ(x):%", "%START_TIME%x%", "%CEL(((%"),
        )
    ),
    ("web", {_MANAGER + "access_log": _log(format="%NOPE%")}),
    ("web", {_MANAGER + "access_log": _log(log_format={"json_format": {"a": {"b": ["%NOPE%"]}}})}),
    ("web", {_MANAGER + "access_log": [{"name": "log"}]}),
    ("web", {_ROUTE + "route/host_rewrite_literal": ABSENT, _ROUTE + "route/host_rewrite": "%NOPE%"}),
    ("web", {_MANAGER + "tracing": {"operation": "%NOPE%"}}),
    ("web", {_MANAGER + "upgrade_configs": _upgrades("websocket", "WebSocket")}),
    ("web", {_ROUTE + "route/upgrade_configs": _upgrades("a", "A")}),
    ("web", {"address/socket_address/address": "localhost"}),
    ("web", {"address/socket_address": {"address": "0.0.0.0", "port_value": 0, "ipv4_compat": True}}),  # noqa: S104
    ("web", {"additional_addresses": [{"address": {"socket_address": {"address": "a.com", "port_value": 0}}}]}),
    ("web", {"address": ABSENT}),
    ("web", {"filter_chains": []}),
    ("web", {"filter_chains": [], "bind_to_port": False}),
    ("web", {"address": _UDP}),
    ("web", {"address": _UDP, "filter_chains": [], "udp_listener_config": {"quic_options": {}}}),
    ("web", {"address/socket_address/resolver_name": "of.my.own"}),
    ("web", {"address/socket_address": {"address": "127.0.0.1", "named_port": "http"}}),
    ("ring", {_HOSTS + "0/endpoint/address/socket_address/resolver_name": "of.my.own"}),
    ("ring", {_HOSTS + "0/endpoint/address/socket_address": {"address": "127.0.0.1", "named_port": "http"}}),
    ("web", {_HOST + "matcher": _ROUTING}),
    ("web", {"api_listener": {}}),
    ("web", {"api_listener": {}, "filter_chains": ABSENT}),
    ("web", {_MANAGER + "codec_type": "HTTP3"}),
    ("web", {_MANAGER + "access_log/0/filter": {"extension_filter": {"name": "x"}}}),
    *(("filters", {_PERMISSIONS: [{"destination_port_range": each}]}) for each in _NO_PORTS),
    ("filters", {_POLICY + "condition": {}}),
    ("filters", {_LIMIT + "token_bucket/fill_interval": "0.049s"}),
    (
        "filters",
        {_LIMIT + "descriptors": [{"entries": [{"key": "a", "value": "b"}], "token_bucket": _bucket("0.01s")}]},
    ),
    ("filters", {_MANAGER + "http_filters/4/typed_config/transport_api_version": "V2"}),
    ("web", {_MANAGER + "http_filters/1/disabled": True}),
    ("web", {_ROUTE + "route/cluster": ABSENT, _ROUTE + "route/cluster_specifier_plugin": "x"}),
    ("web", {_MANAGER + "route_config": ABSENT, _MANAGER + "rds": {"route_config_name": "x"}}),
    ("web", {"additional_addresses": [{}]}),
    ("web", {"listener_filters": [{"name": "envoy.filters.listener.tls_inspector"}]}),
    ("chains", {"additional_addresses/0/address/socket_address/protocol": "UDP"}),
    ("chains", {_TCP + "tunneling_config": {"hostname": "h", "post_path": "/x"}}),
    *(("chains", {_TCP + "proxy_protocol_tlvs": [each]}) for each in ({"type": 1}, {**_TLV, "format_string": _TEXT})),
    ("chains", {_CERTIFICATES: ABSENT}),
    ("chains", {_CERTIFICATES + "/0/sds_config": {"self": {}, "resource_api_version": "V3"}}),
    ("eds", {"transport_socket": {"name": "envoy.transport_sockets.raw_buffer"}}),
    *(("eds", {_SOURCE: _api(**each)}) for each in _NO_SOURCES),
    ("eds", {_OPTIONS: _protocols("explicit_http_config", http3_protocol_options={})}),
    ("eds", {_OPTIONS: _protocols("auto_config", http3_protocol_options={}), "transport_socket/name": _QUIC}),
    *(("eds", {_OPTIONS: each, "health_checks": [_GRPC_CHECK]}) for each in (ABSENT, *_WITHOUT_HTTP2)),
    ("ring", {"health_checks": [_GRPC_CHECK, {**_GRPC_CHECK, "name": "x"}], "http2_protocol_options": {}}),
    *(
        (seed, {"load_assignment/policy/drop_overloads": [{"category": "a"}, {"category": "b"}]})
        for seed in ("ring", "strict", "logical", "policies")
    ),
    ("ring", {"load_assignment/endpoints/0/leds_cluster_locality_config": {}}),
    ("ring", {_HOSTS + "0/endpoint/additional_addresses": [{}]}),
    ("ring", {_HOSTS + "0/endpoint/address/socket_address/network_namespace_filepath": "x"}),
    ("policies", {_HOSTS + "0/endpoint/address/socket_address/resolver_name": "envoy.ip"}),
    ("policies", {"eds_cluster_config": {}}),
    ("policies", {"lb_subset_config": {}}),
    ("policies", {"cluster_type/typed_config": {}}),
    ("ring", {"lb_subset_config": {"locality_weight_aware": True}}),
    *(("ring", {"lb_subset_config": {"subset_selectors": [each]}}) for each in _NO_SELECTORS),
    *(("ring", {f"health_checks/0/{each}": "315576000000s"}) for each in ("interval", "timeout")),
    ("chains", {"filter_chains/1/filter_chain_match": ABSENT, _CHAIN: ABSENT}),
    *(("chains", {_CHAIN: {"server_names": [name]}}) for name in ("a*.com", "*", "a.*", "*a.com", "**.a")),
    ("chains", {_CHAIN: {"server_names": ["a", "A"]}}),
    (
        "chains",
        {_CHAIN: {"server_names": ["*.a.com"]}, "filter_chains/1/filter_chain_match": {"server_names": [".a.com"]}},
    ),
    ("chains", {_CHAIN: {"prefix_ranges": [_prefix("10.0.0.1", 8), _prefix("10.0.0.2", 8)]}}),
    ("chains", {_CHAIN: {"suffix_len": 1}}),
    ("chains", {"filter_chain_matcher": _MATCHER, "filter_chains/1/name": "a"}),
    ("chains", {"filter_chain_matcher": _MATCHER, "filter_chains/1/name": ABSENT}),
    ("eds", {"eds_cluster_config": ABSENT}),
    ("eds", {"eds_cluster_config/eds_config": ABSENT}),
    *(("logical", {"maglev_lb_config/table_size": size}) for size in (0, 4, 65536)),
    ("policies", {"load_balancing_policy": _maglev(4)}),
    ("logical", {"load_assignment/endpoints/0/lb_endpoints": [_ENDPOINT, _ENDPOINT]}),
    ("logical", {"load_assignment/endpoints": []}),
    ("policies", {"cluster_type/typed_config/all_addresses_in_single_endpoint": True, "load_assignment/endpoints": []}),
    ("strict", {"lb_policy": "CLUSTER_PROVIDED"}),
    ("strict", {"type": "ORIGINAL_DST", "load_assignment": ABSENT}),
    ("filters", {_MANAGER + "http_filters/3/typed_config/rules/0/requires/provider_name": "q"}),
    ("filters", {_MANAGER + "request_timeout": "-1s"}),
]
SOUND: list[Change] = [
    *((name, {}) for name in SEEDS),
    ("web", {_HOST + "domains": ["a.com", "b.com", "*.a.com"]}),
    ("web", {_ROUTE + "request_headers_to_add": _header("x", append=True, append_action="APPEND_IF_EXISTS_OR_ADD")}),
    *(
        ("web", {_ROUTE + "request_headers_to_add": _header("x", value)})
        for value in ("", "%%", "a%%b", "%REQ(x?y):3%", "%PROTOCOL()%", "%START_TIME(%Y-%m)%", "%START_TIME(a(b)c)%")
    ),
    ("web", {_ROUTE + "request_headers_to_add": _header("x", '%UPSTREAM_METADATA(["a","b"])%')}),
    ("web", {_ROUTE + "route/host_rewrite_literal": "%NOPE%"}),
    ("web", {_ROUTE + "decorator": {"operation": "%NOPE%"}}),
    ("web", {_MANAGER + "access_log": _log(log_format={"json_format": {"%NOPE%": [1, True, None]}})}),
    ("web", {_MANAGER + "upgrade_configs": _upgrades("websocket", "CONNECT")}),
    ("web", {"address/socket_address": {"address": "::", "port_value": 0, "ipv4_compat": True}}),
    ("web", {"address/socket_address": {"address": "::ffff:10.0.0.1", "port_value": 0, "ipv4_compat": True}}),
    ("web", {"address": {"pipe": {"path": "/tmp/l"}}}),  # noqa: S108 - Envoy binds nothing while it validates
    ("web", {"filter_chains": [], "default_filter_chain": {}}),
    ("web", {"address": _UDP, "filter_chains": []}),
    *(("chains", {_CHAIN: {"server_names": [name]}}) for name in ("*.com", "*.a*.com", "", "*.")),
    ("web", {"address/socket_address/resolver_name": "envoy.ip"}),
    ("strict", {_HOSTS + "0/endpoint/address/socket_address": {"address": "d.example.com", "named_port": "http"}}),
    ("web", {_HOST + "matcher": _ROUTING, _HOST + "routes": ABSENT}),
    ("filters", {_PERMISSIONS: [{"destination_port_range": {"start": 0, "end": 65_536}}]}),
    *(("filters", {_LIMIT + "token_bucket/fill_interval": each}) for each in ("0.05s", "0.0009s")),
    ("filters", {_MANAGER + "http_filters/4/typed_config/transport_api_version": "AUTO"}),
    ("chains", {_TCP + "tunneling_config": {"hostname": "h", "post_path": "/x", "use_post": True}}),
    *(("chains", {_TCP + "proxy_protocol_tlvs": [each]}) for each in (_TLV, {"type": 1, "format_string": _TEXT})),
    ("eds", {_SOURCE: _api(api_type="REST", cluster_names=["c"], refresh_delay="5s")}),
    ("eds", {_SOURCE: _api(api_type="GRPC", grpc_services=[_SERVICE])}),
    ("eds", {_OPTIONS: _protocols("explicit_http_config", http3_protocol_options={}), "transport_socket/name": _QUIC}),
    ("eds", {_OPTIONS: ABSENT, "health_checks": [_GRPC_CHECK], "http2_protocol_options": {}}),
    *(("eds", {_OPTIONS: each, "health_checks": [_GRPC_CHECK]}) for each in _WITH_HTTP2),
    ("strict", {"load_assignment/endpoints/0/leds_cluster_locality_config": {}}),
    ("strict", {_HOSTS + "0/endpoint/additional_addresses": [{}]}),
    (
        "ring",
        {
            "lb_subset_config": {"locality_weight_aware": True},
            "common_lb_config/locality_weighted_lb_config": {},
        },
    ),
    (
        "ring",
        {
            "lb_subset_config": {
                "subset_selectors": [
                    {"keys": ["a", "b"], "fallback_policy": "KEYS_SUBSET", "fallback_keys_subset": ["a"]}
                ]
            }
        },
    ),
    ("chains", {_CHAIN: {"destination_port": 443}}),  # the second chain has more besides
    ("chains", {_CHAIN: {"application_protocols": ["h2", "H2"]}}),
    ("chains", {_CHAIN: {"prefix_ranges": [_prefix("10.0.0.0", 8), _prefix("10.0.0.0", 16)]}}),
    ("chains", {"filter_chain_matcher": _MATCHER, _CHAIN: {"server_names": ["a*.com"]}}),
    *(("logical", {"maglev_lb_config/table_size": size}) for size in (1, 2, 7, 5_000_011)),
    ("logical", {"lb_policy": "ROUND_ROBIN", "maglev_lb_config/table_size": 4}),
    ("policies", {"load_balancing_policy": _maglev(7, "round_robin.v3.RoundRobin")}),
    ("strict", {"load_assignment": ABSENT}),
    (
        "strict",
        {
            "type": "ORIGINAL_DST",
            "lb_policy": "CLUSTER_PROVIDED",
            "load_assignment": ABSENT,
            "lb_subset_config": ABSENT,
        },
    ),
]


def changed(change: Change) -> Mutation:
    """The seed of a change with what the change puts into it."""
    seed = SEEDS[change[0]]
    tree: Any = deepcopy(seed.tree)
    for path, value in change[1].items():
        *steps, last = path.split("/")
        target = tree
        for step in steps:
            target = target[int(step)] if isinstance(target, list) else target[step]
        if isinstance(target, list):
            target[int(last)] = value
        elif value is ABSENT:
            target.pop(last, None)
        else:
            target[last] = value
    return Mutation(seed, f"{change}", tree)


def is_refused(mutation: Mutation) -> bool:
    return any(found.severity is Severity.ERROR for found in parse(Manifest(mutation.manifest)).findings)


@pytest.mark.slow
@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_relations__what_we_refuse__envoy_refuses(change: Change, tmp_path: Path) -> None:
    mutation = changed(change)

    assert is_refused(mutation)
    assert envoy_refusal(mutation, (), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("change", SOUND, ids=str)
def test_relations__what_envoy_takes__we_take(change: Change, tmp_path: Path) -> None:
    mutation = changed(change)

    assert envoy_refusal(mutation, (), tmp_path) == ""
    assert not is_refused(mutation)


# Arguments of those commands that do not take just any.
_ARGUMENTS = {
    "CEL": "request.path",
    "COALESCE": '{"operators":["PROTOCOL"]}',
    "COMMON_DURATION": "DS_RX_BEG:DS_RX_END:ms",
    "METADATA": "ROUTE:a",
    "XFCC_VALUE": "URI",
}


@pytest.mark.slow
def test_commands__every_one_of_the_table__is_known_to_envoy(tmp_path: Path) -> None:
    """One by one they would take half a minute; Envoy would name the first that it does not know."""
    bare: list[str] = []
    needy: list[str] = []
    for name in sorted(COMMANDS):
        text = f"%{name}%"
        (needy if format_needs_argument(text) else bare).append(name)
    texts = [f"%{name}%" for name in bare] + [f"%{name}({_ARGUMENTS.get(name, 'x')})%" for name in needy]
    mutation = changed(("web", {_ROUTE + "request_headers_to_add": _header("x", " ".join(texts))}))

    assert not is_refused(mutation)
    assert envoy_refusal(mutation, (), tmp_path) == ""


def format_needs_argument(text: str) -> bool:
    return is_refused(changed(("web", {_ROUTE + "request_headers_to_add": _header("x", text)})))
