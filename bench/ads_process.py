"""A real `manage.py ads` over the installation of a scenario, and what it costs."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

_ROOT = Path(__file__).parent.parent
_START_S = 60.0
_STOP_S = 30.0
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class AdsProcess:
    """One ADS process that is ready."""

    address: str
    process: psutil.Process

    def cpu_s(self) -> float:
        """Processor time it has used so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def resident_mib(self) -> float:
        """Its memory."""
        return float(self.process.memory_info().rss / _MIB)


@contextmanager
def ads_process(**variables: str) -> Iterator[AdsProcess]:
    """An ADS process for as long as the block runs, with these variables beside those of the installation.

    Raises RuntimeError when it does not become ready.
    """
    serving, telling = _free_ports(2)
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"} | variables
    environment["PARLEY_ADS_ADDRESS"] = f"127.0.0.1:{serving}"
    environment["PARLEY_ADS_METRICS_ADDRESS"] = f"127.0.0.1:{telling}"
    command = [sys.executable, "manage.py", "ads"]
    log = Path(environment["PARLEY_HOME"]) / "logs" / "ads.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=output, stderr=output) as process,  # noqa: S603
    ):
        try:
            if not _is_ready(process, telling):
                raise RuntimeError(f"ADS did not become ready; it said:\n{log.read_text(encoding='utf-8')[-2000:]}")
            yield AdsProcess(f"127.0.0.1:{serving}", psutil.Process(process.pid))
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _is_ready(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Whether it becomes ready in time."""
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    return False


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
