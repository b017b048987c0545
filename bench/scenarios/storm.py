"""A fleet that refuses every response, while the resource it refuses goes on changing (issue: NACK storm, F19)."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from bench.ads_process import AdsProcess, ads_process
from bench.filled import filled, put
from bench.refusers import Refusers, refusers
from bench.registry import Measurement, Parameters, scenario
from bench.resources import cluster, cluster_name

# Fifty clusters, with what belongs to them.
_RESOURCES = 300
_TEXT = f"Error adding/updating cluster(s) {cluster_name(0)}: this fleet takes nothing"
_ANSWER_S = 60.0
# Nobody hints here: so often ADS looks for a snapshot.
_POLL_MS = "200"


@scenario(
    "nack-storm",
    "Clients that refuse every response, through so many changes of one cluster",
    parameters={"clients": 500, "changes": 30, "pause_ms": 1_000},
)
def nack_storm(parameters: Parameters) -> Iterator[Measurement]:
    """Measure a fleet that refuses every response. Reliability F19, N3: no response twice, at most 10 database writes a
    second, half a core, memory flat, one incident, one message.
    """
    clients = parameters["clients"]
    changes, pause_s = parameters["changes"], parameters["pause_ms"] / 1000
    with filled(_RESOURCES) as _token:
        from django.conf import settings  # noqa: PLC0415
        from django.db import connection, connections  # noqa: PLC0415

        connection.ensure_connection()  # makes the file that is looked into
        with ExitStack() as stack:
            commits = stack.enter_context(closing(Commits(settings.PARLEY.home / "db.sqlite3-shm")))
            stack.callback(connections.close_all)
            build = stack.enter_context(_worker())
            build()
            ads = stack.enter_context(ads_process(PARLEY_LIMIT_RECONCILE_POLL_MS=_POLL_MS))
            fleet = stack.enter_context(refusers(ads.address, clients=clients, text=_TEXT))
            fleet.accepted(within_s=_ANSWER_S)
            _await(_quiet)
            fleet.refuse()
            meter = _Meter(ads, commits)
            for round_ in range(changes):
                due = time.monotonic() + pause_s
                put([cluster(0, timeout_s=2 + round_)])
                build()
                _await(lambda answers=clients * (round_ + 1): fleet.refused().total() >= answers)  # type: ignore[misc]
                time.sleep(max(0.0, due - time.monotonic()))
                meter.look()
            yield from meter.measured(clients * changes)
            yield from _outcome(fleet, changes)


class Commits:
    """Counts the write transactions of all processes on a SQLite database.

    The header of the WAL's index has a counter of them (sqlite.org/walformat.html, "iChange"). To be closed after all
    connections of this process: with a file a process lets go of every lock it has on it, those of SQLite too.
    """

    def __init__(self, index: Path) -> None:
        self._file = index.open("rb", buffering=0)

    def close(self) -> None:
        """Stop counting and close the file."""
        self._file.close()

    def count(self) -> int:
        """The number of write transactions so far."""
        return int.from_bytes(os.pread(self._file.fileno(), 4, 8), sys.byteorder)


class _Meter:
    """Measures an ADS process and the database from its creation to the last look."""

    def __init__(self, ads: AdsProcess, commits: Commits) -> None:
        self._ads, self._commits = ads, commits
        self._began = self._looked = time.monotonic()
        self._cpu_s, self._writes = ads.cpu_s(), commits.count()
        self._resident: list[float] = []

    def look(self) -> None:
        """Take one more sample of the process's memory."""
        self._looked = time.monotonic()
        self._resident.append(self._ads.resident_mib())

    def measured(self, refused: int) -> Iterator[Measurement]:
        """The measurements of a storm in which this number of responses was refused. The database's writes are those of
        everybody: also of the changes and their builds. A busy machine stretches the time and so flatters a share of
        it; the processor's time for one refusal says what it costs all the same.
        """
        took = self._looked - self._began
        third = max(len(self._resident) // 3, 1)
        grown = max(self._resident[-third:]) - max(self._resident[:third])
        writes = self._commits.count() - self._writes
        cpu_s = self._ads.cpu_s() - self._cpu_s
        yield Measurement("processor time of ADS", "cores", (cpu_s / took,), at_most=0.5)
        yield Measurement("processor time of ADS for each refused response", "ms", (cpu_s / refused * 1000,))
        yield Measurement("database writes of all processes", "/s", (writes / took,), at_most=10)
        yield Measurement("memory of ADS, last third over first", "MiB", (grown,), at_most=5)
        yield Measurement("time that this took", "s", (took,))
        yield Measurement("memory of ADS, at most", "MiB", (max(self._resident),))


@contextmanager
def _worker() -> Iterator[Callable[[], None]]:
    """The worker's sweepers in this process; yields a function that builds, as the worker does on a hint."""
    from controlplane.builder.services import build, builds_sweep  # noqa: PLC0415
    from controlplane.builder.sweeper import Sweeper  # noqa: PLC0415
    from controlplane.catalog.selectors import environment_get  # noqa: PLC0415
    from controlplane.incidents.services import digest  # noqa: PLC0415
    from controlplane.notify.services import notify  # noqa: PLC0415

    environment = environment_get(key="default").id
    sweepers = (Sweeper((builds_sweep, digest), 1.0), Sweeper((notify,), 1.0))
    for sweeper in sweepers:
        sweeper.start()
    try:
        yield lambda: build(environment_id=environment)
    finally:
        for sweeper in sweepers:
            sweeper.stop()
            sweeper.join()


def _outcome(fleet: Refusers, changes: int) -> Iterator[Measurement]:
    """The measurements of what the storm led to, once all of it was digested: repeats, incidents and messages."""
    from django.db.models import Sum  # noqa: PLC0415

    from controlplane.incidents.models import Incident, IncidentClient  # noqa: PLC0415
    from controlplane.notify.models import Notification  # noqa: PLC0415

    def counted() -> int:
        return int(IncidentClient.objects.aggregate(sum=Sum("count"))["sum"] or 0)

    _await(_quiet)
    refused = fleet.refused()
    _await(lambda: counted() >= refused.total() and _quiet())
    yield Measurement("responses a client refused, at most", "", (max(refused.values(), default=0),), at_most=changes)
    yield Measurement("responses refused in all", "", (refused.total(),))
    yield Measurement("refusals that the incidents do not count", "", (refused.total() - counted(),), at_most=0)
    yield Measurement("incidents", "", (Incident.objects.count(),), at_most=1)
    told = Notification.objects.filter(kind__startswith="incident.").count()
    yield Measurement("messages about incidents", "", (told,), at_most=1)


def _quiet() -> bool:
    """Whether all facts that streams reported have been digested and people were told."""
    from controlplane.clients.models import Nack  # noqa: PLC0415
    from controlplane.journal.services import events_waiting  # noqa: PLC0415

    return not Nack.objects.filter(digested_at=None).exists() and not events_waiting()


def _await(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _ANSWER_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what clients said was not taken in")
        time.sleep(0.05)
