"""A real web process over the installation of a scenario, of which nobody asked anything yet."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.ads_process import free_ports, is_ready

_ROOT = Path(__file__).parent.parent
_START_S = 60.0
_STOP_S = 30.0


@contextmanager
def web_process() -> Iterator[str]:
    """Run a web process until the end of the block; yields its URL once the process is ready by its address for probes,
    which is no request to what it serves. Raises RuntimeError when it does not become ready.
    """
    serving, telling = free_ports(2)
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environment["PARLEY_WEB_METRICS_ADDRESS"] = f"127.0.0.1:{telling}"
    log = Path(environment["PARLEY_HOME"]) / "logs" / f"web-{serving}.log"
    command = [sys.executable, "-m", "uvicorn", "controlplane.asgi:application", "--port", str(serving)]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, cwd=_ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + _START_S
        while not is_ready(telling):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the web process did not become ready; it said:\n{log.read_text('utf-8')[-2000:]}")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{serving}"
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)
