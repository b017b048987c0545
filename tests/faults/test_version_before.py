"""A rolling upgrade, step by step, and back (reliability F26): what the version before installed is served on by it, on
the tables of this version, then by both beside each other, then by this version, then by the version before again.

All of it in the production shape with 200 clients, by the oracle of `test_connected_fleet`. In each step a change goes
through each kind of process of each version, and clients of both versions refuse something.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from tests.support.data_planes import data_planes
from tests.support.figures import measured, seconds
from tests.support.manage import manage
from tests.support.site import LEAVING_ENDS, MISSING, REPLICAS, WORKERS, Site, nothing_wrong, site_of, stores
from tests.support.stack import ROOT
from tests.support.version_before import NO_HISTORY, migrations_since, version_before
from tests.support.waiting import eventually
from tests.support.watchers import Report
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600), pytest.mark.xdist_group("fleet")]

# What `migrate` waits for a lock at most, and then a read behind it (docs/how-to/backup-and-upgrade.md).
LOCK_WAIT_S = 2


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The code of the version before."""
    code = version_before(tmp_path)
    if code is None:
        # Without git history (a shallow clone, an archive) there is no version before that could be installed.
        pytest.skip(NO_HISTORY)
    return code


@dataclass
class Upgrade:
    """A site on its way from one version to the other, and what its clients remember of that."""

    site: Site
    before: Path
    code: dict[str, Path] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    published: int = 0

    def runs(self, code: Path, *names: str) -> None:
        """Restart these, one after the other, from this checkout."""
        for name in names:
            self.code[name] = code
            self.site.parley.restart(name, code=code)

    def changes(self) -> None:
        """A change reaches every client, built by each of the workers in turn."""
        for only, other in (WORKERS, WORKERS[::-1]):
            self.site.parley.stop(other)
            self.published += 1
            self.site.publish(f"change-{self.published}-built-by-{only}")
            self.reports.append(self.site.converges(within_s=30))
            self.site.parley.start(other, code=self.code.get(other, self.before))

    def refusals(self) -> None:
        """A client of each replica refuses a change; one incident counts both of them."""
        self.published += 1
        name = f"refused-{self.published}"
        with ExitStack() as planes:
            for number, port in enumerate(self.site.parley.ads_ports):
                plane = planes.enter_context(data_planes(f"127.0.0.1:{port}"))
                plane.start(f"{name}-by-{number}", CLUSTER, refuses={name: "no such cluster"}).ask(CLUSTER, name)
            self.site.publish(name)
            eventually(lambda: _refusing(self.site, name), lambda count: count == len(REPLICAS), within_s=20)
        self.reports.append(self.site.converges(within_s=30))


def test_f26__upgraded_step_by_step_and_back_while_clients_are_served__they_notice_nothing(
    tmp_path: Path, before: Path
) -> None:
    home = tmp_path / "home"
    with (
        stores() as (database, redis),
        site_of(home, database, redis, listeners=[MISSING], code=before) as site,
    ):
        upgrade = Upgrade(site, before)
        upgrade.changes()
        with _waits(database.url) as waited_s:
            migrated = manage(home, "migrate", "--no-input", database=database.url)
        upgrade.changes()
        upgrade.refusals()
        for names in (("worker0", "ads0"), ("web",), ("worker1", "ads1")):
            upgrade.runs(ROOT, *names)
            upgrade.changes()
            upgrade.refusals()
        for others in (("ads0", "worker0", "web"), ("ads1", "worker1")):
            upgrade.runs(before, *others)
            upgrade.changes()
            upgrade.refusals()

    assert migrated.returncode == 0, migrated.stderr
    assert ("Applying" in migrated.stdout) == bool(migrations_since(before))  # otherwise this is not the version before
    assert max(waited_s) <= LOCK_WAIT_S
    nothing_wrong(*upgrade.reports, ends=LEAVING_ENDS)
    without_s = max(report.without_s for report in upgrade.reports)
    measured(longest_without_a_stream_s=without_s, longest_wait_for_a_table_s=max(waited_s), changes=upgrade.published)


def _refusing(site: Site, name: str) -> int:
    """How many clients refuse this cluster, by the incident about it."""
    incidents = site.parley.call("GET", "/incidents?environment=default&state=open").body["results"]
    return sum(incident["clients"]["nacked"] for incident in incidents if incident["name"] == name)


@contextmanager
def _waits(database: str) -> Iterator[list[float]]:
    """How long each read of the table that every change locks took, for as long as the block runs."""
    waited_s: list[float] = []
    done = threading.Event()

    def read() -> None:
        with psycopg.connect(database, autocommit=True) as session:
            while not done.is_set():
                waited_s.append(seconds(lambda: session.execute("SELECT count(*) FROM catalog_environment")))
                done.wait(0.02)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield waited_s
    finally:
        done.set()
        reader.join()
