"""gRFC A74 over a scripted server: from a target to one configuration, and A88's notes in it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.route.v3 import route_components_pb2, route_pb2
from envoy.extensions.clusters.aggregate.v3 import cluster_pb2 as aggregate_pb2
from google.protobuf.message import Message

from tests.support.ads_client import until
from tests.support.scripted_ads import ScriptedAds, ScriptedStream, scripted_ads
from tests.support.xds_resources import api_listener, assignment, eds_cluster, http_listener, route
from xdsclient import Bootstrap, DataErrorHandling, Node, Server, ServerFeature, Status, StatusCode, XdsClient
from xdsclient.bootstrap import Authority
from xdsclient.dependencies import DependencyManager
from xdsclient.dns import resolve_by_system
from xdsclient.engine.values import ABSENT
from xdsclient.names import UnwatchableNameError, listener_name
from xdsclient.xds_config import ClusterConfig, EndpointConfig, XdsConfig, rpc_status, virtual_host_for
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType

QUIET = "xDS node ID:n"


class Target:
    """A dependency manager on a scripted stream, and everything it told."""

    def __init__(self, server: ScriptedAds, stream: ScriptedStream) -> None:
        self.server = server
        self.stream = stream
        self.told: list[XdsConfig | Status] = []

    async def send(self, kind: ResourceType, *resources: Any, errors: Iterable[tuple[str, int, str]] = ()) -> None:
        """A response that is answered and told about."""
        await self.stream.answered(kind, self.stream.send(kind, *resources, errors=errors))
        await asyncio.sleep(0.02)

    async def load(self, *clusters: Message, to: route_pb2.RouteConfiguration | None = None) -> None:
        await self.send(LISTENER, api_listener("svc", "r"))
        await self.send(ROUTE, to or route("r", "a"))
        await self.send(CLUSTER, *clusters)

    @property
    def config(self) -> XdsConfig:
        last = self.told[-1]
        assert isinstance(last, XdsConfig), last
        return last

    def leaf(self, name: str) -> EndpointConfig:
        cluster = self.config.clusters[name]
        assert isinstance(cluster, ClusterConfig), cluster
        assert isinstance(cluster.children, EndpointConfig)
        return cluster.children


async def resolve_nothing(host: str, _: int) -> Message | Status:
    return Status(StatusCode.UNAVAILABLE, f"no address for {host}")


@asynccontextmanager
async def target(*features: ServerFeature, resolve: Any = resolve_nothing) -> AsyncIterator[Target]:
    async with scripted_ads() as server:
        bootstrap = Bootstrap((Server(server.address, features=frozenset(features)),), Node("n"))
        async with XdsClient(bootstrap, data_errors=DataErrorHandling.ON) as client:
            told: list[XdsConfig | Status] = []
            manager = DependencyManager(client, "xds:///svc", told.append, resolve=resolve)
            made = Target(server, await server.stream("n"))
            made.told = told
            yield made
            manager.close()


def aggregate(name: str, *children: str) -> cluster_pb2.Cluster:
    cluster = cluster_pb2.Cluster(name=name, lb_policy="CLUSTER_PROVIDED")
    cluster.cluster_type.name = "envoy.clusters.aggregate"
    cluster.cluster_type.typed_config.Pack(aggregate_pb2.ClusterConfig(clusters=children))
    return cluster


def dns_cluster(name: str, host: str, port: int) -> cluster_pb2.Cluster:
    cluster = cluster_pb2.Cluster(name=name, type="LOGICAL_DNS")
    cluster.load_assignment.cluster_name = name
    endpoint = cluster.load_assignment.endpoints.add().lb_endpoints.add().endpoint
    endpoint.address.socket_address.address, endpoint.address.socket_address.port_value = host, port
    return cluster


async def test_config__tree_is_complete__is_told_once_and_only_then() -> None:
    async with target() as one:
        await one.load(eds_cluster("a"))
        assert one.told == []

        await one.send(ENDPOINT, assignment("a", 1))

        (config,) = one.told
        assert isinstance(config, XdsConfig)
        assert (config.listener, config.route) == (api_listener("svc", "r"), route("r", "a"))
        assert config.virtual_host == route("r", "a").virtual_hosts[0]
        assert config.clusters == {"a": ClusterConfig(eds_cluster("a"), EndpointConfig(assignment("a", 1), QUIET))}


async def test_config__weighted_clusters_and_inline_routes__are_all_followed() -> None:
    routes = route("inline", "a")
    weighted = routes.virtual_hosts[0].routes.add()
    weighted.match.prefix = "/"
    for name in ("b", "a"):
        weighted.route.weighted_clusters.clusters.add(name=name).weight.value = 1
    listener = api_listener("svc", "r")
    manager = _manager_of(listener)
    manager.route_config.CopyFrom(routes)
    listener.api_listener.api_listener.Pack(manager)
    async with target() as one:
        await one.send(LISTENER, listener)
        await one.send(CLUSTER, eds_cluster("a"), eds_cluster("b"))

        await one.send(ENDPOINT, assignment("a", 1), assignment("b", 2))

        assert list(one.config.clusters) == ["a", "b"]
        assert one.config.route == routes


def _manager_of(listener: Any) -> Any:
    from envoy.extensions.filters.network.http_connection_manager.v3 import (  # noqa: PLC0415 - only here
        http_connection_manager_pb2 as hcm,
    )

    manager = hcm.HttpConnectionManager()
    listener.api_listener.api_listener.Unpack(manager)
    return manager


async def test_config__aggregate__has_its_leaves_in_order_and_each_leaf_its_endpoints() -> None:
    """gRFC A37."""
    clusters = aggregate("a", "inner", "c"), aggregate("inner", "b", "c"), eds_cluster("b"), eds_cluster("c")
    async with target() as one:
        await one.load(*clusters)
        for _ in range(2):  # one for each level that the client learns of
            await one.send(CLUSTER, *clusters)

        await one.send(ENDPOINT, assignment("b", 1), assignment("c", 2))

        top = one.config.clusters["a"]
        assert isinstance(top, ClusterConfig)
        assert top.children == ("b", "c")
        assert (one.leaf("b").endpoints, one.leaf("c").endpoints) == (assignment("b", 1), assignment("c", 2))


async def test_config__aggregate_of_itself__fails_and_does_not_loop() -> None:
    async with target() as one:
        await one.load(aggregate("a", "a"))

        assert one.config.clusters == {
            "a": Status(StatusCode.UNAVAILABLE, "CDS resource a: the aggregate has no leaf clusters (node ID:n)")
        }


async def test_config__aggregates_deeper_than_16__fail_below() -> None:
    chain = [aggregate("a", "a1"), *(aggregate(f"a{depth}", f"a{depth + 1}") for depth in range(1, 20))]
    async with target() as one:
        await one.load(*chain)
        for _ in range(20):
            await one.send(CLUSTER, *chain)

        assert "a17" not in one.config.clusters
        deepest = one.config.clusters["a16"]
        assert isinstance(deepest, Status)
        assert "nested more than 16 deep" in deepest.message


async def test_config__logical_dns__has_the_resolver_s_addresses_or_its_failure() -> None:
    async def resolve(host: str, port: int) -> Message | Status:
        return await (resolve_by_system if host == "127.0.0.1" else resolve_nothing)(host, port)

    routes = route("r", "a")
    routes.virtual_hosts[0].routes.add(route=route_components_pb2.RouteAction(cluster="b")).match.prefix = "/b"
    async with target(resolve=resolve) as one:
        await one.load(dns_cluster("a", "127.0.0.1", 7), dns_cluster("b", "nowhere.test", 7), to=routes)
        await until(lambda: one.told)

        expected = assignment("127.0.0.1:7", 7)
        expected.endpoints[0].ClearField("locality")
        expected.endpoints[0].ClearField("load_balancing_weight")
        assert one.leaf("a") == EndpointConfig(expected, QUIET)
        assert one.leaf("b") == EndpointConfig(ABSENT, "CDS resource b: no address for nowhere.test (node ID:n)")


@pytest.mark.parametrize(
    ("kind", "name"), [(LISTENER, "svc"), (ROUTE, "r")], ids=lambda value: getattr(value, "short", value)
)
async def test_listener_and_route__in_error__fail_the_target_with_unavailable(kind: ResourceType, name: str) -> None:
    """A88, "Propagating Status to Data Plane RPCs"."""
    async with target() as one:
        if kind is ROUTE:
            await one.send(LISTENER, api_listener("svc", "r"))

        await one.send(kind, errors=[(name, 5, "NOT_FOUND no such thing")])

        text = f"{kind.short} resource {name}: NOT_FOUND no such thing (node ID:n)"
        assert one.told == [Status(StatusCode.UNAVAILABLE, text)]


async def test_cluster_and_endpoints__in_error__fail_their_own_branch_only() -> None:
    routes = route("r", "a")
    for name in ("b", "c"):
        routes.virtual_hosts[0].routes.add(route=route_components_pb2.RouteAction(cluster=name)).match.prefix = "/"
    async with target() as one:
        await one.send(LISTENER, api_listener("svc", "r"))
        await one.send(ROUTE, routes)
        await one.send(CLUSTER, eds_cluster("a"), eds_cluster("b"), errors=[("c", 7, "not yours")])

        await one.send(ENDPOINT, assignment("a", 1), errors=[("b", 5, "gone")])

        assert one.leaf("a") == EndpointConfig(assignment("a", 1), QUIET)
        assert one.leaf("b") == EndpointConfig(ABSENT, "EDS resource b: gone (node ID:n)")
        assert one.config.clusters["c"] == Status(14, "CDS resource c: not yours (node ID:n)")


async def test_resolution_note__ambient_errors__of_the_listener_and_route_for_all_and_of_a_cluster_for_itself() -> None:
    """A88, "Handling Ambient Errors"."""
    routes = route("r", "a")
    routes.virtual_hosts[0].routes.add(route=route_components_pb2.RouteAction(cluster="b")).match.prefix = "/"
    async with target() as one:
        await one.send(LISTENER, api_listener("svc", "r"))
        await one.send(ROUTE, routes)
        await one.send(CLUSTER, eds_cluster("a"), eds_cluster("b"))
        await one.send(ENDPOINT, assignment("a", 1), assignment("b", 1))

        await one.send(LISTENER, errors=[("svc", 13, "L")])
        await one.send(ROUTE, errors=[("r", 13, "R")])
        await one.send(CLUSTER, eds_cluster("b"), errors=[("a", 13, "C")])
        await one.send(ENDPOINT, errors=[("a", 13, "E")])

        above = "LDS resource svc: L; RDS resource r: R"
        assert one.leaf("a").resolution_note == f"{above}; CDS resource a: C; EDS resource a: E (node ID:n)"
        assert one.leaf("b").resolution_note == f"{above} (node ID:n)"
        assert one.leaf("a").endpoints == assignment("a", 1), "ambient: still in use"


async def test_resolution_note__contact_lost__says_so_until_it_is_back() -> None:
    async with target() as one:
        await one.load(eds_cluster("a"))
        await one.send(ENDPOINT, assignment("a", 1))
        one.server.refuse_with = grpc.StatusCode.UNAVAILABLE

        await one.stream.end()

        await until(lambda: "ended before any response" in one.leaf("a").resolution_note)
        assert one.leaf("a").endpoints == assignment("a", 1)


async def test_config__listener_moves_to_another_route__nothing_is_told_until_that_is_there() -> None:
    async with target() as one:
        await one.load(eds_cluster("a"))
        await one.send(ENDPOINT, assignment("a", 1))

        await one.send(LISTENER, api_listener("svc", "r2"))
        assert len(one.told) == 1
        await one.send(ROUTE, route("r2", "a"))

        assert one.config.route == route("r2", "a")
        assert one.leaf("a").endpoints == assignment("a", 1), "kept meanwhile, not asked for again"


async def test_config__cluster_no_longer_routed_to__is_unsubscribed() -> None:
    async with target() as one:
        await one.load(eds_cluster("a"))
        await one.send(ENDPOINT, assignment("a", 1))

        one.stream.send(ROUTE, route("r", "b"))
        assert list((await one.stream.request(CLUSTER)).resource_names) == ["a", "b"]
        await one.send(CLUSTER, eds_cluster("a"), eds_cluster("b"))
        await one.send(ENDPOINT, assignment("b", 2))

        await until(lambda: list(one.config.clusters) == ["b"])
        await until(lambda: list(one.stream.requests[-1].resource_names) == ["b"])


@pytest.mark.parametrize(
    ("listener", "problem"),
    [(http_listener("svc", 1, "r"), "is no API listener"), (api_listener("svc", "r"), "has no virtual host for 'svc'")],
    ids=["server's listener", "no virtual host"],
)
async def test_target__that_cannot_be_served__says_why(listener: Message, problem: str) -> None:
    async with target() as one:
        await one.send(LISTENER, listener)
        if "virtual" in problem:
            other = route("r", "a")
            other.virtual_hosts[0].domains[:] = ["other"]
            await one.send(ROUTE, other)

        (failure,) = one.told
        assert isinstance(failure, Status)
        assert problem in failure.message


@pytest.mark.parametrize("code", [code.value for code in StatusCode if code is not StatusCode.OK])
def test_rpc_status__of_any_code__is_unavailable(code: int) -> None:
    """A54 and A88: NOT_FOUND and INVALID_ARGUMENT must never come out of an RPC of gRPC's own accord."""
    assert rpc_status(Status(code, "text")) == Status(StatusCode.UNAVAILABLE, "text")


@pytest.mark.parametrize(
    ("authority", "found"),
    [
        ("pay.example", "exact"),
        ("PAY.example", "exact"),
        ("x.pay.example", "suffix"),
        ("a.x.pay.example", "suffix"),
        ("y.example", "short suffix"),
        ("pay.test", "prefix"),
        ("anything", "all"),
    ],
)
def test_virtual_host__several_domains_fit__the_best_one_is_taken(authority: str, found: str) -> None:
    routes = route_pb2.RouteConfiguration()
    for name, domain in (
        ("all", "*"),
        ("prefix", "pay.*"),
        ("short suffix", "*.example"),
        ("suffix", "*.pay.example"),
        ("exact", "pay.example"),
    ):
        routes.virtual_hosts.add(name=name, domains=[domain])

    best: Any = virtual_host_for(routes, authority)

    assert best.name == found


@pytest.mark.parametrize(
    ("asked", "service", "name"),
    [
        ("xds:///pay", "pay", "pay/listener"),
        ("pay", "pay", "pay/listener"),
        ("xds://auth/pay%", "pay%", "xdstp://auth/envoy.config.listener.v3.Listener/pay%25"),
        ("xds://own/pay", "pay", "xdstp://own/L/pay"),
    ],
)
def test_listener_name__of_a_target__is_made_by_the_template(asked: str, service: str, name: str) -> None:
    """gRFC A47."""
    bootstrap = Bootstrap(
        (Server("ads"),), Node("n"), {"auth": Authority(), "own": Authority((), "xdstp://own/L/%s")}, "%s/listener"
    )

    assert listener_name(bootstrap, asked) == (service, name)
    with pytest.raises(UnwatchableNameError, match="not in the bootstrap"):
        listener_name(bootstrap, "xds://unknown/pay")
    with pytest.raises(UnwatchableNameError, match="names no service"):
        listener_name(bootstrap, "xds:///")
