"""A real ADS process over the installation of a scenario, and what it costs."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

_ROOT = Path(__file__).parent.parent
_START_S = 60.0
_STOP_S = 30.0
_MIB = 1024 * 1024
# As the product starts it.
PRODUCT = ("manage.py", "ads")


class AdsProcess:
    """One ADS server: one process, or a parent with its workers."""

    def __init__(self, command: Sequence[str], variables: dict[str, str]) -> None:
        serving, self._telling = free_ports(2)
        self.address = f"127.0.0.1:{serving}"
        self._command = [sys.executable, *command]
        environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        self._environment = environment | variables
        self._environment["PARLEY_ADS_ADDRESS"] = self.address
        self._environment["PARLEY_ADS_METRICS_ADDRESS"] = f"127.0.0.1:{self._telling}"
        self._log = Path(environment["PARLEY_HOME"]) / "logs" / f"ads-{serving}.log"
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> psutil.Process:
        """The running process, for figures about it."""
        if self._running is None:
            raise RuntimeError("ADS is not running")
        return psutil.Process(self._running.pid)

    def start(self) -> None:
        """Start the server, and return once it is ready. Raises RuntimeError when it is not in time."""
        with self._log.open("ab") as output:
            self._running = subprocess.Popen(  # noqa: S603 - our own program
                self._command, cwd=_ROOT, env=self._environment, stdout=output, stderr=output
            )
        if not self._is_ready(self._running):
            raise RuntimeError(f"ADS did not become ready; it said:\n{self.said()[-2000:]}")

    def kill(self) -> None:
        """End the server with SIGKILL, as the kernel does."""
        if self._running is not None:
            self._running.kill()
            self._running.wait(_STOP_S)
            self._running = None

    def stop(self) -> None:
        """End the server in good order; without effect when it does not run."""
        if self._running is None:
            return
        self._running.terminate()
        try:
            self._running.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._running = None

    def cpu_s(self) -> float:
        """The processor time that the server has used so far, in seconds."""
        return cpu_s(self.process)

    def resident_mib(self) -> float:
        """The memory of the server in MiB."""
        return float(self.process.memory_info().rss / _MIB)

    def metrics(self) -> dict[str, float]:
        """The server's metrics, by name with labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._telling}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    def said(self) -> str:
        """The text that the server has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def told(self, word: str) -> list[str]:
        """What follows `word` in each line that the server has printed so far and that begins with it."""
        return after_word(word, self.said())

    def _is_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        deadline = time.monotonic() + _START_S
        while process.poll() is None and time.monotonic() < deadline:
            if is_ready(self._telling):
                return True
            time.sleep(0.05)
        return False


def after_word(word: str, said: str) -> list[str]:
    """What follows `word` in each whole line that begins with it. The last line may be incomplete and is left out."""
    lines = said.splitlines(keepends=True)
    return [line.removeprefix(word).strip() for line in lines if line.startswith(word) and line.endswith("\n")]


@contextmanager
def ads_process(command: Sequence[str] = PRODUCT, **variables: str) -> Iterator[AdsProcess]:
    """An ADS server for as long as the block runs, with these variables beside those of the installation.

    Raises RuntimeError when it does not become ready.
    """
    ads = AdsProcess(command, variables)
    try:
        ads.start()
        yield ads
    finally:
        ads.stop()


def cpu_s(process: psutil.Process) -> float:
    """The processor time that a process and its children have used so far, in seconds."""
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system
    return total


def is_ready(port: int) -> bool:
    """Whether the process whose status server is at this port says that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except OSError:  # it does not listen yet, does not answer, or says no
        return False


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
