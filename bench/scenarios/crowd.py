"""As many clients as one machine is meant to hold, and clients that come and go for minutes."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import linear_regression

import redis

from bench.ads_process import AdsProcess, ads_process
from bench.ads_program import HELD_WORD
from bench.cycles import Counted, cycles
from bench.fan_outs import LIMITS, PER_CLUSTER, builder, measure_in_turn, product, rules
from bench.filled import filled
from bench.installation import installation
from bench.receivers import Asks
from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster, fleet
from bench.whole import Whole, whole
from controlplane.config.home import Home

_MIB = 1024 * 1024
_SETTLES_S = 120.0
_EVERY_S = 1.0
_PROGRAM = ("-m", "bench.ads_program")
_FORBIDDEN = "forbidden-x"
# The share of a churn whose memory is the process's own warming up.
_WARM_UP = 1 / 3


@scenario(
    "crowd",
    "So many delta clients on one ADS process",
    parameters={"clients": 10_000, "clusters": 1_000, "changes": 5, "rules": 1_000, "per_s": 1_000},
    by_name=True,
)
def crowd(parameters: Parameters) -> Iterator[Measurement]:
    """Measure a server full of clients. Issue 10: all connect, one change reaches all, 60 KiB each."""
    clients = parameters["clients"]
    with filled(parameters["clusters"] * PER_CLUSTER):
        rules(parameters["rules"])
        builder()()
        with ads_process(**LIMITS) as ads:
            side = product(ads, Asks(delta=True), per_s=parameters["per_s"])
            measure_in_turn((side,), rounds=1, clients=clients, changes=parameters["changes"])
    yield side.measurement("all clients connect and have everything", "s", side.first_sync_s)
    yield side.measurement("processor time of that", "s", side.first_cpu_s)
    yield side.measurement("a change, first client to last", "s", side.last_s)
    yield side.measurement("a change, first client to the middle one", "s", side.middle_s)
    yield side.measurement("processor time of a change", "ms", side.cpu_ms)
    yield side.measurement("memory of a stream", "KiB", side.stream_kib, at_most=60)


@scenario(
    "churn",
    "Connects, changes, denials and NACKs for minutes, and what they leave behind",
    parameters={"minutes": 10, "at_once": 20, "resources": 300},
    by_name=True,
)
def churn(parameters: Parameters) -> Iterator[Measurement]:
    """Measure what clients that come and go leave behind. Issue 10: memory flat (300 B for a stream that came and
    went), no task, descriptor or key left.
    """
    with installation() as home, whole(home) as parley:
        parley.published(parley.apply(list(fleet(parameters["resources"]))))
        parley.post("/environments/default/rules", {"effect": "deny", "pattern": _FORBIDDEN, "client_groups": []})
        names, at_once = ("nobody", _FORBIDDEN), parameters["at_once"]
        with (
            ads_process(_PROGRAM, REDIS_URL="") as ads,
            closing(redis.Redis(unix_socket_path=str((home / "run" / "valkey.sock").resolve()))) as broker,
        ):
            resources = _Left(ads, broker, Home(home).database)
            with cycles(ads.address, at_once=at_once, also=names) as done:
                _until(lambda: done.value > 10 * at_once)
            before = resources.settled(None)
            with cycles(ads.address, at_once=at_once, also=names) as done:
                samples = _samples(ads, parley, done, seconds=parameters["minutes"] * 60)
            after = resources.settled(before)
    counted, resident = zip(*samples[int(len(samples) * _WARM_UP) :], strict=True)
    yield Measurement("streams that came and went", "", (samples[-1][0],))
    yield Measurement("memory of ADS for each", "B", (linear_regression(counted, resident).slope,), at_most=300)
    yield Measurement("memory of ADS, at most", "MiB", (max(resident) / _MIB,))
    for what in before:
        yield Measurement(f"{what} left behind", "", (after[what] - before[what],), at_most=0)


def _samples(ads: AdsProcess, parley: Whole, done: Counted, *, seconds: float) -> list[tuple[float, float]]:
    """A sample each second of (cycles so far, memory of ADS in bytes), while a cluster changes each second."""
    samples = []
    ends = time.monotonic() + seconds
    version = 1
    while time.monotonic() < ends:
        version += 1
        manifest = cluster(0, timeout_s=version)
        parley.put("cluster", str(manifest["name"]), manifest)
        time.sleep(_EVERY_S)
        samples.append((float(done.value), float(ads.process.memory_info().rss)))
    return samples


class _Left:
    """Counts what clients may leave behind: tasks, threads and descriptors of ADS, keys in the broker.

    Not counted are descriptors of the database file itself: when a connection is closed while another one of the
    process has a lock, SQLite keeps its descriptor for the next one. What a connection has open beside it, the
    write-ahead log, is closed with it, and counts.
    """

    def __init__(self, ads: AdsProcess, broker: "redis.Redis", database: Path) -> None:
        self._ads, self._broker, self._database = ads, broker, str(database.resolve())

    def settled(self, before: dict[str, int] | None) -> dict[str, int]:
        """The counts once none is higher than in `before`, or without `before` once they do not change; after a while,
        whatever they are.
        """
        ends = time.monotonic() + _SETTLES_S
        last = self._now()
        while time.monotonic() < ends:
            time.sleep(2)
            now = self._now()
            if now == last if before is None else all(now[what] <= before[what] for what in now):
                return now
            last = now
        return last

    def _now(self) -> dict[str, int]:
        tasks, threads = self._held()
        of_database = sum(each.path == self._database for each in self._ads.process.open_files())
        return {
            "tasks": tasks,
            "descriptors": self._ads.process.num_fds() - of_database,
            "threads": threads,
            "keys": int(self._broker.dbsize()),
        }

    def _held(self) -> tuple[int, int]:
        """The numbers of tasks of the event loop and of Python threads, as the process reports them."""
        told = len(self._ads.told(HELD_WORD))
        self._ads.process.send_signal(signal.SIGUSR1)
        _until(lambda: len(self._ads.told(HELD_WORD)) > told)
        tasks, threads = self._ads.told(HELD_WORD)[-1].split()
        return int(tasks), int(threads)


def _until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + _SETTLES_S
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError("the clients, or the server, did not go on")
        time.sleep(0.05)
