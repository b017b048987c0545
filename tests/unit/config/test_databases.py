"""The two aliases: who takes the writer lock, and what a reader sees (decisions D6a)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.utils import ConnectionHandler
from pytest_django.plugin import DjangoDbBlocker

from controlplane.config.home import home_create
from controlplane.config.loading import load
from controlplane.database.aliases import READER, databases
from tests.support.keys import ENCRYPTION_KEYS

POSTGRES = {
    "DATABASE_URL": "postgres://me:pw@db:6432/parley?sslmode=require",
    "PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS,
}


@pytest.fixture
def connections(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[ConnectionHandler]:
    """Connections of a home of its own, without the test database's mirror."""
    config = load({"PARLEY_HOME": str(tmp_path / "home")}, directory=tmp_path)
    home_create(config)
    handler = ConnectionHandler(databases(config, pooled=True))
    with django_db_blocker.unblock():
        with handler[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("CREATE TABLE fact (text TEXT)")
        yield handler
        handler.close_all()


def test_sqlite__both_aliases__write_ahead_log_and_the_documented_wait(connections: ConnectionHandler) -> None:
    for alias in (DEFAULT_DB_ALIAS, READER):
        with connections[alias].cursor() as cursor:
            pragmas = [
                cursor.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "busy_timeout")
            ]

        assert pragmas == ["wal", 1, 5_000]


def test_sqlite_reader__inside_a_transaction__lets_a_writer_commit_and_sees_one_moment(
    connections: ConnectionHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "get_connection", lambda using=None: connections[using or DEFAULT_DB_ALIAS])

    def count() -> int:
        with connections[READER].cursor() as cursor:
            return int(cursor.execute("SELECT count(*) FROM fact").fetchone()[0])

    with transaction.atomic(using=READER):
        before = count()
        with transaction.atomic(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("INSERT INTO fact VALUES ('new')")
        during = count()

    assert (before, during, count()) == (0, 0, 1)


@pytest.mark.parametrize("pooled", [False, True])
def test_sqlite__of_threads_that_stay__is_kept_open_between_two_looks(
    pooled: bool, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    config = load({"PARLEY_HOME": str(tmp_path / "home")}, directory=tmp_path)
    home_create(config)
    connection = ConnectionHandler(databases(config, pooled=pooled))[DEFAULT_DB_ALIAS]

    def look() -> object:
        connection.close_if_unusable_or_obsolete()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return connection.connection

    with django_db_blocker.unblock():
        assert look() is look()
        connection.close()


def test_postgresql__default__time_limits_and_a_pool_for_passing_threads(tmp_path: Path) -> None:
    config = load({**POSTGRES, "PARLEY_LIMIT_LOCK_TIMEOUT_MS": "1500"}, directory=tmp_path)

    settings = databases(config, pooled=True)["default"]

    assert (settings["NAME"], settings["HOST"], settings["PORT"]) == ("parley", "db", "6432")
    assert isinstance(settings["OPTIONS"], dict)
    assert settings["OPTIONS"]["sslmode"] == "require"
    assert settings["OPTIONS"]["connect_timeout"] == 3
    assert settings["OPTIONS"]["options"] == (
        "-c statement_timeout=5000 -c lock_timeout=1500 -c idle_in_transaction_session_timeout=10000"
    )
    assert settings["OPTIONS"]["pool"]["min_size"] == 0


def test_postgresql__reader__one_moment_and_no_writes(tmp_path: Path) -> None:
    config = load(POSTGRES, directory=tmp_path)

    settings = databases(config, pooled=False)[READER]

    assert isinstance(settings["OPTIONS"], dict)
    assert r"-c default_transaction_isolation=repeatable\ read" in settings["OPTIONS"]["options"]
    assert "-c default_transaction_read_only=on" in settings["OPTIONS"]["options"]
    assert "pool" not in settings["OPTIONS"]
