"""The supervisor as a program. Refuses what cannot work, takes the home's lock, and supervises until a signal comes."""

import asyncio
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from controlplane.config.home import HomeError, home_create
from controlplane.config.loading import ConfigError, load
from controlplane.ops.supervisor.locks import Held, supervisor_lock
from controlplane.ops.supervisor.output import Screen
from controlplane.ops.supervisor.preflight import CannotStart, preflight
from controlplane.ops.supervisor.programs import DEMO, PREPARE, ROOT, STOP_ORDER
from controlplane.ops.supervisor.run import EXIT_CANNOT_START, EXIT_STOPPED, Supervisor

UP_HELP: Final = "Start web, worker, ads and, when REDIS_URL is unset, an embedded Valkey; stop with Ctrl-C."
DEMO_HELP: Final = (
    "Start everything that `up` starts, with demo resources, a real Envoy and a gRPC client, and show what they get; "
    "stop with Ctrl-C."
)
_WORKER_PROCESSES: Final = 2


def main(arguments: list[str], *, with_demo: bool = False) -> int:
    """Run `manage.py up`, or `manage.py demo` where `with_demo` is set. Returns the exit status."""
    options = _parser(with_demo=with_demo).parse_args(arguments)
    try:
        config = load(os.environ, directory=Path.cwd())
        preflight(config)
        home = home_create(config)
        # Held by this process until it ends, however it ends.
        supervisor_lock(home)
    except (ConfigError, CannotStart, HomeError, Held) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CANNOT_START
    except KeyboardInterrupt:
        return EXIT_STOPPED
    environment = _environment(config.home)
    as_json = environment["PARLEY_LOG_JSON"] == "1"
    # What the demo shows stands alone; lines of other processes say whose they are.
    named = (*(name for name in STOP_ORDER if name != DEMO), PREPARE)
    screen = Screen(sys.stdout, named, os.environ, as_json=as_json)
    supervisor = Supervisor(
        config=config,
        home=home,
        environment=environment,
        worker_processes=options.worker_processes,
        with_demo=with_demo,
        screen=screen,
    )
    try:
        return asyncio.run(supervisor.run())
    finally:
        screen.close()


def _environment(home: Path) -> dict[str, str]:
    """The environment variables for child processes: those of this process, with paths made absolute."""
    return {
        **os.environ,
        "PARLEY_HOME": str(home),
        "PARLEY_LOG_JSON": os.environ.get("PARLEY_LOG_JSON", "0"),  # lines with a name in front are for people
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))),
        "PYTHONUNBUFFERED": "1",
    }


def _parser(*, with_demo: bool) -> ArgumentParser:
    command, what = ("demo", DEMO_HELP) if with_demo else ("up", UP_HELP)
    parser = ArgumentParser(prog=f"manage.py {command}", description=what)
    parser.add_argument("--worker-processes", type=int, default=_WORKER_PROCESSES, help="processes of the worker (2)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
