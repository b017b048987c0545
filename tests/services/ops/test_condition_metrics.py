"""What scrapers are told of the installation: the real catalogue, builder, facts and database (SQLite, PostgreSQL)."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from controlplane.clients.models import Replica
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from controlplane.journal.models import DomainEvent
from controlplane.journal.services import event_append
from controlplane.notify.models import Notification
from controlplane.notify.services.expanding import notifications_expand
from controlplane.ops import condition_metrics
from controlplane.ops.condition_metrics import ConditionCollector
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.losses import lose
from tests.support.manifests import cluster

databases = pytest.mark.django_db(transaction=True, databases=["default", READER])


def scrape(collector: ConditionCollector | None = None) -> Mapping[str, float]:
    """Every sample, under its name and the values of its labels."""
    metrics = (collector or ConditionCollector()).collect()
    return {" ".join((each.name, *each.labels.values())): each.value for metric in metrics for each in metric.samples}


@databases
@pytest.mark.usefixtures("database")
def test_collect__a_refusing_fleet__counts_what_is_the_matter() -> None:
    fleet = Fleet(3)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), "no", suspects=(held("pay", 2),), who=slice(1))
    digest()

    told = scrape()

    assert (told["parley_database_up"], told["parley_environments"], told["parley_clients"]) == (1, 1, 3)
    assert (told["parley_incidents open"], told["parley_incidents acknowledged"]) == (1, 0)
    assert (told["parley_losses open"], told["parley_losses acknowledged"]) == (0, 0)
    assert (told["parley_subscriptions nacked"], told["parley_subscriptions sent"]) == (1, 2)
    assert (told["parley_builds_due"], told["parley_build_wait_seconds"], told["parley_builds_failing"]) == (0, 0, 0)
    assert told["parley_replicas reporting"] == 1


@databases
@pytest.mark.usefixtures("database")
def test_collect__clients_lost_something__counts_the_incident_twice_as_such_and_as_any_other() -> None:
    lose(publish(cluster("pay"), built=False))
    rebuild()
    digest()

    told = scrape()

    assert (told["parley_incidents open"], told["parley_losses open"], told["parley_losses acknowledged"]) == (1, 1, 0)


@databases
@pytest.mark.usefixtures("database")
def test_collect__people_were_told__counts_each_message_also_when_it_is_forgotten() -> None:
    for subject in ("a", "b", "b"):
        event_append(kind="fleet.dropped", environment="", subject=subject, payload={})
        notifications_expand()
    Notification.objects.all().delete()
    event_append(kind="hold.set", environment="", subject="a", payload={})
    notifications_expand()

    told = scrape()

    assert told["parley_notifications_total fleet.dropped"] == 2
    assert told["parley_notifications_total hold.set"] == 1
    assert told["parley_notifications_total build.failed"] == 0


@databases
@pytest.mark.usefixtures("database")
def test_collect__nobody_builds_or_tells__says_since_when() -> None:
    publish(cluster("pay"), built=False)
    DomainEvent.objects.create(kind="build.failed")

    told = scrape(ConditionCollector(now=lambda: timezone.now() + timedelta(minutes=1)))

    assert told["parley_builds_due"] == 1
    assert 60 <= told["parley_build_wait_seconds"] < 120
    assert 60 <= told["parley_event_wait_seconds"] < 120


@databases
@pytest.mark.usefixtures("database")
def test_collect__replica_that_went_quiet__is_silent() -> None:
    Fleet(1)
    Replica.objects.update(seen_at=timezone.now() - timedelta(minutes=5))

    told = scrape()

    assert (told["parley_replicas reporting"], told["parley_replicas silent"]) == (0, 1)


@databases
@pytest.mark.usefixtures("database")
def test_collect__replica_that_is_gone_for_good__is_silent_no_longer_than_the_limit() -> None:
    Fleet(1)

    def silent(for_s: int) -> float:
        Replica.objects.update(seen_at=timezone.now() - timedelta(seconds=for_s))
        return scrape()["parley_replicas silent"]

    assert [silent(3_500), silent(3_700)] == [1, 0]


@databases
@pytest.mark.usefixtures("database")
def test_collect__replica_that_was_stopped__is_never_silent() -> None:
    Fleet(1).buffer._flush(stopping=True)
    Replica.objects.update(seen_at=timezone.now() - timedelta(minutes=5))

    told = scrape()

    assert (told["parley_replicas reporting"], told["parley_replicas silent"]) == (0, 0)


def test_collect__database_does_not_answer__says_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer() -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(condition_metrics, "environment_list", no_answer)

    told = scrape()

    assert told["parley_database_up"] == 0
    assert told.keys() == {"parley_database_up", "parley_broker_up"}


@databases
def test_collect__scraped_by_many__reads_once_in_five_seconds() -> None:
    now = 100.0
    collector = ConditionCollector(clock=lambda: now)
    before = scrape(collector)

    DomainEvent.objects.create(kind="build.failed", at=timezone.now() - timedelta(minutes=1))

    assert scrape(collector) == before
    now += 5
    assert scrape(collector)["parley_event_wait_seconds"] >= 60
