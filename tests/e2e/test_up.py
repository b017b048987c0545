"""`manage.py up` for real: what it prints, refuses, survives and leaves behind (issue "one command", done when 1)."""

import os
import queue
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from controlplane.config.home import Home
from controlplane.ops.supervisor.locks import children_gone
from tests.support.keys import ENCRYPTION_KEYS
from tests.support.ports import free_ports
from tests.support.stack import prepare_by_copy
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]

ROOT = Path(__file__).parents[2]
READY_S = 60.0
STOP_S = 45.0  # four processes, ten seconds of grace each, in the worst case
ORPHANS_S = 5.0
ADDRESSES = (
    "PARLEY_WEB_ADDRESS",
    "PARLEY_ADS_ADDRESS",
    "PARLEY_ADS_METRICS_ADDRESS",
    "PARLEY_WEB_METRICS_ADDRESS",
    "PARLEY_WORKER_METRICS_ADDRESS",
)


@dataclass
class Up:
    """One `manage.py up`, from a directory of its own."""

    directory: Path
    extra: dict[str, str] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    _process: "subprocess.Popen[str] | None" = None
    _lines: "queue.Queue[str]" = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ports = dict(zip(ADDRESSES, free_ports(len(ADDRESSES)), strict=True))

    @property
    def home(self) -> Home:
        return Home(self.directory / ".parley")

    @property
    def process(self) -> "subprocess.Popen[str]":
        assert self._process is not None
        return self._process

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), "up", "--worker-processes", "1"]

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_"))}
        addresses = {name: f"127.0.0.1:{port}" for name, port in self.ports.items()}
        return {**ours, **addresses, **self.extra}

    def start(self) -> None:
        """Start, and return when the five facts are printed."""
        self._process = subprocess.Popen(
            self.command,
            cwd=self.directory,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.printed, self._lines = [], queue.Queue()
        threading.Thread(target=_read, args=(self._process, self.printed, self._lines), daemon=True).start()
        self.expect(r"^  Stop ", READY_S)

    def expect(self, pattern: str, within_s: float) -> str:
        """The first line from now on that has the pattern."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = ""
            if not line:  # too late, or the end of the output
                raise AssertionError(f"no line with {pattern!r}; printed:\n{''.join(self.printed)}")
            if re.search(pattern, line):
                return line

    def stop(self, number: signal.Signals) -> int:
        """Send the signal; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(STOP_S)

    def refused(self) -> subprocess.CompletedProcess[str]:
        """A start that must not succeed."""
        return subprocess.run(
            self.command,
            cwd=self.directory,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def left(self) -> list[str]:
        """What runs for this home: by the guards' lock, and on Linux by looking at every process."""
        found = [] if children_gone(self.home, wait_s=0.0) else ["a guard holds children.lock"]
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"PARLEY_HOME={self.home.path}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def web(self, path: str = "/readyz") -> int:
        """The status of a request."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['PARLEY_WEB_ADDRESS']}{path}", timeout=5) as got:
                return int(got.status)
        except urllib.error.HTTPError as error:
            return error.code

    def clean(self) -> None:
        """Leave nothing, whatever the test did."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        eventually(lambda: not self.left(), within_s=15.0)


def _read(process: "subprocess.Popen[str]", printed: list[str], lines: "queue.Queue[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        printed.append(line)
        lines.put(line)
    lines.put("")


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = Up(tmp_path / "a path with spaces")
    yield running
    running.clean()


def programs(up: Up) -> dict[str, int]:
    """The process of each program, as its guard's child."""
    found = {}
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    guards = {pid: args for pid, parent, args in rows if parent == str(up.process.pid) and "guard.py" in args}
    marks = {"web": "uvicorn", "worker": "celery", "ads": "manage.py ads", "valkey": "valkey-server"}
    for pid, parent, _ in rows:
        for name, mark in marks.items():
            if parent in guards and mark in guards[parent]:
                found[name] = int(pid)
    return found


def test_up__first_start_then_sigterm__five_facts_then_nothing_is_left(up: Up) -> None:
    up.start()

    facts = "".join(up.printed[-7:])
    assert up.web() == 200
    with socket.create_connection(("127.0.0.1", up.ports["PARLEY_ADS_ADDRESS"]), timeout=5):
        pass
    assert f"http://127.0.0.1:{up.ports['PARLEY_WEB_ADDRESS']}" in facts
    assert ".parley/admin.password" in facts
    assert ".parley/admin.token" in facts
    assert f"127.0.0.1:{up.ports['PARLEY_ADS_ADDRESS']}" in facts
    assert "Ctrl-C" in facts
    private = [up.home.admin_password, up.home.admin_token, up.home.secret_key, up.home.encryption_keys]
    assert {stat.S_IMODE(file.stat().st_mode) for file in private} == {0o600}
    assert stat.S_IMODE(up.home.path.stat().st_mode) == 0o700
    assert up.home.admin_token.read_text().strip() not in "".join(up.printed)
    assert up.home.admin_password.read_text().strip() not in "".join(up.printed)

    assert up.stop(signal.SIGTERM) == 0

    assert up.left() == []
    assert not up.home.valkey_socket.exists()
    assert all((up.home.logs / f"{name}.log").exists() for name in ("worker", "ads"))


def test_up__home_that_was_prepared__keeps_what_is_in_it_refuses_another_start_and_ends_by_ctrl_c(up: Up) -> None:
    prepare_by_copy(up.home.path, up.environment)
    kept = [up.home.admin_password, up.home.admin_token, up.home.secret_key, up.home.encryption_keys]
    before = [file.read_bytes() for file in kept]

    up.start()
    refused = Up(up.directory).refused()  # a home has one supervisor
    served = up.web()
    status = up.stop(signal.SIGINT)

    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == f"Parley runs in PARLEY_HOME {up.home.path} already (process {up.process.pid}).\n"
    assert (served, status) == (200, 0)
    assert up.left() == []
    assert [file.read_bytes() for file in kept] == before


def test_up__killed__starts_again_at_once_and_leaves_nothing(up: Up) -> None:
    prepare_by_copy(up.home.path, up.environment)
    up.start()
    assert len(programs(up)) == 4

    up.process.kill()
    up.process.wait()
    up.start()  # without a pause: it waits for the earlier run's processes itself
    up.process.kill()
    up.process.wait()

    eventually(lambda: not up.left(), within_s=ORPHANS_S)


def test_up__processes_die__they_come_back_and_the_others_serve_on(up: Up) -> None:
    prepare_by_copy(up.home.path, up.environment)
    up.start()
    before = programs(up)

    os.kill(before["worker"], signal.SIGKILL)
    up.expect(r"^worker .*ended by itself \(signal SIGKILL\)", 10)
    assert up.web() == 200
    eventually(lambda: programs(up).get("worker", before["worker"]) != before["worker"], within_s=20)
    os.kill(before["web"], signal.SIGKILL)
    up.expect(r"^web .*ended by itself", 10)
    eventually(up.web, lambda status: status == 200, within_s=30)

    after = programs(up)
    assert after["web"] != before["web"]
    assert (after["ads"], after["valkey"]) == (before["ads"], before["valkey"])
    assert up.stop(signal.SIGTERM) == 0
    assert up.left() == []


@pytest.mark.nightly
def test_up__home_too_deep_for_a_socket__starts_and_removes_the_socket_elsewhere(tmp_path: Path) -> None:
    up = Up(tmp_path / ("deep" * 25) / ("deeper" * 20))
    try:
        up.start()
        elsewhere = up.home.valkey_socket.readlink()
        assert elsewhere.is_socket()
        assert stat.S_IMODE(elsewhere.parent.stat().st_mode) == 0o700

        up.process.kill()
        up.process.wait()
        up.start()

        assert up.home.valkey_socket.readlink() != elsewhere
        assert not elsewhere.parent.exists()
        assert up.stop(signal.SIGTERM) == 0
        assert not up.home.valkey_socket.is_symlink()
    finally:
        up.clean()


def test_up__taken_ports__a_sentence_each_and_nothing_is_created(up: Up) -> None:
    with ExitStack() as taken:
        for port in up.ports.values():
            taken.enter_context(socket.create_server(("127.0.0.1", port)))
        refused = up.refused()

    assert refused.returncode == 2
    said = [line.partition(" by another program")[0] for line in refused.stderr.splitlines()]
    assert said == [f"{name} 127.0.0.1:{port} is in use" for name, port in up.ports.items()]
    assert not up.home.path.exists()


def test_up__bad_variables__a_sentence_each_and_nothing_is_created(up: Up) -> None:
    up.extra = {"PARLEY_ADS_WORKERS": "none", "PARLEY_LIMIT_NAME_BYTES": "1"}

    refused = up.refused()

    assert refused.returncode == 2
    assert [line.split()[0] for line in refused.stderr.splitlines()] == list(up.extra)
    assert refused.stdout == ""
    assert not up.home.path.exists()


def test_up__home_below_a_file__one_sentence_that_names_it(up: Up) -> None:
    blocker = up.directory / "file"
    blocker.write_text("")
    up.extra = {"PARLEY_HOME": str(blocker / "home")}

    refused = up.refused()

    assert refused.returncode == 2
    assert refused.stderr == f"PARLEY_HOME {blocker / 'home'} cannot be used: {blocker} is not a directory.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that refuses everybody, root too: /proc")
def test_up__home_that_nobody_can_make__one_sentence_that_names_it(up: Up) -> None:
    up.extra = {"PARLEY_HOME": "/proc/parley"}

    refused = up.refused()

    assert refused.returncode == 2
    assert refused.stderr.startswith("PARLEY_HOME /proc/parley cannot be used: ")
    assert refused.stderr.count("\n") == 1


def test_up__an_address_that_is_not_ours__one_sentence(up: Up) -> None:
    up.extra = {"PARLEY_WEB_ADDRESS": "192.0.2.1:8000"}  # TEST-NET-1, RFC 5737

    refused = up.refused()

    assert refused.returncode == 2
    assert refused.stderr.startswith("PARLEY_WEB_ADDRESS 192.0.2.1:8000 cannot be used: ")
    assert not up.home.path.exists()


def test_up__database_that_does_not_answer__one_sentence_names_the_variable(up: Up) -> None:
    (port,) = free_ports(1)
    up.extra = {
        "DATABASE_URL": f"postgres://u:hunter2@127.0.0.1:{port}/parley",
        "PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS,
    }

    refused = up.refused()

    assert refused.returncode == 1
    assert "DATABASE_URL: the database cannot be used: " in refused.stdout
    assert "hunter2" not in refused.stdout + refused.stderr
    assert up.left() == []
