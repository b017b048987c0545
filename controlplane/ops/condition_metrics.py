"""What Prometheus is told of the whole installation: figures of the database, the same whichever web process is asked.

Open to every scraper, so there is no label but closed sets: never an environment, a client or a name. Asked at most
once in a while, however many scrape (texts.md section 6).
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controlplane.broker.probe import ANSWERS, probe
from controlplane.builder.selectors import environments_failing, held_count
from controlplane.catalog.selectors import environment_list, environments_due, oldest_waiting, quarantine_count
from controlplane.catalog.standing import staged_counts
from controlplane.clients.selectors import connected_counts, replica_list, subscription_counts
from controlplane.incidents.triage import incident_state_counts
from controlplane.incidents.values import UNRESOLVED, IncidentCause, IncidentState
from controlplane.journal.selectors import oldest_event_waiting
from controlplane.notify.selectors import channels_paused, oldest_delivery_due, told_counts
from controlplane.rollouts.selectors import rollouts_open_counted
from controlplane.status.environments import Headline
from controlplane.status.selectors import environment_statuses
from controlplane.status.values import Status

# An ADS process reports every few seconds; one that has not for so long has died or cannot reach the database.
REPLICA_LATE: Final = timedelta(seconds=30)
_FRESH_S: Final = 5.0


class ConditionCollector(Collector):
    """Reads figures about the whole installation from the database when Prometheus asks. An answer is used again for
    five seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, now: Callable[[], datetime] = timezone.now) -> None:
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._figures: Sequence[Metric] = ()

    def collect(self) -> Iterable[Metric]:
        """The figures as metrics; where the database does not answer, only the one that says so."""
        with self._lock:
            if self._clock() - self._read_at >= _FRESH_S:
                self._figures = _read(self._now())
                self._read_at = self._clock()
            return self._figures


def _read(now: datetime) -> Sequence[Metric]:
    try:
        figures = tuple(_of_database(now))
    except DatabaseError:
        figures = ()
    answers = probe.state() == ANSWERS
    return (
        _one("parley_database_up", "1 when the database answers.", bool(figures)),
        _one("parley_broker_up", "1 when Redis answers; without it changes take up to 2 s longer.", answers),
        *figures,
    )


def _of_database(now: datetime) -> Iterable[Metric]:
    environments = environment_list()
    keys = [each.key for each in environments]
    yield _one("parley_environments", "Environments.", len(environments))
    yield _one("parley_builds_due", "Environments with changes that no build has covered.", len(environments_due()))
    yield _one("parley_build_wait_seconds", "Age of the oldest change that waits.", _age_s(oldest_waiting(), now))
    yield _one("parley_builds_failing", "Environments whose newest build failed.", environments_failing())
    statuses = environment_statuses(environments=environments).values()
    stand = Counter(each.status.value for each in statuses)
    yield _each(
        "parley_environments_standing",
        "Environments, by how they stand.",
        "status",
        {each.value: stand[each.value] for each in Headline},
    )
    yield _each(
        "parley_resources",
        "Resources, by how they stand.",
        "status",
        {each.value: sum(one.counts[each] for one in statuses) for each in Status},
    )
    yield _one("parley_resources_held", "Names that are not served as written.", held_count())
    yield _one("parley_quarantines", "Revisions in quarantine.", quarantine_count())
    unresolved = _unresolved(incident_state_counts(environment_keys=keys))
    yield _each("parley_incidents", "Incidents that are not resolved, those of losses among them.", "state", unresolved)
    losses = _unresolved(incident_state_counts(environment_keys=keys, cause=IncidentCause.LOSS))
    yield _each(
        "parley_losses", "Changes by which clients lost something, with an incident not resolved.", "state", losses
    )
    yield from _of_rollouts(now)
    yield _one("parley_clients", "Clients with an open stream.", sum(connected_counts().values()))
    subscribed = {state.value: count for state, count in subscription_counts().items()}
    yield _each("parley_subscriptions", "Types that clients follow, by their last word.", "state", subscribed)
    yield from _of_replicas(now)
    untold = _age_s(oldest_event_waiting(), now)
    yield _one("parley_event_wait_seconds", "Age of the oldest event that nobody was told of.", untold)
    yield _one("parley_delivery_wait_seconds", "How late the latest delivery is.", _age_s(oldest_delivery_due(), now))
    yield _one("parley_channels_paused", "Channels that are sent nothing.", channels_paused())
    told = CounterMetricFamily(
        "parley_notifications", "Notifications that were made; repeats are none.", labels=("kind",)
    )
    for kind, count in told_counts().items():
        told.add_metric((kind,), count)
    yield told


def _unresolved(states: Mapping[IncidentState, int]) -> Mapping[str, int]:
    return {state.value: states[state] for state in UNRESOLVED}


def _of_rollouts(now: datetime) -> Iterable[Metric]:
    open_rollouts, oldest = rollouts_open_counted()
    states = {state.value: count for state, count in open_rollouts.items()}
    yield _each("parley_rollouts", "Open rollouts; one that waits does so for a person.", "state", states)
    yield _one("parley_rollout_age_seconds", "Age of the oldest open rollout.", _age_s(oldest, now))
    yield _each(
        "parley_names_staged",
        "Names whose newest revision not all clients may have: it waits for a rollout, is in the open one, or was "
        "taken back.",
        "state",
        {state.value: count for state, count in staged_counts().items()},
    )


def _of_replicas(now: datetime) -> Iterable[Metric]:
    forgotten = timedelta(seconds=settings.PARLEY.limits.replica_forget_s)
    running = [each for each in replica_list() if not each.stopped and now - each.seen_at <= forgotten]
    silent = sum(now - each.seen_at > REPLICA_LATE for each in running)
    counts = {"reporting": len(running) - silent, "silent": silent}
    yield _each(
        "parley_replicas",
        "ADS processes that were not stopped; who ended without a goodbye is silent for PARLEY_LIMIT_REPLICA_FORGET_S, "
        "or until one is started in its place.",
        "state",
        counts,
    )
    dropped = sum(each.nacks_dropped for each in running)
    yield _one("parley_nacks_dropped", "NACKs that running ADS processes counted and could not keep.", dropped)


def _age_s(moment: datetime | None, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds()) if moment is not None else 0.0


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _each(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=(label,))
    for key, value in values.items():
        gauge.add_metric((key,), value)
    return gauge
