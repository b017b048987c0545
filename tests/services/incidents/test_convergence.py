"""How a change spread: when each client that was connected had taken all of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controlplane.builder.selectors import change_progress
from controlplane.catalog.selectors import change_get
from controlplane.clients.models import HoldingMove
from controlplane.database.aliases import READER
from controlplane.history.convergence import Convergence
from controlplane.incidents.settling import change_convergence
from controlplane.snapshots.models import SnapshotRow
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"


def spread(change: str) -> Convergence | None:
    return change_convergence(change=change_get(public_id=change), progress=change_progress(public_id=change))


def known(change: str) -> Convergence:
    found = spread(change)
    assert found is not None
    return found


def test_change__not_published__has_not_spread() -> None:
    Fleet(1)

    assert spread(publish(cluster("pay"), built=False)) is None


def test_change__taken_one_after_the_other__says_when_half_and_all_had_it() -> None:
    fleet = Fleet(4)
    change = publish(cluster("pay"))
    published_at = SnapshotRow.objects.latest("epoch").at

    assert (known(change).took, known(change).of) == (0, 4)

    fleet.accept(held("pay", 1), who=slice(0, 2))
    HoldingMove.objects.filter(at__gte=published_at).update(at=published_at + timedelta(seconds=2))
    assert known(change).steps == ((0.0, 0), (2.0, 2))

    fleet.accept(held("pay", 1), who=slice(2, 4))
    fresh = HoldingMove.objects.filter(at__gte=published_at, at__lt=published_at + timedelta(seconds=2))
    fresh.update(at=published_at + timedelta(seconds=7.5))
    found = known(change)

    assert found.steps == ((0.0, 0), (2.0, 2), (7.5, 4))
    assert (found.p50_s, found.p99_s, found.last_s, found.waiting) == (2.0, 7.5, 7.5, 0)


def test_change__refused_by_some__never_reaches_all_and_counts_them_as_waiting() -> None:
    fleet = Fleet(3)
    change = publish(cluster("pay"))
    response = fleet.send(held("pay", 1))

    fleet.refuse(response, BAD, suspects=(held("pay", 1),), who=slice(0, 1))
    fleet.accept(held("pay", 1), who=slice(1, 3))

    assert (known(change).took, known(change).of, known(change).p99_s) == (2, 3, None)


def test_change__of_two_names__is_taken_with_the_second_one() -> None:
    fleet = Fleet(1)
    change = publish(cluster("pay"), cluster("shop"))

    fleet.accept(held("pay", 1))
    half = known(change)
    fleet.accept(held("pay", 1), held("shop", 1))

    assert (half.took, half.of) == (0, 1)
    assert known(change).took == 1


def test_change__client_that_came_later__says_nothing_of_how_it_spread() -> None:
    fleet = Fleet(1)
    change = publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    late = Fleet(2, first=10)
    late.accept(held("pay", 1))

    assert (known(change).took, known(change).of) == (1, 1)


def test_change__moves_of_its_time_are_gone__is_not_known_rather_than_instant(settings: Any) -> None:
    fleet = Fleet(1)
    change = publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    assert known(change).took == 1

    settings.PARLEY = replace(settings.PARLEY, limits=replace(settings.PARLEY.limits, holding_moves_per_environment=1))

    assert spread(change) is None
