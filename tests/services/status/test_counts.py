"""How many resources stand how: what is counted is what is derived of each resource, in every combination."""

import itertools
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.builder.models import HeldResource
from controlplane.builder.stages.fallback import REJECTED
from controlplane.catalog.models import Environment, Quarantine, Resource, StagedName
from controlplane.catalog.selectors import environment_list, resource_list
from controlplane.catalog.services import environment_create
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.values import IncidentState
from controlplane.status.environments import Headline
from controlplane.status.selectors import (
    environment_statuses,
    standings_of,
    status_counts,
    statuses_named,
    statuses_written,
    with_status,
)
from controlplane.status.values import Status
from tests.services.incidents.fleet import DANA, publish
from tests.support.manifests import cluster, route

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

QUARANTINES = ("none", "open", "released")
HOLDS = (None, (REJECTED, True), (REJECTED, False), ("a reference is missing", True), ("a reference is missing", False))
STAGED = (None, "candidate")
REFUSALS = (None, ("open", True), ("acknowledged", True), ("resolved", True), ("ignored", True), ("open", False))


def quarantine(row: Resource, state: str) -> None:
    if state != "none" and row.head is not None:
        released = timezone.now() if state == "released" else None
        Quarantine.objects.create(
            revision=row.head, cause="manual", reason="why", opened_by="dana", released_at=released
        )


def hold(row: Resource, how: tuple[str, bool] | None) -> None:
    if how is not None:
        HeldResource.objects.create(
            environment=row.environment, type=row.type, name=row.name, reason=how[0], served=how[1], generation=1
        )


def stage(row: Resource, state: str | None) -> None:
    if state is not None:
        StagedName.objects.create(resource=row, stable=None, state=state, since=1)


def refuse(row: Resource, number: int, how: tuple[str, bool] | None) -> None:
    """`how`: the state of the incident, and whether it is about this content."""
    if how is None or row.head is None:
        return
    now = timezone.now()
    Incident.objects.create(
        environment=row.environment,
        algorithm="v1",
        fingerprint=f"{number:032x}",
        type=row.type,
        name=row.name,
        family="envoy",
        confidence="only_change",
        state=IncidentState(how[0]).value,
        revision=1,
        version=row.head.version if how[1] else "another",
        since=now,
        nacked=1,
        sent=2,
        first_at=now,
        last_at=now,
        opened_epoch=1,
        settles_at=now + timedelta(seconds=1),
    )


@pytest.fixture
def everything(database: str) -> None:
    """A resource for each combination of what its status hangs on, those with an even number saved and not built."""
    combinations = list(itertools.product((True, False), QUARANTINES, HOLDS, REFUSALS, STAGED))
    built = [number for number, (unbuilt, *_) in enumerate(combinations) if not unbuilt]
    publish(*(cluster(f"c{number:03}") for number in built))
    publish(*(cluster(f"c{number:03}") for number in range(len(combinations)) if number not in built), built=False)
    rows = {row.name: row for row in Resource.objects.select_related("head", "environment")}
    for number, (_, quarantined, held, refused, staged) in enumerate(combinations):
        row = rows[f"c{number:03}"]
        quarantine(row, quarantined)
        hold(row, held)
        refuse(row, number, refused)
        stage(row, staged)


@pytest.mark.usefixtures("everything")
def test_counts__of_every_combination__are_those_of_what_is_derived_one_by_one() -> None:
    rows = list(resource_list(environment_key="default").select_related("head__change"))
    keys = [(row.type, row.name) for row in rows]
    derived = {key: each.status.status for key, each in standings_of(environment_key="default", keys=keys).items()}
    counted = status_counts(environment_keys=["default"])["default"]
    named = statuses_named(names={("default", key) for key in keys})
    written = statuses_written(
        environment_key="default", generations={row.head.change.generation for row in rows if row.head is not None}
    )

    assert len(derived) == 2 * len(QUARANTINES) * len(HOLDS) * len(REFUSALS) * len(STAGED)
    assert set(derived.values()) == set(Status)
    assert {status: counted.get(status, 0) for status in Status} == {
        status: list(derived.values()).count(status) for status in Status
    }
    assert {key: status for (_, key), status in named.items()} == derived
    assert frozenset().union(*written.values()) == set(Status)
    for status in Status:
        filtered = with_status(resource_list(environment_key="default"), environment_key="default", status=status)
        assert {(row.type, row.name) for row in filtered} == {key for key, each in derived.items() if each is status}


@pytest.mark.usefixtures("everything")
def test_counts__of_another_environment__are_its_own() -> None:
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)
    assert sum(status_counts(environment_keys=["prod"])["prod"].values()) == 0

    both = status_counts(environment_keys=["default", "prod"])

    assert both["default"] == status_counts(environment_keys=["default"])["default"]
    assert sum(both["prod"].values()) == 0


def test_environment_statuses__more_resources_and_environments__seven_queries(database: str) -> None:
    publish(cluster("pay"))
    with CaptureQueriesContext(connection) as few:
        one = environment_statuses(environments=environment_list())["default"]
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)
    publish(*(cluster(f"c{number}") for number in range(60)), *(route(f"r{number}", "no") for number in range(60)))

    with CaptureQueriesContext(connection) as many:
        found = environment_statuses(environments=environment_list())

    assert one.status is Headline.PUBLISHED
    assert found["default"].reason == "60 of 121 resources are stalled."
    assert len(many) == len(few) <= 7  # one of them is the list of environments


def test_environment_status__deletion_and_policy_that_no_build_covered__waits(database: str) -> None:
    publish(cluster("pay"), cluster("stays"))
    publish(delete=("pay",), built=False)

    found = environment_statuses(environments=environment_list())["default"]

    assert (found.status, found.counts[Status.PUBLISHED]) == (Headline.WAITING, 1)
    assert found.reason == "What was written last waits for the next build."
    assert Environment.objects.get(key="default").generation > Environment.objects.get(key="default").built_generation
