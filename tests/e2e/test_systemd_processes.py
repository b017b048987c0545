"""Every process of deploy/systemd by its own ExecStart and environment, as its unit has them, but without systemd: with
the database role that the page makes, a broker that wants a password, and the wrapper and the backups beside them.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from controlplane.ops.supervisor.valkey import valkey_binary
from tests.support.ports import free_ports
from tests.support.postgres import client_programs, postgresql
from tests.support.stack import readiness
from tests.support.systemd import FOLDER, ROOT, outside, release_make, unit
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("production")]

PASSWORD = "of-the-database"
REDIS_PASSWORD = "of-the-broker"
PLACES = [("web", ""), ("worker", ""), ("beat", ""), ("ads@", "1"), ("ads@", "2")]


@dataclass(slots=True)
class Machine:
    """What the page makes of an empty machine, below one directory: /etc, /var/lib, /var/backups and /opt."""

    root: Path
    ports: dict[str, int] = field(default_factory=dict)

    def here(self, text: str) -> str:
        """A path or an address of the installation as it is on this machine."""
        text = re.sub(r"/(?:opt|etc|var/lib|var/backups)/parley", lambda found: f"{self.root}{found[0]}", text)
        for port, free in self.ports.items():
            text = re.sub(rf"(^|:){port}$", rf"\g<1>{free}", text)
        return text

    def environment(self, name: str, instance: str = "") -> dict[str, str]:
        """What systemd would give to a unit's process."""
        own = unit(f"parley-{name}.service").environment(instance, self.root)
        # Programs of PostgreSQL are installed by their package, and found where all are.
        path = f"{client_programs()}:{outside()['PATH']}"
        return outside() | {"PATH": path} | {key: self.here(value) for key, value in own.items()}

    def command(self, name: str, instance: str = "") -> list[str]:
        """What systemd would start for a unit."""
        variables = {"BACKUPS_KEPT": "2"}
        return [self.here(word) for word in unit(f"parley-{name}.service").command(instance, variables)]

    def run(self, name: str) -> "subprocess.CompletedProcess[str]":
        """Start a unit that ends by itself, and wait for its end."""
        command, environment = self.command(name), self.environment(name)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)

    @contextmanager
    def running(self, name: str, instance: str) -> Iterator[None]:
        """A unit that serves, until the block ends."""
        log = self.root / f"{name}{instance}.log"
        (self.root / "var" / "lib" / f"parley-{name.replace('@', '-')}{instance}").mkdir(mode=0o700)
        with (
            log.open("wb") as output,
            subprocess.Popen(
                self.command(name, instance), env=self.environment(name, instance), stdout=output, stderr=output
            ) as process,
        ):
            try:
                yield
            finally:
                process.terminate()
                process.wait(30)


def _role_make(superuser: str) -> str:
    """Run database.sql as the page does; the URL of the role it makes."""
    script = f"\\set password '{PASSWORD}'\n" + (FOLDER / "database.sql").read_text(encoding="utf-8")
    where = urlsplit(superuser)
    # The page's superuser has another name than the role, which the tests' server has not.
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("CREATE ROLE postgres SUPERUSER LOGIN")
    with psycopg.connect(superuser.replace("parley@", "postgres@"), autocommit=True) as connection:
        connection.execute("ALTER ROLE parley RENAME TO tests")
    subprocess.run(
        [client_programs() / "psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1",
         f"postgres://postgres@{where.hostname}:{where.port}/postgres"],
        input=script, check=True, text=True, timeout=30,
    )  # fmt: skip
    return f"postgres://parley:{PASSWORD}@{where.hostname}:{where.port}/parley"


@contextmanager
def _broker() -> Iterator[str]:
    binary, (port,) = valkey_binary(), free_ports(1)
    command = [str(binary), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--requirepass", REDIS_PASSWORD]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield f"redis://:{REDIS_PASSWORD}@127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(10)


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    found = Machine(tmp_path_factory.mktemp("machine"))
    found.ports.update(zip(("8000", "18001", "18002", "9111", "9112"), free_ports(5), strict=True))
    for folder in ("etc/parley", "var/lib/parley", "var/backups/parley"):
        (found.root / folder).mkdir(parents=True, mode=0o700)
    me = pwd.getpwuid(os.geteuid()).pw_name
    places = {"/etc/parley": f"{found.root}/etc/parley", "/var/lib/parley": f"{found.root}/var/lib/parley"}
    release_make(
        found.root / "opt/parley/current",
        {**places, "user=parley": f"user={me}", f"PATH={_PATH}": f"'PATH={client_programs()}:{_PATH}'"},
    )
    with postgresql() as superuser, _broker() as broker:
        text = (FOLDER / "parley.env").read_text(encoding="utf-8")
        for line, value in {
            "DATABASE_URL": _role_make(superuser),
            "REDIS_URL": broker,
            "PARLEY_ENCRYPTION_KEYS": "A" * 43,
            "PARLEY_SECRET_KEY": "s" * 64,
            "PARLEY_PUBLIC_URL": "http://localhost:8000",
        }.items():
            text = re.sub(rf'^{line}=".*"$', f'{line}="{value}"', text, flags=re.MULTILINE)
        # TLS is tried in test_compose_processes: without it ADS listens on loopback, as each replica's file says.
        text = re.sub(r"^PARLEY_ADS_(?:AUTH|TRUST|TLS).*\n", "", text, flags=re.MULTILINE)
        (found.root / "etc/parley/parley.env").write_text(text, encoding="utf-8")
        for replica in ("1", "2"):
            file = found.root / f"etc/parley/ads-{replica}.env"
            file.write_text(f'PARLEY_ADS_ADDRESS="127.0.0.1:1800{replica}"\n', encoding="utf-8")
        prepared = found.run("prepare")
        assert prepared.returncode == 0, prepared.stderr
        yield found


def test_units__every_process_with_its_own_command__becomes_ready(machine: Machine) -> None:
    with ExitStack() as stack:
        for place in PLACES:
            stack.enter_context(machine.running(*place))

        for port in ("8000", "9111", "9112"):
            eventually(lambda p=machine.ports[port]: readiness(p)[0], lambda status: status == 200, within_s=60)  # type: ignore[misc]
        for role in ("worker", "beat"):
            eventually(partial(_well, machine, role), within_s=60)


def _well(machine: Machine, role: str) -> bool:
    """What the container's health check says of a process that serves nobody."""
    check = [sys.executable, str(ROOT / "deploy/docker/healthcheck.py"), role]
    done = subprocess.run(check, env=machine.environment(role), capture_output=True, timeout=30, check=False)
    return done.returncode == 0


def test_database_role__of_the_page__owns_its_database_and_may_nothing_else(machine: Machine) -> None:
    with psycopg.connect(machine.environment("web")["DATABASE_URL"]) as connection:
        found = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls FROM pg_roles"
            " WHERE rolname = 'parley'"
        ).fetchone()
        others = connection.execute(
            "SELECT count(*) FROM pg_database, aclexplode(datacl) WHERE datname = 'parley' AND grantee = 0"
        ).fetchone()

    assert found == (False,) * 5
    assert others == (0,)


def test_backup__three_times__two_stay_and_the_newest_is_restored_by_that_role(machine: Machine) -> None:
    folder = machine.root / "var/backups/parley"
    for day in (1, 2):
        (folder / f"parley-2026-01-0{day}T000000Z.backup").write_text("older")

    done = machine.run("backup")

    assert done.returncode == 0, done.stderr
    oldest, newest = sorted(folder.iterdir())
    assert oldest.name == "parley-2026-01-02T000000Z.backup"
    wrapper = machine.root / "opt/parley/current/deploy/systemd/parley"
    restored = subprocess.run(
        [wrapper, "restore", newest.name],
        cwd=folder,
        env=outside(),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.startswith(f"The database is what {newest.name} says.")


def test_backup__database_is_away__fails_and_deletes_nothing(machine: Machine) -> None:
    folder = machine.root / "var/backups/parley"
    for day in range(1, 5):
        (folder / f"parley-2026-02-0{day}T000000Z.backup").write_text("older")
    before = sorted(folder.iterdir())
    environment = machine.environment("backup") | {"DATABASE_URL": "postgres://parley@127.0.0.1:1/parley"}

    failed = subprocess.run(
        machine.command("backup"), env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert failed.returncode != 0
    assert "pg_dump failed" in failed.stderr
    assert sorted(folder.iterdir()) == before
    shutil.rmtree(folder)
