"""Where a soak happens: the site, its writer, the truth, and the proxies between the replicas and the stores."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from tests.soak.truth import Truth
from tests.soak.writer import Writer
from tests.support.ads_probe import served_version
from tests.support.fault_proxy import FaultProxy
from tests.support.site import CLIENTS, REPLICAS, Site
from tests.support.stack import readiness
from tests.support.waiting import eventually
from tests.support.watchers import Report

CONVERGENCE_S = 60
_OUTBOX_S = 20
_POLL_S = 0.1

_BUILT = "SELECT generation, built_generation, epoch FROM catalog_environment WHERE key = 'default'"
_UNHEARD = (
    "SELECT (SELECT count(*) FROM journal_domainevent WHERE handled_at IS NULL),"
    " (SELECT count(*) FROM clients_nack WHERE digested_at IS NULL)"
)


@dataclass(frozen=True, slots=True)
class State:
    """What the database and the replicas say: nothing is owed, and both replicas serve the newest epoch, the same
    bytes.
    """

    generation: int
    built_generation: int
    epoch: int
    events_waiting: int
    nacks_waiting: int
    loaded: tuple[int, ...]
    versions: tuple[str, ...]

    @property
    def settled(self) -> bool:
        """Whether it is so."""
        return (
            self.generation == self.built_generation
            and (self.events_waiting, self.nacks_waiting) == (0, 0)
            and set(self.loaded) == {self.epoch}
            and len(set(self.versions)) == 1
            and "" not in self.versions
        )


@dataclass(slots=True)
class Ground:
    """What faults act on, and the oracle."""

    site: Site
    truth: Truth
    writer: Writer
    proxies: Sequence[Sequence[FaultProxy]]
    # The epochs that each replica had at the last check: they never go back (P5).
    epochs: tuple[int, ...] = (0,) * len(REPLICAS)
    serial: int = 0
    seen: list[str] = field(default_factory=list)

    def check(self, *, ends: Sequence[str] = (), since: float | None = None) -> tuple[float | None, list[str]]:
        """Stop the changes, wait until the fleet is told the truth, and compare everything.

        Says after how many seconds since then (default: now) it was, None when it was not in time, and what is wrong.
        """
        began = time.monotonic() if since is None else since
        with self.writer.lock:
            return self.check_locked(began, ends)

    def check_locked(self, began: float, ends: Sequence[str] = ()) -> tuple[float | None, list[str]]:
        """The same for who holds the writer's lock."""
        told, found, converged_s = Report(), [], None
        self.writer.settle()
        try:
            self.site.fleet.until(
                lambda report: self.truth.is_told(report, clients=CLIENTS), within_s=CONVERGENCE_S, into=told
            )
            converged_s = time.monotonic() - began
        except AssertionError:
            found.append(f"no convergence within {CONVERGENCE_S} s: {self.truth.difference(told)}")
        found += self.truth.violations(told, clients=CLIENTS, ends=ends)
        found += self._unsettled()
        found += self._deaths()
        self.truth.checked()
        return converged_s, found

    def _unsettled(self) -> list[str]:
        try:
            state = eventually(self._state, lambda state: state.settled, within_s=_OUTBOX_S, every_s=_POLL_S)
        except AssertionError as error:
            return [f"outbox, epochs or versions: {error}"]
        back = any(now < before for now, before in zip(state.loaded, self.epochs, strict=True))
        found = [f"an epoch went back, from {self.epochs} to {state.loaded}"] if back else []
        self.epochs = state.loaded
        return found

    def _state(self) -> State:
        parley = self.site.parley
        with psycopg.connect(self.site.database.url, connect_timeout=5) as session:
            generation, built, epoch = session.execute(_BUILT).fetchone() or (0, 0, 0)
            events, nacks = session.execute(_UNHEARD).fetchone() or (0, 0)
        told = [json.loads(readiness(port)[1]) for port in parley.metrics_ports]
        loaded = tuple(int(each["environments"].get("default", {"epoch": 0})["epoch"]) for each in told)
        versions = tuple(served_version(port) for port in parley.ads_ports)
        return State(generation, built, epoch, events, nacks, loaded, versions)

    def _deaths(self) -> list[str]:
        """Processes that ended and should not have. They are started again, so that the run can go on."""
        found = []
        for name, process in list(self.site.parley.processes.items()):
            status = process.poll()
            if status is not None:
                found.append(f"{name} ended by itself with status {status}")
                self.site.parley.start(name)
        return found
