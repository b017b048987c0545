"""Tables whose rows are only ever added: the database refuses UPDATE, DELETE and TRUNCATE (reliability threat 24).

A model that inherits `AppendOnly` is guarded: `manage.py migrate` puts the triggers in place each time, because a
migration that rebuilds a table on SQLite loses them. What must remove rows all the same (an environment that is
deleted, retention, tests that empty tables) says so with `maintenance`, for its own transaction and no other
(decisions D23).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

# SQLite has no settings of a transaction: a row that no other transaction sees, because it is never committed.
_FLAG_TABLE: Final = "parley_maintenance"
_FLAG: Final = "parley.maintenance"


class AppendOnly(models.Model):
    """The base of models whose rows are never changed and never removed."""

    class Meta:
        """An abstract model, without a table of its own."""

        abstract = True


def guarded_models() -> tuple[type[models.Model], ...]:
    """The models whose rows are never changed and never removed."""
    return tuple(model for model in apps.get_models() if issubclass(model, AppendOnly))


def guards_ensure(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers of every append-only table that exists; one that exists is left as it is."""
    existing = set(connection.introspection.table_names())
    tables = [model._meta.db_table for model in guarded_models() if model._meta.db_table in existing]  # noqa: SLF001
    statements = _sqlite if connection.vendor == "sqlite" else _postgresql
    with connection.cursor() as cursor:
        for statement in statements(tables):
            cursor.execute(statement)


@contextmanager
def maintenance(*, using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Let the current transaction change append-only rows until the end of the block. Raises RuntimeError outside of a
    transaction: nothing would end it.
    """
    connection = connections[using]
    if not connection.in_atomic_block:
        raise RuntimeError("maintenance of append-only tables needs a transaction")
    if connection.vendor == "sqlite":
        begin, end = f"INSERT INTO {_FLAG_TABLE} VALUES (1)", f"DELETE FROM {_FLAG_TABLE}"  # noqa: S608  a constant
    else:
        begin, end = f"SET LOCAL {_FLAG} = 'on'", f"SET LOCAL {_FLAG} = 'off'"
    with connection.cursor() as cursor:
        cursor.execute(begin)
    yield
    with connection.cursor() as cursor:
        cursor.execute(end)


def _sqlite(tables: list[str]) -> Iterator[str]:
    yield f"CREATE TABLE IF NOT EXISTS {_FLAG_TABLE} (flag INTEGER)"
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER IF NOT EXISTS {table}_no_{verb.lower()} BEFORE {verb} ON {table} "  # noqa: S608  names of our own
                f"WHEN NOT EXISTS (SELECT 1 FROM {_FLAG_TABLE}) "
                f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are only ever added'); END"
            )


def _postgresql(tables: list[str]) -> Iterator[str]:
    yield f"""
        CREATE OR REPLACE FUNCTION parley_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF coalesce(current_setting('{_FLAG}', true), '') <> 'on' THEN
                RAISE EXCEPTION 'rows of % are only ever added', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
            END IF;
            IF TG_OP = 'UPDATE' THEN RETURN NEW; END IF;
            RETURN OLD;
        END $$
    """
    for table in tables:
        yield (
            f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION parley_append_only()"
        )
        yield (
            f"CREATE OR REPLACE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION parley_append_only()"
        )
