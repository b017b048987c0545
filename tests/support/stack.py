"""A whole Parley in real processes, in a home of its own on free ports: as `make run` starts it, or one by one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from controlplane.config.home import Home
from controlplane.config.loading import load
from controlplane.ops.supervisor.prepared import prepared_note
from tests.support.keys import ENCRYPTION_KEYS
from tests.support.ports import free_ports
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
START_S = 60.0
# What a preparation writes into a home depends on these.
PREPARED_BY = frozenset({"DATABASE_URL", "PARLEY_ADMIN_PASSWORD", "PARLEY_ADS_AUTH", "PARLEY_ENCRYPTION_KEYS"})
WORKER_STATUS, BEAT_STATUS = "PARLEY_WORKER_METRICS_ADDRESS", "PARLEY_BEAT_METRICS_ADDRESS"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one REST call."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass(slots=True)
class Parley:
    """A running Parley, with the ports to reach it. `status_ports` are those of web and workers, by the names of their
    processes.
    """

    home: Path
    web_port: int
    ads_ports: list[int]
    metrics_ports: list[int]
    status_ports: dict[str, int]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    # Of every process that is started from now on.
    environment: dict[str, str] = field(default_factory=dict)
    starts: "Callable[[str, Mapping[str, str], Path | None], None] | None" = None

    def replica(self, number: int) -> dict[str, str]:
        """The environment variables that tell one ADS process from the others."""
        return {
            "PARLEY_ADS_ADDRESS": f"127.0.0.1:{self.ads_ports[number]}",
            "PARLEY_ADS_METRICS_ADDRESS": f"127.0.0.1:{self.metrics_ports[number]}",
        }

    def start(self, name: str, extra: Mapping[str, str] | None = None, *, code: Path | None = None) -> None:
        """Start a process of the production shape, for the first time or again. `code`: of this checkout, instead of
        the one that everything was started from.
        """
        assert self.starts is not None
        self.starts(name, extra or {}, code)

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """Send a process a signal and wait for its end."""
        self.processes[name].send_signal(number)
        self.processes[name].wait(30)

    def restart(self, name: str, *, code: Path | None = None) -> None:
        """Stop a process as an operator does, start it again, and wait until it can serve."""
        self.stop(name)
        self.start(name, code=code)
        if not name.startswith("worker"):
            self.ready(name)

    def ready(self, name: str) -> None:
        """Wait until a process that has a status port can serve."""
        port = self.web_port if name == "web" else self.metrics_ports[int(name.removeprefix("ads"))]
        eventually(lambda: readiness(port)[0], lambda status: status == 200, within_s=START_S)

    @property
    def ads_port(self) -> int:
        return self.ads_ports[0]

    @property
    def token(self) -> str:
        return (self.home / "admin.token").read_text().strip()

    def call(self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None) -> Answer:
        """Make one REST call below /api/v1; a problem document is an answer too."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.web_port}/api/v1{path}", data=data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
                return _answer(answer.status, answer.read(), dict(answer.headers))
        except urllib.error.HTTPError as error:
            return _answer(error.code, error.read(), dict(error.headers))

    def metric(self, name: str, replica: int = 0) -> float:
        """The sum of a metric of an ADS process over its labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_ports[replica]}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def apply(
        self,
        *resources: object,
        delete: list[dict[str, str]] | None = None,
        environment: str = "default",
        losing: int = 0,
    ) -> str:
        """Apply these resources and deletions; the change's id. `losing`: as many clients may lose something."""
        body = {"resources": list(resources), "delete": delete or [], "message": "test"}
        accepted = f"?accept_loss={losing}" if losing else ""  # the version before does not know it
        answer = self.call("POST", f"/environments/{environment}/apply{accepted}", body)
        assert answer.status == 202, answer
        return str(answer.body["id"])

    def published(self, change: str, *, within_s: float = 10.0) -> dict[str, Any]:
        """Wait until the change is published; the change as REST tells it."""

        def look() -> dict[str, Any]:
            return dict(self.call("GET", f"/changes/{change}").body)

        return eventually(look, lambda found: found["state"] != "saved", within_s=within_s)

    def apply_and_publish(
        self,
        *resources: object,
        delete: list[dict[str, str]] | None = None,
        environment: str = "default",
        losing: int = 0,
    ) -> dict[str, Any]:
        """Apply these resources and deletions and wait for the snapshot; the change as REST tells it."""
        return self.published(self.apply(*resources, delete=delete, environment=environment, losing=losing))


def _answer(status: int, body: bytes, headers: Mapping[str, str]) -> Answer:
    try:
        return Answer(status, json.loads(body) if body else None, headers)
    except ValueError:
        return Answer(status, body.decode(errors="replace"), headers)


@contextmanager
def running_up(home: Path, extra: Mapping[str, str] | None = None) -> Iterator[Parley]:
    """Run `manage.py up`, ready, until the block ends; then stop it by SIGTERM, which must end it well."""
    parley, environment = _place(home, ads=1, extra=extra)
    prepare_by_copy(home, environment)
    with _process(environment, "up", [sys.executable, "manage.py", "up"], home) as supervisor:
        parley.processes["up"] = supervisor
        _await_ready(parley)
        yield parley


@contextmanager
def running_apart(
    home: Path,
    extra: Mapping[str, str],
    *,
    ads: int,
    workers: int,
    beat: bool = False,
    of: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    code: Path = ROOT,
    later: Collection[str] = (),
) -> Iterator[Parley]:
    """Run the production shape until the block ends: every process started by itself, against the database and the
    Redis that `extra` names. `of` has variables of single processes, by their names; `code` is the checkout that
    everything is started from. Those named by `later` are the test's to start.
    """
    parley, environment = _place(home, ads=ads, extra=extra)
    parley.environment = environment
    if code == ROOT:
        prepare_by_copy(home, environment)
    subprocess.run([sys.executable, "manage.py", "prepare"], cwd=code, env=environment, check=True, timeout=60)
    web = ["-m", "uvicorn", "controlplane.asgi:application", "--port", str(parley.web_port)]
    beating = ["-m", "celery", "--app", "controlplane.celery", "beat", "--schedule", str(home / "beat.schedule")]
    worker = ["-m", "celery", "--quiet", "--app", "controlplane.celery", "worker", "--concurrency", "1", "--hostname"]
    of_workers = list(enumerate(free_ports(workers)))
    parley.status_ports |= {f"worker{number}": port for number, port in of_workers}
    programs: dict[str, tuple[list[str], dict[str, str]]] = {
        "web": (web, {}),
        **{
            f"worker{number}": ([*worker, f"w{number}@%h"], {WORKER_STATUS: f"127.0.0.1:{port}"})
            for number, port in of_workers
        },
        **({"beat": (beating, {BEAT_STATUS: f"127.0.0.1:{free_ports(1)[0]}"})} if beat else {}),
        **{f"ads{number}": (["manage.py", "ads"], parley.replica(number)) for number in range(ads)},
    }
    with ExitStack() as stack:

        def start(name: str, extra: Mapping[str, str], other: Path | None) -> None:
            command, more = programs[name]
            variables = {**environment, **more, **of.get(name, {}), **extra}
            process = _process(variables, name, [sys.executable, *command], home, other or code)
            parley.processes[name] = stack.enter_context(process)

        parley.starts = start
        first = [name for name in programs if name not in later]
        for name in first:
            parley.start(name)
        for name in first:
            if name.startswith(("web", "ads")):
                parley.ready(name)
        try:
            yield parley
        finally:
            # All at once: a worker alone takes seconds.
            for process in parley.processes.values():
                _ask_to_end(process)


@contextmanager
def running_ads(home: Path, extra: Mapping[str, str]) -> Iterator[Parley]:
    """Run `manage.py ads` alone until the block ends, in a home that an earlier Parley left behind; listening, not
    necessarily ready.
    """
    parley, environment = _place(home, ads=1, extra=extra)
    with _process(environment, "ads-alone", [sys.executable, "manage.py", "ads"], home) as process:
        parley.processes["ads"] = process
        eventually(lambda: readiness(parley.metrics_ports[0]), within_s=START_S)
        yield parley


def _place(home: Path, *, ads: int, extra: Mapping[str, str] | None) -> tuple[Parley, dict[str, str]]:
    # Without ADS its addresses are named all the same.
    web, of_web, of_worker, *others = free_ports(3 + 2 * max(ads, 1))
    parley = Parley(home, web, others[:ads], others[ads : 2 * ads], {"web": of_web, "worker": of_worker})
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "DJANGO_"))}
    clean.pop("DATABASE_URL", None)
    clean.pop("REDIS_URL", None)
    return parley, clean | {
        "PARLEY_HOME": str(home),
        "PARLEY_WEB_ADDRESS": f"127.0.0.1:{web}",
        "PARLEY_ADS_ADDRESS": f"127.0.0.1:{others[0]}",
        "PARLEY_ADS_METRICS_ADDRESS": f"127.0.0.1:{others[-1]}",
        "PARLEY_WEB_METRICS_ADDRESS": f"127.0.0.1:{of_web}",
        WORKER_STATUS: f"127.0.0.1:{of_worker}",
        "PYTHONUNBUFFERED": "1",
        **({"PARLEY_ENCRYPTION_KEYS": ENCRYPTION_KEYS} if "DATABASE_URL" in (extra or {}) else {}),
        **(extra or {}),
    }


@contextmanager
def _process(
    environment: Mapping[str, str], name: str, command: list[str], home: Path, code: Path = ROOT
) -> "Iterator[subprocess.Popen[bytes]]":
    log = home.parent / f"{home.name}-{name}.log"
    with (
        log.open("ab") as output,
        subprocess.Popen(
            command, cwd=code, env=dict(environment), stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            _ask_to_end(process)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise AssertionError(f"{name} did not stop; see {log}") from None


def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
    """Send it SIGTERM, be it frozen; nothing when it has ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()


def prepare_by_copy(home: Path, environment: Mapping[str, str]) -> None:
    """Make `home`, where there is none, a copy of one that was prepared. What is started in it then finds its tables,
    for which it would need seconds: this is a second start. First ones are the subject of tests/e2e/test_up.py.
    """
    if not home.exists() and not environment.keys() & PREPARED_BY:
        shutil.copytree(Path(_prepared_directory().name) / "home", home)
        prepared_note(load(environment, directory=ROOT), Home(home))


@cache
def _prepared_directory() -> "tempfile.TemporaryDirectory[str]":
    """Holds `home`, which `manage.py prepare` made as any first start would; removed when this process ends."""
    directory = tempfile.TemporaryDirectory(prefix="parley-prepared-")
    _, environment = _place(Path(directory.name) / "home", ads=1, extra=None)
    subprocess.run([sys.executable, "manage.py", "prepare"], cwd=ROOT, env=environment, check=True, timeout=60)
    return directory


def _await_ready(parley: Parley) -> None:
    for port in (parley.web_port, *parley.metrics_ports):
        eventually(lambda port=port: readiness(port)[0], lambda status: status == 200, within_s=START_S)  # type: ignore[misc]


def readiness(port: int) -> tuple[int, str]:
    """The status and body of /readyz at this port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
