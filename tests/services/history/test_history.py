"""Counts and samples in the real database, on SQLite and on PostgreSQL."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from adsserver.store.facts import FactBuffer
from controlplane.accounts.principal import SYSTEM
from controlplane.catalog.models import Environment
from controlplane.catalog.services import environment_create
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.clients import fleet_states as sampling
from controlplane.clients.facts import FactBatch, ReplicaFact
from controlplane.clients.fleet_states import Sampling, fleet_states
from controlplane.clients.services import facts_write
from controlplane.database.aliases import READER
from controlplane.history.models import FleetSample, ReportedSpan, Tally
from controlplane.history.selectors import fleet_series, history_kept, tally_series
from controlplane.history.series import Window, floor
from controlplane.history.services import fleet_sample_add, history_prune, tallies_add
from controlplane.history.values import LONG_S, MINUTE_S, STATES, FleetStates, Tallied, What
from tests.support.facts import NothingSecret, acknowledged, content, rejected, respond, stream, subscribed

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def tallied(times: int = 1, *, age_s: float = 0.0, environment: str = "default", detail: str = "envoy 1.40") -> Tallied:
    return Tallied(environment, What.NACKS, "cluster", detail, times, age_s)


def add(now: datetime, *tallies: Tallied) -> None:
    with connection.cursor() as cursor:
        tallies_add(cursor, tallies, now)


def sample(now: datetime, **states: int) -> None:
    fleet_sample_add(states={Environment.objects.get(key="default").pk: FleetStates(**states)}, now=now)


def nacks(since: datetime, minutes: int, step_s: int = 60, by: str = "type") -> dict[str, tuple[float | None, ...]]:
    window = Window(since, since + minutes * MINUTE, step_s)
    found = tally_series(what=What.NACKS, by=by, environment_keys=["default"], window=window)
    return {each.label: each.values for each in found}


def fleet(since: datetime, minutes: int, *keys: str, step_s: int = 60) -> dict[str, tuple[float | None, ...]]:
    window = Window(since, since + minutes * MINUTE, step_s)
    return {each.label: each.values for each in fleet_series(environment_keys=keys or ("default",), window=window)}


def test_tallies__of_two_processes_and_of_two_flushes__add_up_and_a_silent_minute_is_a_gap() -> None:
    add(NOON, tallied(3), tallied(2, detail="grpc-go 1.76"))
    add(NOON + timedelta(seconds=40), tallied(4))
    add(NOON + 2 * MINUTE)

    assert nacks(NOON, 4) == {"cluster": (9, None, 0, None)}
    assert nacks(NOON, 1, by="detail") == {"envoy 1.40": (7,), "grpc-go 1.76": (2,)}


def test_tallies__written_late__stand_in_the_minute_in_which_they_happened() -> None:
    add(NOON + timedelta(seconds=30), tallied(5, age_s=100.0))

    assert nacks(NOON - 2 * MINUTE, 3) == {"cluster": (5, None, 0)}


def test_tallies__of_an_environment_that_is_gone__write_nothing_and_hold_nothing_up() -> None:
    add(NOON, tallied(environment="gone"), tallied())

    assert list(Tally.objects.values_list("environment__key", "count")) == [("default", 1)]


def test_tallies__of_another_environment__are_not_told() -> None:
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    add(NOON, tallied(environment="prod"))

    assert nacks(NOON, 1) == {"other": (0,)}


def test_facts_write__batch_with_tallies__stores_them_with_the_rest() -> None:
    replica = ReplicaFact("a" * 32, "host", 1, 0.0)

    facts_write(batch=FactBatch(replica, tallies=(tallied(2),)))
    facts_write(batch=FactBatch(replica))

    assert list(Tally.objects.values_list("count", flat=True)) == [2]
    assert ReportedSpan.objects.count() in (1, 2)  # the minute may end between the two


def test_states__of_each_kind_of_client__count_every_client_once_by_what_needs_attention_most() -> None:
    buffer, response = FactBuffer(contents=NothingSecret()), respond(content("a"))
    everybody = [stream(number) for number in range(1, 7)]
    for one in everybody:
        buffer.opened(one)
    acked, refusing, waiting, asking, gone, _nothing = everybody
    for one in (acked, refusing, waiting, asking, gone):
        buffer.learnt(one, subscribed(wildcard=True))
    for one in (acked, refusing, waiting, gone):
        buffer.sent(one, response)
    for one in (acked, refusing, gone):
        buffer.learnt(one, acknowledged(response))
    buffer.learnt(refusing, rejected(response))
    buffer.closed(gone, "left")
    buffer._take(everything=True)
    buffer._flush()

    (states,) = fleet_states().values()

    assert states == FleetStates(nacked=1, sent=1, requested=2, acked=1, disconnected=1)


def test_sampling__called_each_second__counts_once_a_minute_and_two_workers_are_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = 0.0
    monkeypatch.setattr(sampling, "database_now", lambda: NOON + timedelta(seconds=50 + seconds))
    one, other = Sampling(lambda: seconds), Sampling(lambda: seconds)

    for each in range(140):
        seconds = float(each)
        one()
        other()

    assert list(FleetSample.objects.order_by("at").values_list("at", "samples")) == [
        (NOON, 1), (NOON + MINUTE, 1), (NOON + 2 * MINUTE, 1), (NOON + 3 * MINUTE, 1)
    ]  # fmt: skip


def test_fleet__a_minute_that_no_worker_counted__is_a_gap_and_not_zero() -> None:
    sample(NOON, acked=5)
    sample(NOON + 2 * MINUTE, acked=4, nacked=1)

    found = fleet(NOON, 3)

    assert found["acked"] == (5.0, None, 4.0)
    assert found["nacked"] == (0.0, None, 1.0)


def test_fleet__of_two_environments__is_added_up() -> None:
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    sample(NOON, acked=5)
    fleet_sample_add(states={Environment.objects.get(key="prod").pk: FleetStates(acked=2)}, now=NOON)

    assert fleet(NOON, 1, "default", "prod")["acked"] == (7.0,)
    assert fleet(NOON, 1)["acked"] == (5.0,)


def test_prune__rows_older_than_a_day__become_rows_of_ten_minutes_that_tell_the_same(settings: Settings) -> None:
    old, now = NOON - timedelta(hours=25), NOON
    for minute in range(0, 10, 2):
        add(old + minute * MINUTE, tallied(minute + 1))
        sample(old + minute * MINUTE, acked=10 + minute, nacked=1)
    add(NOON - MINUTE, tallied(100))
    before = nacks(old, 10, LONG_S), fleet(old, 10, step_s=LONG_S)

    pruned = history_prune(now=now)

    assert pruned == 15
    assert set(Tally.objects.values_list("span_s", "at", "count")) == {
        (LONG_S, old, 25),
        (MINUTE_S, NOON - MINUTE, 100),
    }
    assert list(FleetSample.objects.values_list("span_s", "samples", "acked")) == [(LONG_S, 5, 70)]
    assert before[0] == {"cluster": (25,)}
    assert (before[1]["nacked"], before[1]["acked"], before[1]["sent"]) == ((1.0,), (14.0,), (0.0,))
    assert (nacks(old, 10, LONG_S), fleet(old, 10, step_s=LONG_S)) == before
    assert history_prune(now=now) == 0


def test_prune__a_late_count_for_ten_minutes_that_are_coarse_already__is_added_to_them() -> None:
    old = NOON - timedelta(hours=25)
    add(old, tallied(2))
    history_prune(now=NOON)
    add(old + MINUTE, tallied(3))

    history_prune(now=NOON)

    assert list(Tally.objects.values_list("span_s", "count")) == [(LONG_S, 5)]


def test_prune__what_is_older_than_two_weeks__is_gone_and_what_is_younger_stays() -> None:
    kept = history_kept().longer
    for age in (kept + timedelta(hours=1), kept - timedelta(hours=1)):
        add(NOON - age, tallied())
        sample(NOON - age, acked=1)

    history_prune(now=NOON)

    floors = [floor(NOON - kept + timedelta(hours=1), LONG_S)]
    assert [list(rows.objects.values_list("at", flat=True)) for rows in (Tally, FleetSample, ReportedSpan)] == [
        floors
    ] * 3


def test_states__of_samples__are_those_of_subscriptions_and_one_for_who_left() -> None:
    assert STATES == ("nacked", "sent", "requested", "acked", "disconnected")
