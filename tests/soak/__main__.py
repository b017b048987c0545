"""`python -m tests.soak [--minutes 45] [--seed N] [--out soak]`: break a running Parley again and again, and report.

The exit status is 0 when the oracle found nothing, 1 on a violation and 130 on Ctrl-C; the report is written each time.
"""

import argparse
import os
import random
import secrets
import signal
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from bench.report import commit, machine
from tests.soak.faults import ENDS, fault_of
from tests.soak.ground import Ground
from tests.soak.memory import Scales
from tests.soak.report import Round, Run, write
from tests.soak.schedule import Fault, draw
from tests.soak.truth import LISTENERS, Truth
from tests.soak.writer import Writer
from tests.support.fault_proxy import FaultProxy, fault_proxies
from tests.support.postgres import Postgres
from tests.support.site import CLIENTS, REPLICAS, site_of, stores
from tests.support.valkey import Valkey

_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Break a running Parley for a long time.")
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32), help="the same faults again")
    parser.add_argument("--every", type=float, default=20.0, help="seconds from one fault to the next")
    parser.add_argument("--out", type=Path, default=Path("soak"))
    wanted = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    facts = {"commit": commit(), **machine(), "clients": CLIENTS, "load_before": os.getloadavg()}
    run = Run(wanted.seed, wanted.minutes, facts)
    _say(f"seed {run.seed}, {run.minutes:g} minutes, a fault every {wanted.every:g} s; report: {wanted.out}")
    try:
        with tempfile.TemporaryDirectory(prefix="parley-soak-") as folder:
            soak(run, Path(folder) / "home", every_s=wanted.every)
    except KeyboardInterrupt:
        run.ended = "by Ctrl-C"
        return _INTERRUPTED
    except BaseException as error:
        run.ended = f"by {error!r}"
        raise
    finally:
        run.facts = {**run.facts, "load_after": os.getloadavg()}
        write(wanted.out, run)
    for text in run.violations:
        _say(f"violation after {text}")
    return 1 if run.violations else 0


def soak(run: Run, home: Path, *, every_s: float) -> None:
    """Faults until the minutes are over; `run` has what was seen, also when it ends early."""
    with stores() as (database, redis), fault_proxies(*_ports(database, redis) * len(REPLICAS)) as proxies:
        pairs = [proxies[2 * number : 2 * number + 2] for number in range(len(REPLICAS))]
        of = {name: _through(pair, database, redis) for name, pair in zip(REPLICAS, pairs, strict=True)}
        with site_of(home, database, redis, listeners=LISTENERS, of=of) as site:
            truth = Truth()
            writer = Writer(site.parley, truth, random.Random(run.seed))  # noqa: S311 - can be repeated, no secret
            ground = Ground(site, truth, writer, pairs)
            writer.prepare()
            _, wrong = ground.check()
            assert not wrong, wrong
            scales = Scales(site.parley)
            scales.start()
            writer.start()
            began = time.monotonic()
            try:
                _break_and_mend(ground, run, began, every_s)
            finally:
                writer.stop()
                run.took_s = time.monotonic() - began
                run.writes, run.refused_writes = writer.done, writer.refused
                run.lives = scales.stop()


def _break_and_mend(ground: Ground, run: Run, began: float, every_s: float) -> None:
    for number, fault in zip(count(1), draw(run.seed), strict=False):
        due = began + number * every_s
        if max(due, time.monotonic()) > began + run.minutes * 60:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        run.rounds.append(_one(ground, fault, began))
        each = run.rounds[-1]
        converged = "no convergence" if each.converged_s is None else f"converged after {each.converged_s:.2f} s"
        _say(f"{each.at_s:7.1f} s  {fault.kind.value} ({fault.victim}) for {fault.held_s} s: {converged}")
        for text in each.violations:
            _say(f"          VIOLATION: {text}")


def _one(ground: Ground, fault: Fault, began: float) -> Round:
    ground.seen.clear()
    at_s = time.monotonic() - began
    try:
        with fault_of(ground, fault.kind, fault.victim):
            time.sleep(fault.held_s)
    except AssertionError as error:
        ground.seen.append(str(error))
    converged_s, found = ground.check(ends=ENDS.get(fault.kind, ()), since=time.monotonic())
    return Round(fault, at_s, converged_s, (*ground.seen, *found))


def _ports(database: Postgres, redis: Valkey) -> tuple[int, int]:
    port = urllib.parse.urlsplit(database.url).port
    assert port is not None
    return port, redis.port


def _through(pair: Sequence[FaultProxy], database: Postgres, redis: Valkey) -> dict[str, str]:
    """The stores' addresses by way of the proxies."""
    ports = _ports(database, redis)
    to_database, to_redis = pair
    return {
        "DATABASE_URL": database.url.replace(f":{ports[0]}/", f":{to_database.port}/"),
        "REDIS_URL": redis.url.replace(f":{ports[1]}/", f":{to_redis.port}/"),
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a command's word


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
