"""xdsctl as somebody runs it: with its own variables, and what it wrote where; and data planes for it to look at."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from click.testing import CliRunner
from typer.main import get_command

from tests.support.stack import Parley
from xdsctl.app import app

# Made once: that takes longer than most commands.
_COMMAND: Any = get_command(app)
DONE, NO, USAGE, NO_ANSWER, CONFLICT, UNDECIDED, LOSS, NOT_THERE, NOT_ACCEPTED = range(9)


@dataclass(frozen=True)
class Said:
    """The exit status of a command, and what it wrote to which output."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Xdsctl:
    """Runs xdsctl with these environment variables and no others of its own."""

    variables: dict[str, str]

    def __call__(self, *arguments: str, stdin: str | None = None, **variables: str) -> Said:
        result = CliRunner().invoke(_COMMAND, list(arguments), input=stdin, env={**self.variables, **variables})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    def epoch(self) -> int:
        found = self("rollout", "history", "-o", "json").data
        return max((row["epoch"] for row in found), default=0)


def xdsctl_for(parley: Parley, folder: Path) -> Xdsctl:
    """A runner of xdsctl with the administrator's token, and contexts in this folder."""
    return Xdsctl(
        {
            "XDSCTL_SERVER": f"http://127.0.0.1:{parley.web_port}",
            "XDSCTL_TOKEN": parley.token,
            "XDSCTL_CONFIG": str(folder / "contexts.json"),
        }
    )


@contextmanager
def watching(parley: Parley, node: str, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a data plane that stays connected, until the block ends; yields its process."""
    command = [sys.executable, "-m", "xdsctl", "watch", "cluster", *arguments]
    command += ["--ads", f"127.0.0.1:{parley.ads_port}", "--node", node, "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def asleep(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Stop a process until the block ends, so that it neither reads nor answers; it is counted as silent after 30 s,
    not before.
    """
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextmanager
def dumping(node: str) -> Iterator[str]:
    """The address of an Envoy's admin interface whose dump says who it is and nothing else. Under /heard it takes
    webhooks, and elsewhere none.
    """
    bootstrap = {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {"id": node}}}
    body = json.dumps({"configs": [bootstrap]}).encode()

    class Admin(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/config_dump?include_eds" else 404)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if self.path == "/heard" else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Standard error is the command's own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Admin) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Tailed:
    """A running `xdsctl tail -o json`. `said`: the lines that it wrote to standard output and that nobody asked for."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.said: list[str] = []
        self._lines: Queue[str] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)

    def until(self, *kinds: str) -> list[Any]:
        """The next events, until one of each of these kinds was among them."""
        events: list[Any] = []
        while not set(kinds) <= {each["kind"] for each in events}:
            events.append(json.loads(self._lines.get(timeout=10)))
        return events

    def interrupt(self) -> int:
        """Press Ctrl-C; the exit status."""
        self._process.send_signal(signal.SIGINT)
        status = self._process.wait(10)
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return status


@contextmanager
def tailing(parley: Parley, *arguments: str) -> Iterator[Tailed]:
    """Run `xdsctl tail -o json` until the block ends; it is live when the block begins."""
    command = [sys.executable, "-m", "xdsctl", "--server", f"http://127.0.0.1:{parley.web_port}", "tail", *arguments]
    variables = {**os.environ, "XDSCTL_TOKEN": parley.token}
    with subprocess.Popen(
        [*command, "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Live: 1 ADS process")
            yield Tailed(process)
        finally:
            process.kill()
