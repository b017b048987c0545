"""Is this container's process well? Run by HEALTHCHECK and by docker-compose.yml.

Without an argument the role is read from the first process's command line. Every check is of the process itself: what
it depends on is judged only with `--ready`. Nothing but the standard library, because it runs every few seconds.
"""

# ruff: noqa: INP001  a program of the image, in no package

import argparse
import http.client
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ANSWER_WAIT_S = 4.0  # below the 5 s that HEALTHCHECK gives this program

# The worker's sweeper touches its file each round, and a round lasts as long as a build may: 60 s, the tasks' limit.
WORKER_SILENT_S = 120.0
# Beat writes its schedule every 180 s (celery.beat.Scheduler.sync_every).
BEAT_SILENT_S = 400.0

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  what listens everywhere is asked here


def answers(variable: str, default: str, *, ready: bool) -> str:
    """What is wrong with the HTTP server at the address in `variable`, as a sentence; empty where nothing is."""
    address = os.environ.get(variable, "").strip() or default
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    path = "/readyz" if ready else "/healthz"
    connection = http.client.HTTPConnection(_LOOPBACK.get(host, host), int(port), timeout=ANSWER_WAIT_S)
    try:
        connection.request("GET", path, headers={"Host": "localhost"})
        answer = connection.getresponse()
        text = answer.read(1024).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return f"{address}{path} does not answer: {error}"
    finally:
        connection.close()
    return "" if answer.status == http.HTTPStatus.OK else f"{address}{path} answers {answer.status}: {text}"


def moves(name: str, silent_s: float, *, ready: bool) -> str:  # noqa: ARG001  these roles serve nobody
    """What is wrong with the process that writes the file `name` in the home at intervals, as a sentence; empty where
    nothing is. `silent_s`: the longest interval in seconds.
    """
    home = Path(os.environ.get("PARLEY_HOME", "").strip() or "./.parley")
    written = [file.stat().st_mtime for file in home.glob(f"{name}*")]
    if not written:
        return f"{home / name} was not written yet"
    age_s = time.time() - max(written)
    return "" if age_s <= silent_s else f"{home / name} was last written {age_s:.0f} s ago"


ROLES: dict[str, Callable[..., str]] = {
    "web": partial(answers, "PARLEY_WEB_ADDRESS", "127.0.0.1:8000"),
    "ads": partial(answers, "PARLEY_ADS_METRICS_ADDRESS", "127.0.0.1:9102"),
    "worker": partial(moves, "run/worker.alive", WORKER_SILENT_S),
    "beat": partial(moves, "beat.schedule", BEAT_SILENT_S),
}


def role(command_line: bytes) -> str:
    """The role of a process from its arguments, which may follow those of an init; empty for a one-shot command."""
    arguments = command_line.decode("utf-8", "replace").split("\0")
    if "controlplane.asgi:application" in arguments:
        return "web"
    return next((word for word in arguments if word in ROLES), "")


def main(arguments: list[str]) -> int:
    """Check the container's process and print what is wrong; the exit status that Docker expects: 0 well, 1 not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", choices=sorted(ROLES))
    parser.add_argument("--ready", action="store_true", help="ask whether it can serve, not only whether it runs")
    chosen = parser.parse_args(arguments)
    name = chosen.role or role(Path("/proc/1/cmdline").read_bytes())
    if not name:
        return 0  # a migration or a shell is well as long as it runs
    problem = ROLES[name](ready=chosen.ready)
    if problem:
        sys.stderr.write(f"{problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
