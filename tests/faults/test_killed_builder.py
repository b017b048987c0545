"""A worker that dies anywhere in a build: another one ends it, with the same bytes, and nobody sees half of it (F8,
reliability P1 to P3, P6, P12).
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from controlplane.builder.stages.assemble import assemble
from tests.support.ads_probe import served_clusters
from tests.support.figures import measured
from tests.support.manifests import cluster, parsed
from tests.support.ports import free_ports
from tests.support.stack import ROOT, Parley, running_apart
from tests.support.valkey import valkey
from tests.support.waiting import eventually
from xdscore.chunks import encode_root
from xdscore.snapshot import Content, Served, content_hash

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

POINTS = (
    *("build.claimed", "build.turn", "build.read", "build.resolved", "build.assembled"),
    *("publish.locked", "publish.claimed", "publish.blobs_written", "publish.snapshot_written", "publish.recorded"),
    *("publish.committed", "build.ended"),
)


@dataclass(slots=True)
class Workers:
    """Two workers, each ready to take over from the other."""

    environment: dict[str, str]
    armed: Path
    log: Path
    processes: "dict[int, subprocess.Popen[bytes]]" = field(default_factory=dict)

    @property
    def died(self) -> Path:
        return self.armed.with_name("died")

    def start(self, number: int) -> None:
        ready = self.armed.with_name(f"ready-{number}")
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "celery", "--quiet", "--app", "tests.support.mortal_worker:app", "worker"]
        options = ["--concurrency", "1", "--without-gossip", "--without-mingle", "--hostname", f"w{number}@%h"]
        environment = self.environment | {
            "DIE_AT": str(self.armed),
            "DIED": str(self.died),
            "PARLEY_WORKER_METRICS_ADDRESS": f"127.0.0.1:{free_ports(1)[0]}",
            "PARLEY_READY_FILE": str(ready),
            # Hints come first, and a sweep, which would build in the worker itself, last: the pool's process dies.
            "PARLEY_LIMIT_RECONCILE_POLL_MS": "3000",
        }
        with self.log.open("ab") as output:
            self.processes[number] = subprocess.Popen(
                [*command, *options], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        eventually(ready.exists, within_s=60)

    def await_death(self) -> None:
        """Wait until the process that builds is gone. It is a child of a worker's pool or, when a sweep came first, the
        worker itself, which is then started again.
        """
        # There before it is written: a missing file is asked for again, and so is an empty one.
        victim = int(eventually(lambda: self.died.read_text(encoding="ascii"), within_s=10))
        eventually(lambda: _is_gone(victim), within_s=10)
        self.died.unlink()

    def start_the_dead(self) -> None:
        for number, process in self.processes.items():
            if process.poll() is not None:
                assert process.returncode == -9
                self.start(number)

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(30)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Parley, Workers]]:
    folder = tmp_path_factory.mktemp("killed")
    with ExitStack() as exits:
        url = exits.enter_context(valkey()).url
        parley = exits.enter_context(running_apart(folder / "home", {"REDIS_URL": url}, ads=1, workers=1))
        # An ordinary worker builds the first snapshot, without which ADS is not ready; then ours take over.
        parley.processes["worker0"].terminate()
        parley.processes["worker0"].wait(30)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_"))}
        environment = clean | {"PARLEY_HOME": str(parley.home), "REDIS_URL": url, "PYTHONPATH": str(ROOT)}
        workers = Workers(environment, folder / "armed", folder / "workers.log")
        exits.callback(workers.stop)
        for number in range(2):
            workers.start(number)
        yield parley, workers


def test_worker__killed_at_each_point__its_change_is_published_once_with_the_right_bytes(
    stack: tuple[Parley, Workers],
) -> None:
    parley, workers = stack
    names: list[str] = []
    published_s: list[float] = []
    for point in POINTS:
        names.append(point.replace(".", "-").replace("_", "-"))
        before = epoch(parley)
        workers.armed.write_text(point, encoding="utf-8")

        change = parley.apply(static(names[-1]))

        workers.await_death()
        started = time.monotonic()
        after = parley.published(change, within_s=10)
        published_s.append(time.monotonic() - started)
        assert (after["state"], after["epoch"]) == ("published", before + 1), point
        assert root(parley, before + 1) == expected_root(names), point
        assert epoch(parley) == before + 1, f"{point}: one content, one epoch"
        workers.start_the_dead()
    eventually(lambda: set(served_clusters(parley.ads_port)) == set(names), within_s=10)
    measured(points=len(POINTS), slowest_after_the_death_s=max(published_s))


def _is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def static(name: str) -> dict[str, object]:
    return cluster(name, type="STATIC")


def epoch(parley: Parley) -> int:
    answer = parley.call("GET", "/environments/default/snapshots?limit=1")
    return int(answer.body["results"][0]["epoch"])


def root(parley: Parley, number: int) -> str:
    answer = parley.call("GET", f"/environments/default/snapshots/{number}")
    return str(answer.body["root"])


def expected_root(names: list[str]) -> str:
    """What one build of all of them makes, in this process."""
    entries = {}
    for name in names:
        resource = parsed(static(name))
        address = resource.content_hash
        entries["cluster", name] = Served(Content(address, address.hex()[:16], len(resource.any_bytes)))
    return content_hash(encode_root(content_hash(part) for part in assemble(entries).parts)).hex()
