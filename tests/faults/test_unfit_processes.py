"""Processes that do not fit the installation, for real: without keys, with foreign ones, with another clock; and an ADS
process that was killed and started again.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.clocks import WrongClock
from tests.support.fault_proxy import fault_proxies
from tests.support.keys import ENCRYPTION_KEYS, OTHER_KEYS
from tests.support.manifests import cluster
from tests.support.ports import free_ports
from tests.support.postgres import Postgres
from tests.support.site import stores
from tests.support.stack import ROOT, Parley, readiness, running_apart
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("unfit")]

CELERY = ["-m", "celery", "--quiet", "--app", "controlplane.celery"]
COMMANDS = {
    "web": ["-m", "uvicorn", "controlplane.asgi:application", "--lifespan", "off", "--port"],
    "worker": [*CELERY, "worker", "--concurrency", "1"],
    "beat": [*CELERY, "beat", "--schedule"],
    "ads": ["manage.py", "ads"],
    "prepare": ["manage.py", "prepare"],
}
FOREIGN = "open nothing of what this database holds"
ROLES = pytest.mark.parametrize("role", COMMANDS)


class Place:
    """A home of its own beside a running Parley, and what each role is started with there."""

    def __init__(self, home: Path, variables: dict[str, str]) -> None:
        web, ads, metrics, *others = free_ports(6)
        self.home, self.web, self.metrics = home, web, metrics
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_"))}
        self.environment = clean | {
            "PARLEY_HOME": str(home),
            "PARLEY_WEB_ADDRESS": f"127.0.0.1:{web}",
            "PARLEY_ADS_ADDRESS": f"127.0.0.1:{ads}",
            "PARLEY_ADS_METRICS_ADDRESS": f"127.0.0.1:{metrics}",
            **{
                f"PARLEY_{each}_METRICS_ADDRESS": f"127.0.0.1:{port}"
                for each, port in zip(("WEB", "WORKER", "BEAT"), others, strict=True)
            },
            **variables,
        }

    def command(self, role: str) -> list[str]:
        more = {"web": [str(self.web)], "beat": [str(self.home.parent / "beat.schedule")]}
        return [sys.executable, *COMMANDS[role], *more.get(role, [])]

    def ends(self, role: str) -> "subprocess.CompletedProcess[str]":
        """Start it and wait for its end."""
        return subprocess.run(
            self.command(role), cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Parley, Postgres, dict[str, str]]]:
    """The production shape, and the variables that say where its stores are."""
    with stores() as (database, redis):
        where = {"DATABASE_URL": database.url, "REDIS_URL": redis.url}
        home = tmp_path_factory.mktemp("unfit") / "home"
        with running_apart(home, where, ads=1, workers=1) as parley:
            yield parley, database, where


@pytest.fixture
def parley(servers: tuple[Parley, Postgres, dict[str, str]]) -> Parley:
    return servers[0]


@pytest.fixture
def where(servers: tuple[Parley, Postgres, dict[str, str]]) -> dict[str, str]:
    return servers[2]


def silent_and_reporting(parley: Parley) -> tuple[float, float]:
    """ADS processes, as the alert reads them from web."""
    with urllib.request.urlopen(f"http://127.0.0.1:{parley.status_ports['web']}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("parley_replicas{"))
    return float(found['parley_replicas{state="silent"}']), float(found['parley_replicas{state="reporting"}'])


@contextmanager
def started(place: Place, role: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that runs until the block ends, if it does not end before."""
    with (
        (place.home.parent / f"{role}.log").open("wb") as log,
        subprocess.Popen(place.command(role), cwd=ROOT, env=place.environment, stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@ROLES
def test_start__server_database_and_no_keys__is_refused_in_one_sentence_and_makes_none(
    where: dict[str, str], tmp_path: Path, role: str
) -> None:
    place = Place(tmp_path / "home", where)

    refused = place.ends(role)

    assert refused.returncode == 2, refused.stderr
    (line,) = refused.stderr.splitlines()
    # What serves says it in a line of its log.
    said = {"event": line} if role == "prepare" else json.loads(line)
    assert said["event"].startswith("DATABASE_URL names a server, ")
    assert "PARLEY_ENCRYPTION_KEYS is not set" in said["event"]
    assert str(place.home / "encryption.keys") in said["event"]
    assert (said.get("role"), said.get("level")) in {(role, "critical"), (None, None)}
    assert not place.home.exists()


@ROLES
def test_start__keys_that_open_nothing__is_refused_and_says_so(
    where: dict[str, str], tmp_path: Path, role: str
) -> None:
    place = Place(tmp_path / "home", {**where, "PARLEY_ENCRYPTION_KEYS": OTHER_KEYS})

    refused = place.ends(role)

    assert refused.returncode == 2, refused.stderr
    assert FOREIGN in refused.stderr
    assert "Traceback" not in refused.stderr


def test_ready__processes_that_fit__say_so(parley: Parley) -> None:
    status, text = readiness(parley.web_port)

    assert status == 200
    assert {"keys: ok", "schema: ok", "clock: ok"} <= set(text.splitlines())


def test_ads__killed_and_started_again__takes_the_place_of_its_dead_self_at_once(parley: Parley) -> None:
    assert eventually(lambda: silent_and_reporting(parley), lambda found: found == (0, 1), within_s=20)

    parley.stop("ads0", signal.SIGKILL)
    parley.start("ads0")
    parley.ready("ads0")

    # Five seconds may pass until web reads the figures again; half a minute until it would be silent.
    assert eventually(lambda: silent_and_reporting(parley), lambda found: found == (0, 1), within_s=10)


def test_ads__clock_of_its_machine_is_wrong__serves_on_and_says_by_how_much(parley: Parley, tmp_path: Path) -> None:
    parley.stop("ads0")
    parley.start("ads0", WrongClock(tmp_path / "clock", 90).variables)

    parley.ready("ads0")
    said = eventually(lambda: readiness(parley.metrics_ports[0])[1], lambda text: "90 s ahead" in text, within_s=15)
    of_others = eventually(lambda: readiness(parley.web_port)[1], lambda text: "ads process: " in text, within_s=15)
    parley.restart("ads0")

    assert '"ready": true' in said
    assert "ads process: the clock of this machine is 90 s ahead of the database's" in of_others


def test_keys__found_to_be_foreign_once_the_database_is_back__nothing_is_signed_with_them(
    servers: tuple[Parley, Postgres, dict[str, str]], tmp_path: Path
) -> None:
    parley, database, where = servers
    parley.stop("worker0")
    port = int(database.url.rpartition(":")[2].partition("/")[0])
    with fault_proxies(port) as (proxy,):
        by_proxy = {"DATABASE_URL": database.url.replace(f":{port}/", f":{proxy.port}/")}
        place = Place(tmp_path / "home", {**where, **by_proxy, "PARLEY_ENCRYPTION_KEYS": OTHER_KEYS})
        proxy.reset()
        with started(place, "web") as web, started(place, "ads") as ads, started(place, "worker") as worker:
            eventually(lambda: readiness(place.web)[0], lambda status: status == 503, within_s=30)
            eventually(lambda: readiness(place.metrics)[0], lambda status: status == 503, within_s=30)
            change = parley.apply(cluster("waits"))
            proxy.heal()

            worker.wait(60)
            told = [
                eventually(lambda port=each: readiness(port), lambda found: FOREIGN in found[1], within_s=30)  # type: ignore[misc]
                for each in (place.web, place.metrics)
            ]
            assert (web.poll(), ads.poll()) == (None, None)
    with psycopg.connect(database.url) as connection:
        marks = connection.execute("SELECT DISTINCT substr(mac, 1, 16) FROM snapshots_snapshot").fetchall()
        noted = connection.execute("SELECT mark FROM catalog_keymark").fetchall()
    parley.start("worker0")

    assert [status for status, _ in told] == [503, 503]
    assert marks == noted
    assert len(noted) == 1
    assert parley.published(change, within_s=30)["state"] != "saved"


def test_keys__a_process_lacks_the_newest__is_told_and_stays_ready(parley: Parley) -> None:
    parley.stop("web")
    parley.start("web", {"PARLEY_ENCRYPTION_KEYS": f"{OTHER_KEYS},{ENCRYPTION_KEYS}"})
    parley.ready("web")

    said = eventually(
        lambda: readiness(parley.metrics_ports[0]), lambda found: "lacks the newest key" in found[1], within_s=20
    )

    assert said[0] == 200
