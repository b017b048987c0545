"""The aliases against a real PostgreSQL (decisions D6a, reliability.md part (e), "DB")."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError
from django.db.utils import ConnectionHandler
from pytest_django.plugin import DjangoDbBlocker

from controlplane.config.loading import load
from controlplane.database.aliases import READER, databases
from tests.support.keys import ENCRYPTION_KEYS
from tests.support.postgres import postgresql


@pytest.fixture
def connections(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[ConnectionHandler]:
    with postgresql() as url:
        variables = {"DATABASE_URL": url, "PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS}
        handler = ConnectionHandler(databases(load(variables, directory=tmp_path), pooled=False))
        with django_db_blocker.unblock():
            yield handler
            handler.close_all()


def shown(connections: ConnectionHandler, alias: str, name: str) -> str:
    with connections[alias].cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])


def test_postgresql__both_aliases__have_the_time_limits_and_the_reader_one_moment(
    connections: ConnectionHandler,
) -> None:
    for alias in (DEFAULT_DB_ALIAS, READER):
        assert shown(connections, alias, "statement_timeout") == "5s"
        assert shown(connections, alias, "lock_timeout") == "2s"
        assert shown(connections, alias, "idle_in_transaction_session_timeout") == "10s"
    assert shown(connections, DEFAULT_DB_ALIAS, "transaction_isolation") == "read committed"
    assert shown(connections, READER, "transaction_isolation") == "repeatable read"
    with connections[READER].cursor() as cursor, pytest.raises(DatabaseError, match="read-only"):
        cursor.execute("CREATE TABLE fact (text TEXT)")
