"""The pool of connections to a real PostgreSQL that goes away and comes back (reliability F5)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, DatabaseError
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.utils import ConnectionHandler
from pytest_django.plugin import DjangoDbBlocker

from controlplane.config.loading import load
from controlplane.database.aliases import databases
from tests.support.keys import ENCRYPTION_KEYS
from tests.support.postgres import postgresql_server

# Tries that come twice as late after each other would be made after 1, 3, 7 and 15 s.
_AWAY_S = 7.5
_WITHIN_S = 2.0


@contextmanager
def pooled(url: str, home: Path) -> Iterator[DatabaseWrapper]:
    """A connection as web has it."""
    variables = {"DATABASE_URL": url, "PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS}
    handler = ConnectionHandler(databases(load(variables, directory=home), pooled=True))
    connection = handler[DEFAULT_DB_ALIAS]
    assert isinstance(connection, DatabaseWrapper)
    try:
        yield connection
    finally:
        handler.close_all()
        connection.close_pool()


def test_pool__server_was_away__is_used_again_a_second_after_it_is_back(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with postgresql_server() as server, django_db_blocker.unblock(), pooled(server.url, tmp_path) as connection:
        connection.ensure_connection()
        server.stop()
        stopped = time.monotonic()
        with suppress(DatabaseError):
            connection.cursor().execute("SELECT 1")
        connection.close()
        with suppress(DatabaseError):
            connection.ensure_connection()  # asks for a new one, and from then on the pool tries
        time.sleep(stopped + _AWAY_S - time.monotonic())
        server.start()
        began = time.monotonic()

        connection.ensure_connection()

        took_s = time.monotonic() - began
    assert took_s < _WITHIN_S


def test_pool__server_was_started_again__first_one_who_asks_is_served(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with postgresql_server() as server, django_db_blocker.unblock(), pooled(server.url, tmp_path) as connection:
        connection.ensure_connection()
        connection.close()  # back to the pool, as at the end of a request
        server.stop()
        server.start()

        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            found = cursor.fetchone()

    assert found == (1,)
