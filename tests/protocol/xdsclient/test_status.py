"""What a client tells of itself: CSDS (A40) and metrics (A78), both with the cache states of A88."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from envoy.admin.v3 import config_dump_shared_pb2
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from envoy.service.status.v3 import csds_pb2, csds_pb2_grpc

from tests.support.ads_client import until
from tests.support.scripted_ads import ScriptedStream, scripted_ads
from tests.support.xds_resources import eds_cluster, route
from xdsclient import (
    CLUSTERS,
    ROUTES,
    SECRETS,
    Bootstrap,
    DataErrorHandling,
    Node,
    Server,
    ServerFeature,
    XdsClient,
)
from xdsclient.csds import _generic, add_client_status_service, client_config
from xdsclient.engine.values import ABSENT, Status
from xdsclient.prometheus import PrometheusMetrics
from xdscore.resource_types import CLUSTER, ROUTE, SECRET


@asynccontextmanager
async def watching(
    *names: str, metrics: PrometheusMetrics | None = None, features: frozenset[ServerFeature] = frozenset()
) -> AsyncIterator[tuple[XdsClient, ScriptedStream]]:
    """A client that watches these clusters on a scripted stream."""
    metrics = metrics or PrometheusMetrics()
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address, features=features),), Node("n"))
        async with XdsClient(bootstrap, target="xds:///pay", metrics=metrics, data_errors=DataErrorHandling.ON) as one:
            metrics.observe(one)
            for name in names:
                one.follow(CLUSTERS, name)
            yield one, await server.stream("n")


def bad_cluster(name: str) -> Any:
    cluster = eds_cluster(name)
    cluster.connect_timeout.seconds = -1
    return cluster


async def into_every_state(stream: ScriptedStream) -> None:
    """Of the clusters a to g: one in each state that needs no timer, with and without a resource."""
    held = [eds_cluster(name) for name in ("acked", "nacked", "denied", "gone")]
    await stream.answered(CLUSTER, stream.send(CLUSTER, *held, version="v1"))
    await stream.answered(
        CLUSTER,
        stream.send(
            CLUSTER,
            eds_cluster("acked"),
            bad_cluster("nacked"),
            bad_cluster("never-good"),
            errors=[("denied", 7, "not yours"), ("missing", 5, "no such cluster")],
            version="v2",
        ),
    )


RESOURCES = "grpc_xds_client_resources"
REASON = "/connect_timeout: 'connect_timeout' must be greater than 0s; it is -1s."
STATES = {
    "acked": "ACKED",
    "nacked": "NACKED",
    "denied": "RECEIVED_ERROR",
    "gone": "DOES_NOT_EXIST",
    "never-good": "NACKED",
    "missing": "RECEIVED_ERROR",
    "waiting": "REQUESTED",
}


async def test_csds__every_state__is_told_with_resource_error_and_rejected_content() -> None:
    async with watching(*STATES) as (one, stream):
        await into_every_state(stream)

        config = client_config(one)

        entries = {entry.name: entry for entry in config.generic_xds_configs}
        number_of = config_dump_shared_pb2.ClientResourceStatus
        assert {name: number_of.Name(entry.client_status) for name, entry in entries.items()} == STATES
        assert (config.client_scope, config.node.id) == ("xds:///pay", "n")
        assert {name for name, entry in entries.items() if entry.HasField("xds_config")} == {
            "acked", "nacked", "denied", "gone",
        }  # fmt: skip
        assert {
            name: entry.error_state.details for name, entry in entries.items() if entry.HasField("error_state")
        } == {
            "nacked": entries["never-good"].error_state.details,
            "never-good": f"invalid resource: {REASON}",
            "denied": "not yours",
            "missing": "no such cluster",
            "gone": "does not exist: the xDS server removed it",
        }
        assert entries["acked"].version_info == "v2"
        assert entries["denied"].version_info == "v1"
        assert entries["denied"].error_state.version_info == "v2"
        assert entries["nacked"].error_state.failed_configuration.value == bad_cluster("nacked").SerializeToString()
        assert abs(entries["acked"].last_updated.ToSeconds() - time.time()) < 5


async def test_csds__over_grpc__answers_fetch_and_stream_and_refuses_matchers() -> None:
    async with watching("a") as (one, stream):
        await stream.answered(CLUSTER, stream.send(CLUSTER, eds_cluster("a")))
        server = grpc.aio.server()
        add_client_status_service(server, one)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub: Any = csds_pb2_grpc.ClientStatusDiscoveryServiceStub(channel)
                whole = await stub.FetchClientStatus(csds_pb2.ClientStatusRequest())
                bare = await stub.FetchClientStatus(csds_pb2.ClientStatusRequest(exclude_resource_contents=True))
                call = stub.StreamClientStatus()
                await call.write(csds_pb2.ClientStatusRequest())
                streamed = await call.read()
                matching = csds_pb2.ClientStatusRequest()
                matching.node_matchers.add().node_id.exact = "n"
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await stub.FetchClientStatus(matching)
        finally:
            await server.stop(0)

        assert whole.config[0].generic_xds_configs[0].xds_config.value == eds_cluster("a").SerializeToString()
        assert not bare.config[0].generic_xds_configs[0].HasField("xds_config")
        assert bare.config[0].generic_xds_configs[0].client_status == config_dump_shared_pb2.ACKED
        assert [each.name for each in streamed.config[0].generic_xds_configs] == ["a"]
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_csds__secrets__are_redacted() -> None:
    secret = secret_pb2.Secret(name="key")
    secret.tls_certificate.private_key.inline_string = "very private"
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address),), Node("n"))
        async with XdsClient(bootstrap) as one, one.follow(SECRETS, "key"):
            stream = await server.stream("n")
            await stream.answered(SECRET, stream.send(SECRET, secret))

            shown = client_config(one).generic_xds_configs[0].xds_config

    assert b"very private" not in shown.SerializeToString()
    assert secret_pb2.Secret.FromString(shown.value).name == "key"


async def test_csds__refused_for_a_reason_that_quotes_a_secret__says_it_without() -> None:
    secret = secret_pb2.Secret(name="key")
    secret.generic_secret.secret.inline_string = "very private"
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address),), Node("n"))
        async with XdsClient(bootstrap) as one, one.follow(SECRETS, "key"):
            stream = await server.stream("n")
            await stream.answered(SECRET, stream.send(SECRET, secret))
            [entry] = one.cache()
            refused = replace(
                entry, error=Status(3, "bad 'very\\x20private'"), rejected=secret.SerializeToString(), resource=ABSENT
            )

            config = _generic(refused, 0.0, contents=True)

    assert config.error_state.details == "bad '<redacted>'"
    assert b"very private" not in config.SerializeToString()


def sample(text: str, name: str, **labels: str) -> str:
    """The value of a line of Prometheus text."""
    wanted = {f'{key}="{value}"' for key, value in labels.items()}
    for line in text.splitlines():
        if line.startswith(name + "{") and all(each in line for each in wanted):
            return line.rpartition(" ")[2]
    return "nothing"


@pytest.mark.parametrize(
    ("label", "count"),
    [
        ("acked", "1.0"),
        ("nacked", "1.0"),
        ("nacked_but_cached", "1.0"),
        ("received_error", "1.0"),
        ("received_error_but_cached", "1.0"),
        ("does_not_exist_but_cached", "1.0"),
        ("requested", "1.0"),
    ],
)
async def test_metrics__cache_state__counts_the_resources_in_it(label: str, count: str) -> None:
    metrics = PrometheusMetrics()
    async with watching(*STATES, metrics=metrics) as (_, stream):
        await into_every_state(stream)

        found = sample(
            metrics.text(),
            RESOURCES,
            grpc_target="xds:///pay",
            grpc_xds_authority="#old",
            grpc_xds_cache_state=label,
            grpc_xds_resource_type="envoy.config.cluster.v3.Cluster",
        )

        assert found == count


@pytest.mark.parametrize(
    ("features", "label"),
    [
        (frozenset(), "does_not_exist"),
        (frozenset({ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR}), "timeout"),
    ],
    ids=["no feature", "resource_timer_is_transient_error"],
)
async def test_metrics__silent_server__is_does_not_exist_or_timeout(
    features: frozenset[ServerFeature], label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xdsclient.engine.policy.DOES_NOT_EXIST_TIMER_S", 0.1)
    monkeypatch.setattr("xdsclient.engine.policy.TRANSIENT_TIMER_S", 0.1)
    metrics = PrometheusMetrics()
    async with watching("a", metrics=metrics, features=features):
        await until(lambda: sample(metrics.text(), RESOURCES, grpc_xds_cache_state=label) == "1.0")


async def test_metrics__of_a_server__count_updates_and_failures_and_show_the_connection() -> None:
    metrics = PrometheusMetrics()
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address),), Node("n"))
        async with XdsClient(bootstrap, target="t", metrics=metrics) as one, one.follow(ROUTES, "a") as news:
            stream = await server.stream("n")
            bad = route("b", "c")
            bad.virtual_hosts[0].domains.pop()
            await stream.answered(ROUTE, stream.send(ROUTE, route("a", "c"), bad))
            place = {"grpc_target": "t", "grpc_xds_server": server.address}
            routes = {**place, "grpc_xds_resource_type": "envoy.config.route.v3.RouteConfiguration"}
            text = metrics.text()
            assert sample(text, "grpc_xds_client_connected", **place) == "1.0"
            assert sample(text, "grpc_xds_client_resource_updates_valid_total", **routes) == "1.0"
            assert sample(text, "grpc_xds_client_resource_updates_invalid_total", **routes) == "1.0"

            server.refuse_with = grpc.StatusCode.UNAVAILABLE
            await stream.end()
            async with asyncio.timeout(5):
                await anext(news)
                await anext(news)

            text = metrics.text()
            assert sample(text, "grpc_xds_client_connected", **place) == "0.0"
            assert sample(text, "grpc_xds_client_server_failure_total", **place) == "1.0"
