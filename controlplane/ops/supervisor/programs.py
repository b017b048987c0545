"""The processes of `manage.py up`, in words. Pure: says how to start each and how to see that it serves."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controlplane.config.home import Home
from controlplane.config.loading import Config
from controlplane.ops.supervisor.readiness import Probe, file_ready, http_ready, valkey_ready
from controlplane.ops.supervisor.valkey import valkey_command

ROOT: Final = Path(__file__).resolve().parents[3]  # the checkout

VALKEY: Final = "valkey"
WEB: Final = "web"
WORKER: Final = "worker"
ADS: Final = "ads"
DEMO: Final = "demo"
PREPARE: Final = "prepare"

# The demo's clients go first. Streams are told to go elsewhere next, work in hand is finished while its database and
# broker are there, the broker goes last.
STOP_ORDER: Final = (DEMO, ADS, WORKER, WEB, VALKEY)
STOP_GRACE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Program:
    """A program that the supervisor runs. `environment` is added to the supervisor's own; `clears` is removed before
    each start.

    The output of a program that is not `shown` goes to its file only.
    """

    name: str
    command: tuple[str, ...]
    ready: Probe
    environment: dict[str, str] = field(default_factory=dict)
    clears: tuple[Path, ...] = ()
    shown: bool = True


def programs(config: Config, home: Home, *, worker_processes: int) -> tuple[Program, ...]:
    """The programs that run beside the broker: web, workers and ADS."""
    web = config.web_address
    worker_file = home.run / "worker.ready"
    return (
        Program(
            name=WEB,
            command=(
                *(sys.executable, "-m", "uvicorn", "controlplane.asgi:application"),
                *("--host", web.host, "--port", str(web.port)),
                # `asgi` itself judges who may speak for another address.
                *("--no-proxy-headers", "--no-server-header"),
                *("--timeout-graceful-shutdown", "5", "--log-level", "warning"),
            ),
            ready=http_ready(web, "/readyz"),
        ),
        Program(
            name=WORKER,
            command=(
                *(sys.executable, "-m", "celery", "--quiet", "--app", "controlplane.celery", "worker"),
                *("--beat", "--schedule", str(home.run / "beat.schedule")),
                *("--pool", "prefork", "--concurrency", str(worker_processes), "--hostname", "parley@%h"),
                # One worker has no neighbours to greet, and greeting takes a second of every start.
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            ),
            ready=file_ready(worker_file),
            environment={
                "PARLEY_READY_FILE": str(worker_file),
                # Checks belong to `make check`; here they would load every view for a process that has none.
                "CELERY_SKIP_CHECKS": "1",
                # Root in a container or on a person's own machine knows it is root.
                "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
            },
            clears=(worker_file,),
        ),
        Program(
            name=ADS,
            command=(sys.executable, str(ROOT / "manage.py"), "ads"),
            ready=http_ready(config.metrics_address, "/readyz"),
        ),
    )


def demo(home: Home) -> Program:
    """The program that shows resources, data planes and calls (`make demo`); ready once it has printed how the calls
    ended.
    """
    ready = home.run / "demo.ready"
    return Program(
        name=DEMO,
        command=(sys.executable, "-m", "controlplane.ops.demo"),
        ready=file_ready(ready),
        # gRPC prints the trace of an error that the demo is about to show.
        environment={"PARLEY_READY_FILE": str(ready), "GRPC_VERBOSITY": "NONE"},
        clears=(ready,),
    )


def preparation() -> Program:
    """The program that must have ended well before the others start. Quiet: the supervisor itself says where things
    are.
    """
    command = (sys.executable, str(ROOT / "manage.py"), "prepare", "--verbosity", "0")
    return Program(name=PREPARE, command=command, ready=_never)


def broker(binary: Path, socket: Path) -> Program:
    """The program of the embedded Valkey."""
    return Program(
        name=VALKEY,
        command=valkey_command(binary, socket),
        ready=valkey_ready(socket),
        clears=(socket,),
        shown=False,  # it warns of what concerns saving, which it does not do
    )


async def _never() -> bool:
    return False
