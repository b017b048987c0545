"""Content that a data plane shows, made comparable: the version of what is stored, and hosts by their digest."""

import json
from typing import Any

import pytest

from tests.support.manifests import TYPE, cluster, endpoints, listener, parsed, route
from xdscore.said import NO_HOSTS
from xdscore.schema import to_json_with_secrets
from xdscore.schema.dumped import any_of_dump, endpoints_digest, version_of_content
from xdscore.snapshot import content_version

FILLED_IN: dict[str, Any] = {"health_status": "HEALTHY", "load_balancing_weight": 1}


def hosts(*places: tuple[str, int], priority: int = 0, **more: object) -> bytes:
    lb: list[Any] = [
        {"endpoint": {"address": {"socket_address": {"address": address, "port_value": port}}}, **more}
        for address, port in places
    ]
    tree: dict[str, Any] = {
        "cluster_name": "pay",
        "endpoints": [{"lb_endpoints": lb, "priority": priority}] if lb else [],
    }
    content = any_of_dump({"@type": f"{TYPE}envoy.config.endpoint.v3.ClusterLoadAssignment", **tree})
    assert content is not None
    return content


@pytest.mark.parametrize(
    "tree", [cluster("pay", eds=True, lb_policy="RING_HASH"), route("r", "pay"), listener("l", "r", 80)]
)
def test_version__of_content_as_a_dump_shows_it__is_that_of_what_is_stored(tree: dict[str, object]) -> None:
    stored = parsed(tree)
    dumped = any_of_dump(json.loads(json.dumps(to_json_with_secrets(stored.any_bytes))))

    assert dumped == stored.any_bytes
    assert version_of_content(dumped) == content_version(stored.content_hash)


def test_version__of_content_with_a_secret_or_its_redaction__is_none_that_could_be_guessed_at() -> None:
    tls = f"{TYPE}envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    for value in ("hunter2", "[redacted]"):
        certificate = {"private_key": {"inline_string": value}, "certificate_chain": {"filename": "/c"}}
        socket = {"@type": tls, "common_tls_context": {"tls_certificates": [certificate]}}
        tree: dict[str, Any] = cluster("pay", transport_socket={"name": "tls", "typed_config": socket})
        content = any_of_dump(tree)

        assert content is not None
        assert version_of_content(content) == ""


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"@type": f"{TYPE}no.such.Message"},
        {"@type": f"{TYPE}envoy.config.cluster.v3.Cluster", "nam": "x"},
        {"@type": 7},
        {"@type": f"{TYPE}envoy.config.cluster.v3.Cluster", "name": {"deep": []}},
    ],
)
def test_any__of_what_cannot_be_read_whole__is_none(tree: dict[str, object]) -> None:
    assert any_of_dump(tree) is None  # type: ignore[arg-type]  # as somebody may write it


def test_digest__of_hosts__is_that_of_what_envoy_makes_up_of_them() -> None:
    stored = parsed(endpoints("pay", 9000, 9001)).any_bytes
    shown = hosts(("127.0.0.1", 9001), ("127.0.0.1", 9000), **FILLED_IN)

    assert endpoints_digest(stored) == endpoints_digest(shown)
    assert endpoints_digest(hosts(("2001:0db8:0:0::1", 1))) == endpoints_digest(hosts(("2001:db8::1", 1)))


def test_digest__of_other_hosts__differs() -> None:
    digests = {
        endpoints_digest(each)
        for each in (
            hosts(("127.0.0.1", 9000)),
            hosts(("127.0.0.1", 9001)),
            hosts(("127.0.0.2", 9000)),
            hosts(("127.0.0.1", 9000), priority=1),
            hosts(("127.0.0.1", 9000), ("127.0.0.1", 9001)),
        )
    }

    assert len(digests) == 5
    assert endpoints_digest(hosts()) == NO_HOSTS
    assert endpoints_digest(parsed(cluster("pay")).any_bytes) == ""
