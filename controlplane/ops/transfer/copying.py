"""Copies every row of a SQLite database of Parley into an empty PostgreSQL, and compares what is there then.

Rows go by COPY, a table at a time, from one moment of the source; nothing but the row at hand is in memory. What refers
to what is looked at once everything is there, so that no order of tables matters.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.backends.utils import CursorWrapper
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from controlplane.ops.transfer.rows import Digest, Table, table_of

# What `migrate` fills by itself; the backup's rows take their place, because others refer to these by number.
_FILLED_BY_MIGRATE: Final = tuple(table_of(model).name for model in (Permission, ContentType))
# Applications that an older version had. Their tables stay where they are, for that version to run beside this one, and
# hold nothing that is read: what Django's admin pages wrote down stands in the audit log, too.
_RETIRED: Final = frozenset({"admin"})
# Of what is wrong the first ones tell what is the matter.
_MAX_SAID: Final = 10
# Rows of one read of the target. A resource may have a megabyte, and what is read at once is in memory at once.
_ROWS_PER_READ: Final = 100

_Target: TypeAlias = psycopg.Connection[tuple[Any, ...]]


class TransferError(Exception):
    """The database cannot be copied. The text says what, where, and what to do. The target is as empty as before."""


def tables() -> tuple[Table, ...]:
    """Every table that holds rows of the installation: all but the list of migrations, which the target writes
    itself.
    """
    found = apps.get_models(include_auto_created=True)
    return tuple(table_of(model) for model in found if model._meta.managed and not model._meta.proxy)  # noqa: SLF001


def target_prepare(*, source: sqlite3.Connection) -> None:
    """Create the tables in the default database, an empty PostgreSQL. Raises TransferError, before anything is changed,
    where `source` is of another version or the target is not empty.
    """
    with _in_words():
        _migrations_agree(source)
        _refuse_rows()
        call_command("migrate", interactive=False, verbosity=0)


def rows_copy(*, source: sqlite3.Connection, say: Callable[[str], None]) -> None:
    """Copy every row of `source` into the target within the caller's transaction, and compare both. `say` is called
    with a line for each table.

    Other writers wait for the end of the transaction. Raises TransferError; then the caller must roll back.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("a copy needs a transaction")
    target: _Target = connection.connection
    every = tables()
    rows, refusals = 0, list[str]()
    with _in_words(), _one_moment(source):
        _take(target, every)
        for table in every:
            digest = _copy(source, target, table, refusals)
            if refusals:
                continue
            _compare(target, digest)
            _number_on(source, target, table)
            target.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table.name)))
            rows += digest.rows
            if digest.rows:
                say(f"  {table.name}: {digest.rows:,} rows, {digest.hex}")
        if refusals:
            raise _refused(refusals)
        # What refers to what, which else would be looked at when the transaction ends.
        target.execute("SET CONSTRAINTS ALL IMMEDIATE")
    say(f"{rows:,} rows of {len(every)} tables were read back: counts and hashes are those of the backup.")


def _migrations_agree(source: sqlite3.Connection) -> None:
    ours = set(MigrationLoader(None).disk_migrations)
    listed = set(source.execute("SELECT app, name FROM django_migrations"))
    theirs = {each for each in listed if each[0] not in _RETIRED}
    if unknown := theirs - ours:
        raise TransferError(
            f"The backup was made by a newer version of Parley, or by another program: this one does not know "
            f"{_migrations(unknown)}. Restore it with the version that made it, and upgrade afterwards."
        )
    if missing := ours - theirs:
        raise TransferError(
            f"The backup was made by an older version of Parley, whose tables lack {_migrations(missing)}. Bring it "
            "up to date first: restore it into a home on SQLite with this version (without DATABASE_URL), and back "
            "that up."
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_SAID} more" if len(names) > _MAX_SAID else ""
    return ", ".join(names[:_MAX_SAID]) + more


def _migrations(some: set[tuple[str, str]]) -> str:
    return _listed([f"{app}.{name}" for app, name in sorted(some)])


def _refuse_rows() -> None:
    """Raise TransferError when the target database holds any row."""
    there = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        names = [each.name for each in tables() if each.name in there.difference(_FILLED_BY_MIGRATE)]
        held = [name for name in names if _has_rows(cursor, name)]
    if held:
        raise TransferError(
            f"The database that DATABASE_URL names is not empty: there are rows in {_listed(held)}. "
            "A backup of SQLite goes into a database in which nothing was prepared yet: make a new one, and run "
            "this before `manage.py prepare` and before anything is started with it."
        )


def _has_rows(cursor: CursorWrapper, name: str) -> bool:
    cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {connection.ops.quote_name(name)})")  # noqa: S608  our own tables
    return bool(cursor.fetchone()[0])


def _take(target: _Target, every: tuple[Table, ...]) -> None:
    """Lock the target's tables, so that nobody else writes until the transaction ends, and empty those that migrations
    filled.
    """
    for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
        target.execute(sql.SQL("SET LOCAL {} = 0").format(sql.Identifier(limit)))
    names = sql.SQL(", ").join(sql.Identifier(each.name) for each in every)
    target.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(names))
    _refuse_rows()
    for name in _FILLED_BY_MIGRATE:
        target.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))


def _copy(source: sqlite3.Connection, target: _Target, table: Table, refusals: list[str]) -> Digest:
    """Copy all rows of a table, and return the digest of what was read. Values that PostgreSQL cannot keep are noted in
    `refusals`; after the first, further rows are only checked.
    """
    digest = Digest(table)
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), _columns(table))
    # A name in double quotes alone would be a text to SQLite where there is no such column.
    columns = ", ".join(f'"{table.name}"."{name}"' for name in table.names)
    with target.cursor() as cursor, cursor.copy(statement) as copy:
        for found in source.execute(f'SELECT {columns} FROM "{table.name}"'):  # noqa: S608  our own tables
            row = table.converted(found, refusals)
            if len(refusals) > _MAX_SAID:
                raise _refused(refusals)
            if not refusals:
                digest.add(row)
                copy.write_row(row)
    return digest


def _compare(target: _Target, copied: Digest) -> None:
    there = Digest(copied.table)
    statement = sql.SQL("SELECT {} FROM {}").format(_columns(copied.table), sql.Identifier(copied.table.name))
    with target.cursor(name="parley_compare") as cursor:
        cursor.itersize = _ROWS_PER_READ
        for row in cursor.execute(statement):
            there.add(row)
    if (there.rows, there.hex) != (copied.rows, copied.hex):
        raise TransferError(
            f"What PostgreSQL has of {copied.table.name} is not what the backup has: {there.rows:,} rows with hash "
            f"{there.hex} there, {copied.rows:,} with {copied.hex} here. Does a trigger change it? Nothing was kept."
        )


def _number_on(source: sqlite3.Connection, target: _Target, table: Table) -> None:
    """Make the target give new rows ids that no row of the source ever had, also not a deleted one, because ids may
    still be remembered somewhere.
    """
    if not table.serial:
        return
    used = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?"
    (last,) = source.execute(used, (table.name,)).fetchone()
    if last:
        target.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", (table.name, table.serial, last))


def _columns(table: Table) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in table.names)


def _refused(refusals: list[str]) -> TransferError:
    more = "\nThere may be more." if len(refusals) > _MAX_SAID else ""
    said = "\n".join(f"  {each}" for each in refusals[:_MAX_SAID])
    return TransferError(
        f"The backup holds what PostgreSQL cannot keep. Change it where it came from, and back up anew:\n{said}{more}"
    )


@contextmanager
def _one_moment(source: sqlite3.Connection) -> Iterator[None]:
    """Let all reads of the source, until the end of the block, see the database as it was at one moment."""
    source.execute("BEGIN")
    try:
        yield
    finally:
        source.rollback()


@contextmanager
def _in_words() -> Iterator[None]:
    """Turn a database error within the block into a TransferError. Its text never contains the refused row, which may
    hold secrets.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise TransferError(f"The backup cannot be read: {error}.") from error
    except psycopg.errors.LockNotAvailable as error:
        raise TransferError(
            "Somebody uses the database that DATABASE_URL names. Stop everything that was started with it, and "
            "run this again."
        ) from error
    except (psycopg.Error, DatabaseError) as error:
        cause = error if isinstance(error, psycopg.Error) else error.__cause__
        said = cause.diag.message_primary if isinstance(cause, psycopg.Error) else None
        where = f" at {cause.diag.table_name}" if isinstance(cause, psycopg.Error) and cause.diag.table_name else ""
        raise TransferError(f"PostgreSQL said{where}: {said or error}. Nothing was kept.") from error
