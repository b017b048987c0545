"""A backup is put back while data planes are connected, and into an empty installation (reliability F26's neighbours,
decisions D5b). Real processes and databases, real dumps; 200 clients that watch what they are told.
"""

import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from controlplane.config.home import Home
from tests.support.ads_probe import served_clusters
from tests.support.figures import measured
from tests.support.manage import manage
from tests.support.manifests import cluster
from tests.support.postgres import postgresql
from tests.support.stack import running_apart, running_up
from tests.support.valkey import valkey
from tests.support.waiting import eventually
from tests.support.watchers import watchers

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("restore")]

CLIENTS = 200


@dataclass(frozen=True, slots=True)
class Installation:
    """A stopped installation on SQLite whose backup is older than it is."""

    home: Path
    file: Path
    refused: "subprocess.CompletedProcess[str]"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("restore")
    home, file = folder / "home", folder / "parley.backup"
    with running_up(home) as parley:
        parley.apply_and_publish(cluster("kept"))
        backed_up = manage(home, "backup", str(file))
        parley.apply_and_publish(cluster("lost"))
        eventually(lambda: served_clusters(parley.ads_port), lambda names: len(names) == 2, within_s=10)
        refused = manage(home, "restore", str(file))
    assert (backed_up.returncode, backed_up.stderr) == (0, "")
    return Installation(home, file, refused)


def test_backup__of_a_running_installation__is_for_its_owner_only(stopped: Installation) -> None:
    assert stopped.file.stat().st_mode & 0o077 == 0


def test_backup__of_sqlite__is_read_without_a_file_beside_it(stopped: Installation) -> None:
    before = set(stopped.file.parent.iterdir())

    with closing(sqlite3.connect(f"{stopped.file.as_uri()}?mode=ro", uri=True)) as database:
        (environments,) = database.execute("SELECT count(*) FROM catalog_environment").fetchone()
        while_open = set(stopped.file.parent.iterdir())

    assert environments == 1
    assert while_open == before


def test_sqlite__restored_while_it_runs__is_refused_and_told_what_to_stop(stopped: Installation) -> None:
    assert stopped.refused.returncode == 1
    assert "runs in PARLEY_HOME" in stopped.refused.stderr
    assert "Stop it first" in stopped.refused.stderr


def test_sqlite__restored_without_its_keys__says_so(stopped: Installation, tmp_path: Path) -> None:
    restored = manage(tmp_path / "new", "restore", str(stopped.file))

    assert restored.returncode == 1
    assert "But keys of default are missing; start nothing before they are there." in restored.stderr
    assert "Made with keys that are not configured: 2 snapshots." in restored.stderr  # an empty one, and the kept


def test_sqlite__restored_to_an_earlier_moment__is_served_and_goes_on(stopped: Installation) -> None:
    restored = manage(stopped.home, "restore", str(stopped.file))

    assert (restored.returncode, restored.stderr) == (0, "")
    with running_up(stopped.home) as parley:
        eventually(lambda: served_clusters(parley.ads_port), lambda names: names == ["kept"], within_s=10)
        parley.apply_and_publish(cluster("new"))
        eventually(lambda: set(served_clusters(parley.ads_port)), lambda names: names == {"kept", "new"}, within_s=10)


@pytest.fixture
def production(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """URLs of a PostgreSQL and a Valkey."""
    with postgresql() as database, valkey() as redis:
        yield database, redis.url


@pytest.mark.nightly
def test_postgresql__restored_while_200_clients_are_connected__none_is_told_anything_wrong(
    tmp_path: Path, production: tuple[str, str]
) -> None:
    database, redis = production
    home, file = tmp_path / "home", tmp_path / "parley.backup"
    stores = {"DATABASE_URL": database, "REDIS_URL": redis}
    with running_apart(home, stores, ads=2, workers=1) as parley:
        parley.apply_and_publish(cluster("kept"))
        with watchers(parley.ads_ports, count=CLIENTS, listeners=["missing"]) as fleet:
            fleet.agree("kept", within_s=30)
            backed_up = manage(home, "backup", str(file), database=database)
            parley.apply_and_publish(cluster("lost"))
            fleet.agree("kept", "lost", within_s=20)

            started = time.monotonic()
            restored = manage(home, "restore", str(file), database=database)
            back = fleet.agree("kept", within_s=30)
            restored_s = time.monotonic() - started
            parley.apply_and_publish(cluster("new"))
            on = fleet.agree("kept", "new", within_s=20)

    assert (backed_up.returncode, backed_up.stderr) == (0, "")
    assert (restored.returncode, restored.stderr) == (0, "")
    assert back.vanished == {"lost": CLIENTS}
    assert on.vanished == {}
    assert (back.ends, on.ends) == ({}, {})
    assert {name for name, _ in back.errors + on.errors} <= {"missing"}
    assert {code for _, code in back.errors + on.errors} <= {5}
    measured(served_after_s=restored_s, vanished=len(back.vanished))


@pytest.mark.nightly
def test_postgresql__restored_into_an_empty_installation__same_bytes_and_versions_on_the_wire(
    tmp_path: Path, production: tuple[str, str]
) -> None:
    database, redis = production
    stores = {"DATABASE_URL": database, "REDIS_URL": redis}
    file = tmp_path / "parley.backup"
    with running_apart(tmp_path / "old", stores, ads=1, workers=1) as parley:
        parley.apply_and_publish(cluster("a"), cluster("b"))
        with watchers(parley.ads_ports, count=2) as fleet:
            before = fleet.agree("a", "b", within_s=20)
        manage(tmp_path / "old", "backup", str(file), database=database)

    other = database.removesuffix("/postgres") + "/other"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE DATABASE other")
    new = tmp_path / "new"
    started = time.monotonic()
    restored = manage(new, "restore", str(file), database=other)
    restored_s = time.monotonic() - started
    assert (restored.returncode, restored.stderr) == (0, "")

    with (
        running_apart(new, {**stores, "DATABASE_URL": other}, ads=1, workers=1) as parley,
        watchers(parley.ads_ports, count=2) as fleet,
    ):
        after = fleet.agree("a", "b", within_s=20)
    assert after.views == before.views
    measured(restored_s=restored_s)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no backup of a SQLite database"),
        (b"PGDMP custom dump", "those of PostgreSQL need DATABASE_URL"),
        (b"SQLite format 3\x00" + bytes(500), "is damaged"),
    ],
)
def test_restore__from_what_is_no_backup__is_refused_and_changes_nothing(
    stopped: Installation, tmp_path: Path, content: bytes, said: str
) -> None:
    home, file = stopped.home, tmp_path / "wrong"
    database = Home(home).database
    before = database.read_bytes()
    file.write_bytes(content)

    refused = manage(home, "restore", str(file))

    assert refused.returncode == 1
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    assert database.read_bytes() == before


def test_backup__of_a_file_that_exists__is_refused(stopped: Installation, tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("mine")

    refused = manage(stopped.home, "backup", str(file))

    assert (refused.returncode, file.read_text()) == (1, "mine")
    assert "exists already" in refused.stderr
