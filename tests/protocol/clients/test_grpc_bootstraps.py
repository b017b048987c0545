"""gRPC's own xDS client with the very files that Parley makes for it: what it does with each thing they may say.

What gRPC does with tokens and certificates is in tests/services/ads/test_secure_clients.py.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.http.ext_proc.v3 import ext_proc_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from google.protobuf import json_format

from controlplane.clients.bootstraps import Node, Tree, grpc_bootstrap
from controlplane.config.loading import load
from tests.support.ads_thread import serving_ads
from tests.support.backends import ECHO_METHOD, grpc_backend
from tests.support.grpc_client import GrpcClient, Outcome, grpc_client
from tests.support.grpc_server import grpc_server
from tests.support.node_client import node_modules, why_no_node
from tests.support.ports import free_ports
from tests.support.scripted_ads import scripted_ads
from tests.support.steady import steady_node
from tests.support.waiting import eventually
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route, server_listener
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE
from xdscore.server_features import BootstrapFeature

pytestmark = [pytest.mark.xdist_group("grpc-bootstraps")]

SOON_S = 2.0
# It puts this in place of its own reason: "must contain at least one entry with a type in [google_default,insecure]".
NO_TLS = (
    "xDS name resolution failed for target xds:///web: "
    "Cannot read properties of null (reading 'clientDefaultListenerResourceNameTemplate')"
)
SIDE_CHANNEL = "dns:///127.0.0.1:1"  # nobody listens there, and nobody is asked


def bootstrap(
    address: str,
    directory: Path,
    *,
    features: Collection[BootstrapFeature] = (),
    allowed_services: Collection[str] = (),
) -> Tree:
    settings = load({"PARLEY_ADS_ADDRESS": address}, directory=directory)
    return grpc_bootstrap(settings, Node("pay-1", "prod"), features=features, allowed_services=allowed_services)


@pytest.mark.shows("gRPC for Node", "starts with the bootstrap that Parley makes", "SotW")
@pytest.mark.skipif(bool(why_no_node()), reason=why_no_node())
def test_default_file__grpc_for_node__is_served(tmp_path: Path) -> None:
    with serving_ads() as ads, grpc_backend("parley") as port:
        ads.publish("prod", api_listener("web", "r"), route("r", "a"), eds_cluster("a"), assignment("a", port))
        made = bootstrap(f"127.0.0.1:{ads.port}", tmp_path)
        with steady_node(node_modules(), ["xds:///web"], rate_per_s=5, bootstrap=made) as load:
            load.flowing()

        (opened, *_) = ads.streams("prod")

    assert (opened.node_id, opened.user_agent.partition(" Pure")[0]) == ("pay-1", "gRPC Node")


@pytest.mark.shows("gRPC for Node", "no TLS to the control plane: it refuses such a bootstrap", "SotW")
@pytest.mark.parametrize("auth", ["token", "mtls"])
@pytest.mark.skipif(bool(why_no_node()), reason=why_no_node())
def test_file_over_tls__grpc_for_node__refuses_it(tmp_path: Path, auth: str) -> None:
    """It has no `tls` among its channel credentials: docs/reference/bootstraps.md says what to do instead."""
    files = {}
    for which in ("CERT", "KEY", "CLIENT_CA"):
        (tmp_path / which).touch()
        files[f"PARLEY_ADS_TLS_{which}"] = str(tmp_path / which)
    told = {"PARLEY_ADS_AUTH": auth, "PARLEY_ADS_TRUST_DOMAINS": "td.example", **files}
    made: Any = grpc_bootstrap(load(told, directory=tmp_path), Node("pay-1", "prod"))

    with steady_node(node_modules(), ["xds:///web"], rate_per_s=5, bootstrap=made) as load_:
        eventually(lambda: load_.calls, within_s=20)

    assert made["xds_servers"][0]["channel_creds"][0]["type"] == "tls"
    assert {call.code for call in load_.calls} == {"UNAVAILABLE"}
    assert {call.text for call in load_.calls} == {NO_TLS}


@pytest.mark.shows("gRPC for Python (C-core)", "a server that takes its listener over xDS (A36)", "SotW")
def test_default_file__server_of_grpc__serves_once_its_listener_is_there(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with serving_ads() as ads:
        ads.publish("prod")
        made = bootstrap(f"127.0.0.1:{ads.port}", tmp_path)
        with grpc_server(made, port), grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            eventually(lambda: ads.streams("prod"), within_s=10)
            with pytest.raises(grpc.RpcError):
                say(channel)

            ads.publish("prod", server_listener(str(made["server_listener_resource_name_template"]), port))
            answer = eventually(partial(said, channel), within_s=10)

    assert answer == b"served:hello"


def say(channel: grpc.Channel) -> bytes:
    answer: bytes = channel.unary_unary(ECHO_METHOD, None, None)(b"hello", timeout=1)
    return answer


def said(channel: grpc.Channel) -> bytes:
    try:
        return say(channel)
    except grpc.RpcError:
        return b""


@asynccontextmanager
async def refused_a_change(directory: Path, *features: BootstrapFeature) -> AsyncIterator[GrpcClient]:
    """A client that was served, and then refused a change of its cluster, on a server that does nothing about it."""
    async with scripted_ads() as ads:
        made = bootstrap(ads.address, directory, features=features)
        with grpc_backend("parley") as port, grpc_client(made) as client:
            served = asyncio.create_task(called(client))
            stream = await ads.stream("pay-1")
            for kind, resource in (
                (LISTENER, api_listener("web", "r")),
                (ROUTE, route("r", "a")),
                (CLUSTER, eds_cluster("a")),
                (ENDPOINT, assignment("a", port)),
            ):
                await stream.request(kind)
                stream.send(kind, resource)
            assert (await served).code == "OK"

            bad = eds_cluster("a")
            bad.lb_policy = cluster_pb2.Cluster.MAGLEV  # which C-core does not have
            answer = await stream.answered(CLUSTER, stream.send(CLUSTER, bad))
            assert "LB policy is not supported" in answer.error_detail.message
            yield client


async def called(client: GrpcClient) -> Outcome:
    return await asyncio.to_thread(client.call, "xds:///web")


async def test_default_file__change_is_refused__no_rpc_fails(tmp_path: Path) -> None:
    async with refused_a_change(tmp_path) as client:
        codes = set()
        for _ in range(40):
            codes.add((await called(client)).code)
            await asyncio.sleep(0.05)

        believed = await asyncio.to_thread(client.status)

    assert codes == {"OK"}
    assert believed[CLUSTER.url, "a"].state == "NACKED"


async def test_fail_on_data_errors__change_is_refused__rpcs_fail_as_long_as_nothing_else_comes(tmp_path: Path) -> None:
    async with refused_a_change(tmp_path, BootstrapFeature.FAIL_ON_DATA_ERRORS) as client:
        failed = await asyncio.to_thread(
            eventually, partial(client.call, "xds:///web"), lambda got: got.code == "UNAVAILABLE", within_s=SOON_S
        )
        await asyncio.sleep(1)
        later = await called(client)

    assert "CDS resource a" in failed.text
    assert later.code == "UNAVAILABLE"


@pytest.mark.shows("gRPC for Python (C-core)", "rewriting of the authority (A81)", "SotW")
@pytest.mark.parametrize(("features", "authority"), [((), "web"), ((BootstrapFeature.TRUSTED_XDS_SERVER,), "inner")])
def test_trusted_xds_server__route_that_rewrites_the_authority__is_obeyed_with_it_alone(
    tmp_path: Path, features: Collection[BootstrapFeature], authority: str
) -> None:
    """gRFC A81."""
    rewriting = route("r", "a")
    rewriting.virtual_hosts[0].routes[0].route.auto_host_rewrite.value = True
    server = grpc.server(ThreadPoolExecutor(1), handlers=[TellsAuthority()])
    port = server.add_insecure_port("127.0.0.1:0")
    endpoints = assignment("a", port)
    endpoints.endpoints[0].lb_endpoints[0].endpoint.hostname = "inner"
    server.start()

    with serving_ads() as ads:
        ads.publish("prod", api_listener("web", "r"), rewriting, eds_cluster("a"), endpoints)
        with grpc_client(bootstrap(f"127.0.0.1:{ads.port}", tmp_path, features=features)) as client:
            outcome = client.call("xds:///web")
    server.stop(None)

    assert (outcome.code, outcome.text) == ("OK", authority)


class TellsAuthority(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Answers with the authority that it is called by, which grpcio shows nowhere in public."""

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":  # noqa: ARG002
        return grpc.unary_unary_rpc_method_handler(lambda _, context: bytes(context._rpc_event.call_details.host))


@pytest.mark.shows("gRPC for Python (C-core)", "allowed side channels (A102, a draft)", "SotW")
@pytest.mark.parametrize(("allowed", "code"), [([], "UNAVAILABLE"), ([SIDE_CHANNEL], "OK")])
def test_allowed_grpc_services__filter_with_a_side_channel__is_taken_with_an_allowed_one_alone(
    tmp_path: Path, allowed: list[str], code: str
) -> None:
    """gRFC A102, a draft. C-core 1.85 reads it where its first user, the filter of A93, is switched on."""
    with serving_ads() as ads, grpc_backend("parley") as port:
        ads.publish("prod", listener_with_side_channel(), route("r", "a"), eds_cluster("a"), assignment("a", port))
        made = bootstrap(f"127.0.0.1:{ads.port}", tmp_path, allowed_services=allowed)
        with grpc_client(made, variables={"GRPC_EXPERIMENTAL_XDS_EXT_PROC_ON_CLIENT": "true"}) as client:
            outcome = client.call("xds:///web")

    assert outcome.code == code
    assert ('service not present in "allowed_grpc_services"' in outcome.text) == (not allowed)


def listener_with_side_channel() -> listener_pb2.Listener:
    """A listener whose filter is to ask a side channel, and then asks it nothing."""
    made = api_listener("web", "r")
    connection = http_connection_manager_pb2.HttpConnectionManager()
    made.api_listener.api_listener.Unpack(connection)
    asks = {
        "grpc_service": {"google_grpc": {"target_uri": SIDE_CHANNEL, "stat_prefix": "side"}},
        "processing_mode": {"request_header_mode": "SKIP", "response_header_mode": "SKIP"},
    }
    first = http_connection_manager_pb2.HttpFilter(name="side")
    first.typed_config.Pack(json_format.ParseDict(asks, ext_proc_pb2.ExternalProcessor()))
    filters = [first, *connection.http_filters]
    del connection.http_filters[:]
    connection.http_filters.extend(filters)
    made.api_listener.api_listener.Pack(connection)
    return made
