"""When a build begins: at once, after a pause as long as the last one took, or after a quiet time that was set."""

from dataclasses import replace

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder import services
from controlplane.builder.models import Build, BuildOutcome
from controlplane.catalog.models import Environment
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.config.loading import Debounce
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(database: str, monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(services, "time", found)
    return found


def written() -> Environment:
    change_apply(environment_key="default", edits=[Put(parsed(cluster("pay")))], actor=somebody("dana", ADMIN_SCOPES))
    return Environment.objects.get(key="default")


def test_build__nothing_was_built_lately__begins_at_once(clock: Clock) -> None:
    environment = written()

    services.build_in_turn(environment_id=environment.pk)

    assert clock.now == 0.0
    environment.refresh_from_db()
    assert environment.built_generation == environment.generation


def test_build__right_after_a_costly_one__pauses_as_long_as_that_took(clock: Clock) -> None:
    environment = written()
    Build.objects.create(
        environment=environment,
        from_generation=0,
        to_generation=0,
        outcome=BuildOutcome.UNCHANGED,
        at=timezone.now(),
        stage_ms={"read": 700.0, "publish": 800.0},
    )

    services.build_in_turn(environment_id=environment.pk)

    assert 1.0 < clock.now <= 1.5  # the test itself takes time, too
    environment.refresh_from_db()
    assert environment.built_generation == environment.generation


def test_build__quiet_time_that_somebody_set__is_waited_for(clock: Clock, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, debounce=Debounce(quiet_ms=400))
    environment = written()

    services.build_in_turn(environment_id=environment.pk)

    assert clock.now == pytest.approx(0.4)
