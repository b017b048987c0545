"""Another database for the connections of this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection, connections, transaction

from controlplane.config.loading import load
from controlplane.database.aliases import databases
from tests.support.keys import ENCRYPTION_KEYS

# What `migrate` writes beside the tables: which migrations were applied, and what Django knows of models.
MIGRATED = {"django_migrations", "django_content_type", "auth_permission"}


@contextmanager
def connected_to(url: str) -> Iterator[None]:
    """Let every connection that is opened from now on go to another database, until the block ends."""
    config = load({"DATABASE_URL": url, "PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS}, directory=settings.PARLEY.home)
    others = connections.configure_settings(databases(config, pooled=False))
    before = {alias: connections.settings[alias] for alias in others}
    _point(others)
    try:
        yield
    finally:
        _point(before)


def postgresql_empty() -> None:
    """Leave no row but those that `migrate` itself writes, and let ids begin at 1 again: what `manage.py flush` does,
    which makes every table anew and takes many times as long. What a test wrote is little.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = {name for (name,) in cursor.fetchall()} - MIGRATED
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (TABLE {name})" for name in tables))
        written = [name for (name,) in cursor.fetchall()]
        # Without the order that foreign keys ask for, and without the triggers of tables that are only ever added to.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for name in written:
            cursor.execute(f"DELETE FROM {name}")  # noqa: S608  the name comes from the database itself
        cursor.execute(
            "SELECT setval(format('%%I.%%I', schemaname, sequencename)::regclass, start_value, false)"
            " FROM pg_sequences WHERE last_value IS NOT NULL AND sequencename <> ALL(%s)",
            [[f"{name}_id_seq" for name in MIGRATED]],
        )


def _point(chosen: dict[str, dict[str, object]]) -> None:
    for alias, values in chosen.items():
        connections[alias].close()
        del connections[alias]
        connections.settings[alias] = values
