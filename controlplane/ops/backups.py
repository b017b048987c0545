"""Writes the database to a file, and puts it back: whole, while data planes are served (SQLite and PostgreSQL).

Nothing else of an installation is worth keeping, but for its keys: those are not in the file, on purpose.
"""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from django.core.management import call_command
from django.db import DatabaseError, connections, transaction
from psycopg.conninfo import make_conninfo

from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.services import lineages_renew
from controlplane.config.home import FILE_MODE, Home
from controlplane.config.loading import Config
from controlplane.config.values import Postgres
from controlplane.ops.supervisor.locks import Held, children_gone, supervisor_absent
from controlplane.ops.transfer import TransferError, rows_copy, target_prepare
from controlplane.snapshots.selectors import snapshot_heads

_BEFORE: Final = ".before-restore"
_SQLITE_MAGIC: Final = b"SQLite format 3\x00"
# Of a program's complaints the first ones tell what is the matter.
_SAID_CHARS: Final = 500


class BackupError(Exception):
    """The backup or restore cannot be done; one sentence that says why and what to do. Nothing was changed."""


def backup_write(*, config: Config, file: Path) -> int:
    """Write the whole database, as of one moment, to a new file that only its owner may read; its size in bytes.

    Everything goes on meanwhile. Raises BackupError.
    """
    draft = file.with_name(f".{file.name}.part")
    try:
        if file.exists():
            raise BackupError(f"{file} exists already; a backup never replaces one.")
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, FILE_MODE))
        try:
            if config.database is None:
                _sqlite_write(Home(config.home).database, draft)
            else:
                _run("pg_dump", config.database, "--format=custom", "--no-owner", "--no-privileges", f"--file={draft}")
            os.link(draft, file)
        finally:
            draft.unlink()
    except OSError as error:
        raise BackupError(f"{file} cannot be written: {(error.strerror or str(error)).lower()}.") from error
    return file.stat().st_size


def backup_restore(*, config: Config, file: Path, say: Callable[[str], None]) -> tuple[str, ...]:
    """Replace the database by the one in the file, bring its tables up to date, and begin a new lineage in every
    environment: replicas take what is served now whatever its epoch is (decisions D5b). The environments whose snapshot
    no configured key has signed: what is sealed there cannot be opened.

    A backup of SQLite may go into an empty PostgreSQL; `say` hears then, line by line, what was compared. Raises
    BackupError.
    """
    try:
        there = file.is_file()
    except OSError as error:
        raise BackupError(f"{file} cannot be read: {(error.strerror or str(error)).lower()}.") from error
    if not there:
        raise BackupError(f"There is no file {file}.")
    connections.close_all()
    if config.database is not None and _of_sqlite(file):
        return _sqlite_transfer(file, say)
    if config.database is None:
        _sqlite_restore(Home(config.home), file)
    else:
        _postgresql_restore(config.database, file)
    call_command("migrate", interactive=False, verbosity=0)
    return _begin_anew(file)


def _begin_anew(file: Path) -> tuple[str, ...]:
    foreign = tuple(head.environment for head in snapshot_heads() if not head.genuine)
    lineages_renew(actor=SYSTEM, reason=f"restored from {file.name}")
    return foreign


def _sqlite_transfer(file: Path, say: Callable[[str], None]) -> tuple[str, ...]:
    """Copy a backup of SQLite into PostgreSQL, whole or not at all. Returns what `backup_restore` does. Raises
    BackupError.
    """
    try:
        with closing(_read_only(file)) as source:
            _check(source, file)
            target_prepare(source=source)
            with transaction.atomic():
                rows_copy(source=source, say=say)
                return _begin_anew(file)
    except TransferError as error:
        raise BackupError(str(error)) from error
    except sqlite3.Error as error:
        raise BackupError(f"{file} is damaged: {error}.") from error
    except DatabaseError as error:
        # When the last word of a transaction is lost, only the server knows which it was.
        said = str(error).strip().partition("\n")[0]
        raise BackupError(f"PostgreSQL said at the end: {said}. Run this again: it tells if all was kept.") from error


def _sqlite_write(database: Path, draft: Path) -> None:
    if not database.exists():
        raise BackupError(f"There is no database in PARLEY_HOME {database.parent}.")
    try:
        with closing(_read_only(database)) as source, closing(sqlite3.connect(draft)) as target:
            source.backup(target)
            # A copy of a database that writes ahead could only be read where a file can be made beside it.
            target.execute("PRAGMA journal_mode=DELETE")
            _check(target, database)
    except sqlite3.Error as error:
        raise BackupError(f"{database} cannot be read: {error}.") from error


def _sqlite_restore(home: Home, file: Path) -> None:
    """Replace the SQLite database by the backup; the one that was there stays beside it. Raises BackupError."""
    try:
        supervisor_absent(home)
    except Held as held:
        raise BackupError(f"{held} Stop it first: with SQLite nothing may run while the file is replaced.") from held
    if not children_gone(home):
        raise BackupError(f"Processes of PARLEY_HOME {home.path} are still running. Stop them first.")
    if not _of_sqlite(file):
        raise BackupError(f"{file} is no backup of a SQLite database; those of PostgreSQL need DATABASE_URL.")
    draft = home.database.with_name(f".{home.database.name}.restore")
    draft.unlink(missing_ok=True)
    try:
        with closing(_read_only(file)) as source, closing(sqlite3.connect(draft)) as target:
            draft.chmod(FILE_MODE)
            _check(source, file)
            source.backup(target)
    except sqlite3.Error as error:
        draft.unlink(missing_ok=True)
        raise BackupError(f"{file} is damaged: {error}. The database is as it was.") from error
    for suffix in ("", "-wal", "-shm"):
        part = home.database.with_name(home.database.name + suffix)
        if part.exists():
            part.replace(home.database.with_name(home.database.name + _BEFORE + suffix))
    draft.replace(home.database)


def _of_sqlite(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError as error:
        raise BackupError(f"{file} cannot be read: {(error.strerror or str(error)).lower()}.") from error


def _read_only(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)


def _check(connection: sqlite3.Connection, file: Path) -> None:
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise BackupError(f"{file} is damaged: {said}.")
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'catalog_environment'").fetchone():
        raise BackupError(f"{file} is not a database of Parley.")


def _postgresql_restore(database: Postgres, file: Path) -> None:
    # One transaction: it is all there, or nothing was changed. Idle sessions, as those of ADS, only wait for it.
    options = ("--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error")
    _run("pg_restore", database, *options, str(file))


def _run(program: str, database: Postgres, *arguments: str) -> None:
    """Run one of PostgreSQL's programs; its password goes by the environment, which others cannot read."""
    if shutil.which(program) is None:
        raise BackupError(f"{program} is not installed; it comes with PostgreSQL's client programs.")
    parts: Mapping[str, str] = {
        "host": database.host,
        "port": database.port,
        "user": database.user,
        "dbname": database.name,
        **dict(database.options),
    }
    where = make_conninfo(**{name: value for name, value in parts.items() if value})
    done = subprocess.run(  # noqa: S603 - our own arguments
        [program, *arguments, f"--dbname={where}"],
        env={**os.environ, "PGPASSWORD": database.password},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise BackupError(f"{program} failed: {done.stderr.strip()[:_SAID_CHARS] or f'status {done.returncode}'}")
