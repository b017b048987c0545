"""The version before and this one beside each other: what each writes, the other reads. Snapshots, hints and facts, and
what the one's xdsctl asks of the other's server (docs/reference/versions.md). `test_version_before` takes minutes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.data_planes import DataPlane, data_planes
from tests.support.manage import manage
from tests.support.manifests import cluster
from tests.support.site import stores
from tests.support.stack import ROOT, Parley, running_apart
from tests.support.version_before import NO_HISTORY, migrations_since, version_before
from tests.support.waiting import eventually
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("fleet")]

# Longer than the test: what a replica has within it, a hint told it.
ONLY_HINTS = {"PARLEY_LIMIT_RECONCILE_POLL_MS": "60000"}


def xdsctl(code: Path, parley: Parley, *arguments: str) -> None:
    """Run xdsctl of this checkout; it must be done."""
    variables = {"XDSCTL_SERVER": f"http://127.0.0.1:{parley.web_port}", "XDSCTL_TOKEN": parley.token}
    command = [sys.executable, "-m", "xdsctl", *arguments]
    said = subprocess.run(
        command, cwd=code, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=60
    )
    assert said.returncode == 0, said.stderr


def refusing(parley: Parley, name: str) -> int:
    """How many clients refuse this cluster, by the incident about it."""
    incidents = parley.call("GET", "/incidents?environment=default&state=open").body["results"]
    return sum(incident["clients"]["nacked"] for incident in incidents if incident["name"] == name)


def test_last_two_versions__beside_each_other__each_reads_what_the_other_wrote(tmp_path: Path) -> None:
    before = version_before(tmp_path)
    if before is None:
        pytest.skip(NO_HISTORY)
    home, replicas = tmp_path / "home", ("ads0", "ads1")
    with (
        stores() as (database, redis),
        running_apart(
            home,
            {"DATABASE_URL": database.url, "REDIS_URL": redis.url},
            ads=len(replicas),
            workers=2,
            of=dict.fromkeys(replicas, ONLY_HINTS),
            code=before,
            later=("worker1", "ads1"),
        ) as parley,
        data_planes(f"127.0.0.1:{parley.ads_ports[0]}") as old,
        data_planes(f"127.0.0.1:{parley.ads_ports[1]}") as new,
    ):
        refusals = ("refused-of-old", "refused-of-new")
        planes: list[DataPlane] = []

        def changed(name: str, *, by: Path) -> None:
            """A change that xdsctl of this checkout applies reaches the clients of both replicas; both refuse another
            one, which is counted as one.
            """
            manifest = tmp_path / f"{name}.json"
            manifest.write_text(json.dumps(cluster(name)))
            xdsctl(by, parley, "apply", "-f", str(manifest))
            for plane in planes:
                eventually(plane.held, lambda held: held[CLUSTER.word, name].state == "acked", within_s=20)
            parley.apply_and_publish(cluster(f"refused-{name}"))
            eventually(lambda: refusing(parley, f"refused-{name}"), lambda count: count == len(planes), within_s=20)

        parley.apply_and_publish(cluster("there"))
        migrated = manage(home, "migrate", "--no-input", database=database.url)
        parley.start("ads1", code=ROOT)
        parley.ready("ads1")
        for number, each in enumerate((old, new)):
            refuses = dict.fromkeys(refusals, "no such cluster")
            plane = each.start(f"client-{number}", CLUSTER, refuses=refuses)
            plane.ask(CLUSTER, "there", "of-old", "of-new", *refusals)
            planes.append(plane)
            eventually(plane.held, lambda held: held[CLUSTER.word, "there"].state == "acked", within_s=20)
        changed("of-old", by=ROOT)  # asked of the old server by the new xdsctl, built by the old worker
        parley.start("worker1", code=ROOT)
        parley.stop("worker0")
        parley.restart("web", code=ROOT)
        changed("of-new", by=before)  # asked of the new server by the old xdsctl, built by the new worker

    assert migrated.returncode == 0, migrated.stderr
    assert ("Applying" in migrated.stdout) == bool(migrations_since(before))
