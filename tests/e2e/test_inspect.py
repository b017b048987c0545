"""What real data planes say of themselves, read by `xdsctl inspect` and held against what Parley believes: they agree
at rest, and where they do not, it is said which, how, and since when.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.backends import grpc_backend
from tests.support.certificates import Authority
from tests.support.envoy import Envoy, bootstrap_of, envoy_with
from tests.support.fault_proxy import FaultProxy, fault_proxies
from tests.support.grpc_client import GrpcClient, grpc_client, simple_bootstrap
from tests.support.manifests import TYPE, Tree, api_listener, cluster, endpoints, listener, route
from tests.support.ports import free_ports
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually
from tests.support.xdsctl import DONE, Said, Xdsctl, xdsctl_for

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("inspect")]

# What moved a moment ago is not compared (controlplane.explain.beliefs.SETTLED_AFTER); and some time for the facts.
SETTLED_S = 13.0
DEFAULT = "/environments/default"


def secured(name: str, secret: str) -> Tree:
    """A cluster whose certificate comes over SDS."""
    source = {"name": secret, "sds_config": {"ads": {}, "resource_api_version": "V3"}}
    context = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
    tls = {"@type": TYPE + context, "common_tls_context": {"tls_certificate_sds_secret_configs": [source]}}
    return cluster(name, transport_socket={"name": "tls", "typed_config": tls})


def cold(name: str) -> Tree:
    """A cluster that waits for endpoints for longer than any test takes: in SotW nothing says that there are none."""
    tree = cluster(name, eds=True)
    source = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "300s"}
    return {**tree, "eds_cluster_config": {"eds_config": source}}


def secret(name: str) -> Tree:
    key, certificate = (part.decode() for part in Authority("inspect").issue("spiffe://td.example/edge"))
    return {
        "@type": f"{TYPE}envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": name,
        "tls_certificate": {"certificate_chain": {"inline_string": certificate}, "private_key": {"inline_string": key}},
    }


@dataclass(frozen=True)
class World:
    """A Parley with four Envoys, of which one can be cut off, and a gRPC client that has talked to two targets."""

    parley: Parley
    xdsctl: Xdsctl
    envoys: dict[str, Envoy]
    proxy: FaultProxy
    csds: int

    def inspect(self, node: str, *more: str) -> Said:
        where = ("--csds", f"127.0.0.1:{self.csds}")
        if node in self.envoys:
            where = ("--envoy-admin", f"http://127.0.0.1:{self.envoys[node].admin}")
        return self.xdsctl("inspect", *where, *more)

    def report(self, node: str) -> Any:
        return self.inspect(node, "--report", "-o", "json").data

    def differences(self, node: str) -> dict[tuple[str, str], tuple[str, str]]:
        found = self.report(node)["differences"]
        return {(each["type"], each["name"]): (each["kind"], each["sentence"]) for each in found}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("inspect")
    (port,) = free_ports(1)
    with ExitStack() as stack:
        parley = stack.enter_context(running_up(folder / "home"))
        backend = stack.enter_context(grpc_backend("parley"))
        _rules(parley)
        parley.apply_and_publish(
            *(cluster("pay", eds=True), endpoints("pay", backend), route("r", "pay"), listener("edge", "r", port)),
            *(cluster("plain"), cold("cold"), endpoints("cold", 9000), secret("edge-key"), secured("tls", "edge-key")),
            *(api_listener("xds-echo", "r"), api_listener("xds-gone", "r")),
        )
        (proxy,) = stack.enter_context(fault_proxies(parley.ads_port))
        envoys = {}
        for node, api_type, ads in (
            ("sotw", "GRPC", parley.ads_port),
            ("delta", "DELTA_GRPC", parley.ads_port),
            ("odd", "GRPC", parley.ads_port),
            ("cut", "GRPC", proxy.port),
        ):
            place = folder / node
            place.mkdir()
            configuration = bootstrap_of(ads_port=ads, node_id=node, api_type=api_type)
            if node == "odd":
                # As its operator left it: the same name that Parley serves, which goes before.
                configuration["static_resources"]["clusters"].append({"name": "plain", "connect_timeout": "7s"})
            envoys[node] = stack.enter_context(envoy_with(place, configuration))
        client: GrpcClient = stack.enter_context(
            grpc_client(simple_bootstrap(ads_port=parley.ads_port, node_id="echo-client", features=()))
        )
        for target in ("xds:///xds-echo", "xds:///xds-gone"):
            assert client.call(target).code == "OK"
        found = World(parley, xdsctl_for(parley, folder), envoys, proxy, client.serve_status())
        time.sleep(SETTLED_S)
        yield found


def _rules(parley: Parley) -> None:
    """Secrets for all, API listeners for gRPC and one Envoy, and for one Envoy a cluster without its endpoints."""
    for key, node_ids in (("at-rest", ["sotw", "delta", "odd"]), ("warm", ["sotw", "delta", "cut", "echo-client"])):
        group = {"key": key, "matchers": [{"node_id": node_id} for node_id in node_ids], "trust": "declared"}
        assert parley.call("POST", f"{DEFAULT}/client-groups", group).status == 201
    rules: tuple[dict[str, object], ...] = (
        {"types": ["secret"], "pattern": "edge-key", "effect": "allow"},
        {"types": ["listener"], "pattern": "xds-*", "effect": "hide", "client_groups": ["at-rest"]},
        {"types": ["cluster"], "pattern": "cold", "effect": "hide", "client_groups": ["warm"]},
        {"types": ["endpoint"], "pattern": "cold", "effect": "deny"},
    )
    for rule in rules:
        made = parley.call("POST", f"{DEFAULT}/rules", rule)
        assert made.status == 201, made


@pytest.mark.parametrize("node", ["sotw", "delta"])
def test_inspect__envoy_at_rest__agrees_in_everything(world: World, node: str) -> None:
    said = world.inspect(node, "--report", "-o", "json")

    report = said.data["report"]
    assert (said.status, said.data["differences"]) == (DONE, [])
    # Three clusters, endpoints, listener, route; and the secret, of which SotW shows nothing to compare.
    assert (report["agreeing"], report["by_presence"]) == (7, 1 if node == "sotw" else 0)
    assert f"'{node}' and Parley agree in 7 of 7 names." in said.err


def test_inspect__grpc_at_rest__agrees_in_everything_by_content(world: World) -> None:
    said = world.inspect("echo-client", "--report", "-o", "json")

    assert (said.status, said.data["differences"]) == (DONE, [])
    assert (said.data["report"]["agreeing"], said.data["report"]["by_presence"]) == (5, 0)


def test_inspect__acknowledged_but_not_in_use__is_said_which_and_why(world: World) -> None:
    assert world.differences("odd") == {
        ("cluster", "plain"): (
            "static",
            "Its own bootstrap has one of this name, which goes before what Parley sends: r1.",
        ),
        ("cluster", "cold"): (
            "not_in_use",
            "It took r1 and does not use it yet: something that it needs is not there.",
        ),
    }
    # Envoy acknowledges API listeners and ignores them.
    missing = ("missing", "It does not have it; Parley believes it has r1.")
    assert world.differences("cut") == dict.fromkeys([("listener", "xds-echo"), ("listener", "xds-gone")], missing)


def test_inspect__client_cut_off_or_told_no__differs_since_then_until_it_is_as_believed(world: World) -> None:
    parley = world.parley
    world.differences("cut")
    world.proxy.reset()
    # An endpoint more for an Envoy that cannot hear of it, a listener less for a gRPC client that keeps it, and a
    # policy that Envoy takes and gRPC refuses.
    gone = {"type": "listener", "name": "xds-gone"}
    maglev = cluster("pay", eds=True, lb_policy="MAGLEV")
    changed = (cluster("plain", connect_timeout="9s"), maglev, endpoints("pay", 9000, 9001))
    parley.apply_and_publish(*changed, delete=[gone], losing=2)
    eventually(lambda: not client_of(parley, "cut")["connected"], within_s=10)
    time.sleep(SETTLED_S)

    first, again = world.report("cut"), world.report("cut")
    grpc = world.report("echo-client")
    said = {(row["type"], row["name"]): row for row in world.inspect("echo-client", "-o", "json").data}
    page = world.parley.call("GET", f"/clients/{client_of(parley, 'cut')['id']}/said").body
    world.proxy.heal()
    eventually(lambda: client_of(parley, "cut")["connected"], within_s=30)
    healed = eventually(lambda: world.differences("cut"), lambda found: len(found) == 1, within_s=20)

    away = "is published, and it has no open stream to get it by."
    found = {(each["type"], each["name"]): each["sentence"] for each in first["differences"]}
    assert found["cluster", "plain"] == found["cluster", "pay"] == f"It has r1; r2 {away}"
    assert found["endpoint", "pay"] == f"It has other hosts; r2 {away}"
    assert [each["since"] for each in again["differences"]] == [each["since"] for each in first["differences"]]
    assert all(each["seen_at"] > each["since"] for each in again["differences"])
    assert page == again
    # Of what it refused Parley knows, and it was given again what it had: it believes all is well (F17a).
    assert (said["cluster", "pay"]["state"], said["cluster", "pay"]["held"]) == ("ACKED", True)
    [kept] = grpc["differences"]
    assert (kept["kind"], kept["name"], kept["state"]) == ("keeps", "xds-gone", "RECEIVED_ERROR")
    assert kept["sentence"] == "It has r1; Parley believes it has none."
    assert kept["error"].startswith("NOT_FOUND [XDS2102] Listener 'xds-gone' was removed from 'default'.")
    assert healed.keys() == {("listener", "xds-echo")}


def client_of(parley: Parley, node: str) -> Any:
    [found] = parley.call("GET", f"/clients?node_id={node}").body["results"]
    return found
