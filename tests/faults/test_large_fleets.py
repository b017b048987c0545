"""What only size does to a server: reconnects with very many names, large publications (reliability F25, F30).

The server has a process of its own, so that the lag of its event loop is its own doing.
"""

import asyncio
import time
from collections.abc import Iterator

import grpc
import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import base_pb2
from envoy.service.discovery.v3 import discovery_pb2

from tests.support.ads import MemoryContents, raw_call
from tests.support.ads_apart import AdsApart, Inside, ads_apart, lag_s
from tests.support.ads_client import ADS
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300), pytest.mark.xdist_group("large")]

NAMES = 60_000
ANSWERED_S = 2.0
LAG_S = 0.2
# Of a usual length: Istio's names of clusters have about this.
_NAME = "outbound|8080|v{0:05}|service-{0:05}.some-namespace.svc.cluster.local"


def clusters(timeout_s: int, count: int = NAMES) -> Iterator[cluster_pb2.Cluster]:
    """So many clusters."""
    for number in range(count):
        made = cluster_pb2.Cluster(name=_NAME.format(number))
        made.connect_timeout.seconds = timeout_s
        yield made


def versions(timeout_s: int) -> dict[str, str]:
    """What a client holds that was told of these clusters."""
    contents = MemoryContents()
    return {made.name: contents.add(made).version for made in clusters(timeout_s)}


def publish(inside: Inside, timeout_s: int) -> None:
    """Have the server serve them."""
    inside.publish(list(clusters(timeout_s)))


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsApart]:
    with ads_apart() as server:
        server.do(publish, 1)
        yield server


async def reconnect(address: str, held: dict[str, str]) -> tuple[float, float, set[str], set[str]]:
    """A client that comes back with these: seconds to the first and to the last response, what changed, what went."""
    request = discovery_pb2.DeltaDiscoveryRequest(
        node=base_pb2.Node(id="large"), type_url=CLUSTER.url, initial_resource_versions=held
    ).SerializeToString()
    assert len(request) > 4 * 1024 * 1024  # what Envoy Gateway met (reliability finding 7)
    changed: set[str] = set()
    removed: set[str] = set()
    async with grpc.aio.insecure_channel(address) as channel:
        call = raw_call(channel, ADS + "DeltaAggregatedResources")
        await call.wait_for_connection()
        started = time.monotonic()
        await call.write(request)
        first_s = last_s = 0.0
        while (data := await _read(call, longest_s=10.0 if not first_s else 1.0)) is not None:
            last_s = time.monotonic() - started
            first_s = first_s or last_s
            response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
            changed |= {each.name for each in response.resources}
            removed |= set(response.removed_resources)
            ack = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER.url, response_nonce=response.nonce)
            await call.write(ack.SerializeToString())
    return first_s, last_s, changed, removed


async def _read(call: "grpc.aio.StreamStreamCall[bytes, bytes]", longest_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(longest_s):
            data = await call.read()
    except TimeoutError:
        return None
    assert isinstance(data, bytes), await call.details()
    return data


def measured(**figures: float) -> None:
    """`make nightly` shows what tests print."""
    print(", ".join(f"{name} = {round(value, 3)}" for name, value in figures.items()))  # noqa: T201 - its purpose


@pytest.mark.parametrize("stale", [0, 100])
async def test_f25__client_comes_back_with_60_000_names__is_answered_and_the_loop_is_not_held_up(
    ads: AdsApart, stale: int
) -> None:
    held = versions(1)
    changed = set(list(held)[:stale])
    held |= dict.fromkeys(changed, "of another state")
    gone = {f"gone-{number}" for number in range(stale)}
    held |= dict.fromkeys(gone, "of another state")
    ads.do(lag_s)

    first_s, last_s, told, removed = await reconnect(ads.address, held)

    lag = ads.do(lag_s)
    measured(answered_s=first_s, all_of_it_s=last_s, loop_lag_s=lag)
    assert (told, removed) == (changed, gone)
    assert first_s <= ANSWERED_S
    assert lag < LAG_S
