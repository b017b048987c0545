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
from controlplane.ops.supervisor.programs import PREPARE, ROOT, STOP_ORDER
from controlplane.ops.supervisor.run import EXIT_CANNOT_START, EXIT_STOPPED, Supervisor

_WORKER_PROCESSES: Final = 2


def main(arguments: list[str], *, with_demo: bool = False) -> int:
    """Run `manage.py up`, or `manage.py demo`; the exit status."""
    options = _parser().parse_args(arguments)
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
    screen = Screen(sys.stdout, (*STOP_ORDER, PREPARE), os.environ, as_json=as_json)
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
    """The environment variables of the child processes: ours, with paths that do not depend on where they start."""
    return {
        **os.environ,
        "PARLEY_HOME": str(home),
        "PARLEY_LOG_JSON": os.environ.get("PARLEY_LOG_JSON", "0"),  # lines with a name in front are for people
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))),
        "PYTHONUNBUFFERED": "1",
    }


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="manage.py up", description="Start all of Parley on this machine; stop with Ctrl-C.")
    parser.add_argument("--worker-processes", type=int, default=_WORKER_PROCESSES, help="processes of the worker (2)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
