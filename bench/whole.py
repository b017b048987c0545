"""A whole Parley for a scenario: what `make run` starts, reached as people reach it."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from bench.ads_process import free_ports, is_ready

_ROOT = Path(__file__).parent.parent
_START_S = 60.0
_STOP_S = 30.0
# A busy database may be away for longer than a write waits.
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Whole:
    """A running installation with all its processes. `web`: the console's URL; `token`: an API token."""

    web: str
    ads_address: str
    token: str

    def put(self, kind: str, name: str, manifest: dict[str, object]) -> str:
        """Write a resource over REST; returns the change's id. Raises RuntimeError when the API refuses it."""
        return self._call("PUT", f"/environments/default/resources/{kind}/{name}", manifest)

    def apply(self, manifests: list[dict[str, object]]) -> str:
        """Write several resources as one change over REST; returns the change's id. Raises RuntimeError when the API
        refuses it.
        """
        return self.post("/environments/default/apply", {"resources": manifests})

    def post(self, path: str, body: object) -> str:
        """Send POST to a path below /api/v1; returns the id of what was made. Raises RuntimeError when the API refuses
        it.
        """
        return self._call("POST", path, body)

    def published(self, change: str) -> None:
        """Wait until a change is published."""
        self._call("GET", f"/changes/{change}?wait=60s&for=published", None)

    def environment_update(self, body: object) -> None:
        """Change settings of the default environment over REST. Raises RuntimeError when the API refuses it."""
        self._call("PATCH", "/environments/default", body)

    def _call(self, method: str, path: str, body: object) -> str:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310 - our own http:// address
            self.web + path, data=data, method=method, headers=headers
        )
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - loopback
                    return str(json.load(answer).get("id", ""))
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                    raise RuntimeError(f"{method} {path} was answered {error.code}: {error.read()[:500]!r}") from error
                # As any client does: nothing was changed, and it says when to come again.
                time.sleep(float(error.headers["Retry-After"]))


@contextmanager
def whole(home: Path) -> Iterator[Whole]:
    """Run `manage.py up`, with the embedded Valkey and default settings, in the home directory of `installation` until
    the end of the block.

    Raises RuntimeError when it does not become ready.
    """
    web, ads, metrics, of_web, of_worker = free_ports(5)
    foreign = ("DJANGO_SETTINGS_MODULE", "REDIS_URL")
    environment = {name: value for name, value in os.environ.items() if name not in foreign}
    environment["PARLEY_WEB_ADDRESS"] = f"127.0.0.1:{web}"
    environment["PARLEY_ADS_ADDRESS"] = f"127.0.0.1:{ads}"
    environment["PARLEY_ADS_METRICS_ADDRESS"] = f"127.0.0.1:{metrics}"
    environment["PARLEY_WEB_METRICS_ADDRESS"] = f"127.0.0.1:{of_web}"
    environment["PARLEY_WORKER_METRICS_ADDRESS"] = f"127.0.0.1:{of_worker}"
    command = [sys.executable, "manage.py", "up"]
    log = home / "up.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own programs
            command, cwd=_ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + _START_S
        while not all(is_ready(port) for port in (web, metrics)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Parley did not become ready; it said:\n{log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.1)
        token = (home / "admin.token").read_text(encoding="utf-8").strip()
        yield Whole(f"http://127.0.0.1:{web}/api/v1", f"127.0.0.1:{ads}", token)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
