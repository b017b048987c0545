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
        if value is ABSENT:
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
