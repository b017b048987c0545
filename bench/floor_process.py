"""The floor (bench.floor) as a process that is started, changed and stopped."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

import psutil


class FloorProcess:
    """A floor server of a given number of clusters, in a process of its own."""

    def __init__(self, clusters: int) -> None:
        self.address = ""
        self._clusters = clusters
        self._running: subprocess.Popen[str] | None = None

    @property
    def process(self) -> psutil.Process:
        """The running process, for figures about it."""
        return psutil.Process(self._now.pid)

    def start(self) -> None:
        """Start the server, and return once it serves, at a port of its own."""
        command = [sys.executable, "-m", "bench.floor", str(self._clusters)]
        self._running = subprocess.Popen(  # noqa: S603 - ourselves
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = f"127.0.0.1:{cast(IO[str], self._running.stdout).readline().strip()}"

    def stop(self) -> None:
        """End the server; without effect when it does not run."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def change(self) -> None:
        """Change the server's first cluster."""
        commands = cast(IO[str], self._now.stdin)
        commands.write("\n")
        commands.flush()

    @property
    def _now(self) -> "subprocess.Popen[str]":
        if self._running is None:
            raise RuntimeError("the floor is not running")
        return self._running


@contextmanager
def floor_process(clusters: int) -> Iterator[FloorProcess]:
    """A floor server for as long as the block runs."""
    server = FloorProcess(clusters)
    try:
        server.start()
        yield server
    finally:
        server.stop()
