"""The container's health check tells a well process from one that is not."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from runpy import run_path
from threading import Thread

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy" / "docker" / "healthcheck.py"
NAMES = run_path(str(SCRIPT))


@contextmanager
def _answering(statuses: dict[str, int]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(statuses[self.path])
            self.end_headers()
            self.wfile.write(b"because of that\n")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"0.0.0.0:{server.server_port}"  # as in a container
        finally:
            server.shutdown()


def _checked(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-I", "-S", str(SCRIPT), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(("role", "variable"), [("web", "PARLEY_WEB_ADDRESS"), ("ads", "PARLEY_ADS_METRICS_ADDRESS")])
def test_server__that_answers__is_well(role: str, variable: str) -> None:
    with _answering({"/healthz": 200, "/readyz": 503}) as address:
        checked = _checked(role, **{variable: address})

    assert (checked.returncode, checked.stderr) == (0, "")


def test_server__that_is_not_ready__is_alive_and_says_why_it_is_not_ready() -> None:
    with _answering({"/healthz": 200, "/readyz": 503}) as address:
        checked = _checked("web", "--ready", PARLEY_WEB_ADDRESS=address)

    assert checked.returncode == 1
    assert checked.stderr == f"{address}/readyz answers 503: because of that\n"


def test_server__that_is_gone__is_not_well() -> None:
    with _answering({}) as address:
        pass

    checked = _checked("ads", PARLEY_ADS_METRICS_ADDRESS=address)

    assert checked.returncode == 1
    assert f"{address}/healthz does not answer" in checked.stderr


@pytest.mark.parametrize(
    ("role", "file", "silent_s"), [("worker", "run/worker.alive", 120), ("beat", "beat.schedule.db", 400)]
)
def test_process__that_writes__is_well_until_it_falls_silent(
    tmp_path: Path, role: str, file: str, silent_s: int
) -> None:
    (tmp_path / "run").mkdir()
    before = _checked(role, PARLEY_HOME=str(tmp_path))
    (tmp_path / file).touch()
    moving = _checked(role, PARLEY_HOME=str(tmp_path))
    long_ago = time.time() - silent_s - 5
    os.utime(tmp_path / file, (long_ago, long_ago))

    silent = _checked(role, PARLEY_HOME=str(tmp_path))

    assert [each.returncode for each in (before, moving, silent)] == [1, 0, 1]
    assert "was not written yet" in before.stderr
    assert "was last written" in silent.stderr


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("python -m uvicorn controlplane.asgi:application --host 0.0.0.0", "web"),
        ("/sbin/docker-init -- python manage.py ads", "ads"),
        ("python -m celery --quiet --app controlplane.celery worker --pool prefork", "worker"),
        ("python -m celery --app controlplane.celery beat --schedule /var/lib/parley/beat.schedule", "beat"),
        ("python manage.py prepare", ""),
    ],
)
def test_role__without_an_argument__is_read_from_the_first_process(command: str, role: str) -> None:
    assert NAMES["role"](command.replace(" ", "\0").encode()) == role


def test_role__that_does_not_exist__is_refused() -> None:
    assert _checked("database").returncode == 2
