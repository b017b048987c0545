"""Old snapshots go, with what only they needed; what is served and what is young stays (C21)."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build, BuildOutcome
from controlplane.builder.retention import builds_prune
from controlplane.builder.selectors import ChangeState, change_progress
from controlplane.builder.services import build
from controlplane.catalog.models import Blob, Change, Environment, Revision
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.snapshots import retention
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.retention import NeededChunks, StillRun
from controlplane.snapshots.selectors import snapshot_of_name
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.chunks import decode_root
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])


@pytest.fixture(autouse=True)
def five_snapshots(database: str, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, limits=replace(settings.PARLEY.limits, epochs_kept=2))
    for number in range(5):
        edits = [Put(parsed(cluster("a", connect_timeout=f"{number + 1}s"))), Put(parsed(cluster(f"only-{number}")))]
        change_apply(environment_key="default", edits=edits, actor=somebody("dana", ADMIN_SCOPES))
        build(environment_id=Environment.objects.get(key="default").pk, memory=Memory())


def nobody(_before: datetime) -> dict[int, set[datetime]]:
    return {}


def snapshots_prune(*, still_run: StillRun, memory: NeededChunks | None = None) -> int:
    return retention.snapshots_prune(still_run=still_run, needed=memory or NeededChunks())


def needed() -> set[str]:
    addresses: set[str] = set()
    for row in SnapshotRow.objects.select_related("root"):
        addresses |= {row.root_id, row.access_id, *(each.hex() for each in decode_root(bytes(row.root.data)))}
    return addresses


def stored() -> set[str]:
    return set(Blob.objects.filter(kind__in=("chunk", "root", "access")).values_list("hash", flat=True))


def test_prune__young_snapshots__all_stay() -> None:
    assert snapshots_prune(still_run=nobody) == 0
    assert SnapshotRow.objects.count() == 5


def test_prune__old_ones__go_with_their_chunks_and_the_newest_are_whole() -> None:
    SnapshotRow.objects.update(at=timezone.now() - timedelta(days=8))
    revisions = Revision.objects.count()

    assert snapshots_prune(still_run=nobody) == 3
    assert snapshots_prune(still_run=nobody) == 0

    assert list(SnapshotRow.objects.order_by("epoch").values_list("epoch", flat=True)) == [4, 5]
    assert stored() == needed()
    assert Revision.objects.count() == revisions
    assert Blob.objects.filter(kind="resource").count() == 10
    served = snapshot_of_name(environment_key="default", kind=CLUSTER, name="only-0")
    assert served is not None
    assert "only-0" in served.type_state(CLUSTER).served


def test_prune__after_it__the_same_content_is_published_again_whole() -> None:
    SnapshotRow.objects.update(at=timezone.now() - timedelta(days=8))
    snapshots_prune(still_run=nobody)

    change_apply(
        environment_key="default",
        edits=[Put(parsed(cluster("a", connect_timeout="1s")))],
        actor=somebody("dana", ADMIN_SCOPES),
    )
    build(environment_id=Environment.objects.get(key="default").pk, memory=Memory())

    assert needed() <= stored()


def test_prune__a_client_still_runs_an_old_one__it_stays() -> None:
    """A client that was sent what it runs while epoch 2 was the newest runs epoch 2."""
    began = timezone.now() - timedelta(days=9)
    for row in SnapshotRow.objects.all():
        SnapshotRow.objects.filter(pk=row.pk).update(at=began + timedelta(hours=row.epoch))
    environment = Environment.objects.get(key="default").pk
    asked: list[datetime] = []

    def still_run(before: datetime) -> dict[int, set[datetime]]:
        asked.append(before)
        return {environment: {began + timedelta(hours=2, minutes=30)}}

    assert snapshots_prune(still_run=still_run) == 2

    assert list(SnapshotRow.objects.order_by("epoch").values_list("epoch", flat=True)) == [2, 4, 5]
    assert stored() == needed()
    assert asked[0] < timezone.now() - timedelta(minutes=58)


def test_prune__many_in_a_row__the_last_of_every_two_seconds_stays_after_an_hour() -> None:
    began = (timezone.now() - timedelta(hours=2)).replace(microsecond=0)
    began -= timedelta(seconds=began.second % 2)
    for row, after_s in zip(SnapshotRow.objects.order_by("pk"), (0.1, 0.7, 1.9, 2.0, 3.0), strict=True):
        SnapshotRow.objects.filter(pk=row.pk).update(at=began + timedelta(seconds=after_s))

    assert snapshots_prune(still_run=nobody) == 2
    assert snapshots_prune(still_run=nobody) == 0

    # The two newest of all stay in any case.
    assert list(SnapshotRow.objects.order_by("epoch").values_list("epoch", flat=True)) == [3, 4, 5]
    assert stored() == needed()


def test_prune__of_many_in_a_row_one_is_run_still__it_stays() -> None:
    began = (timezone.now() - timedelta(hours=2)).replace(second=10, microsecond=0)
    for row, after_s in zip(SnapshotRow.objects.order_by("pk"), (0.1, 0.7, 1.5, 200.0, 300.0), strict=True):
        SnapshotRow.objects.filter(pk=row.pk).update(at=began + timedelta(seconds=after_s))
    environment = Environment.objects.get(key="default").pk

    # Within a minute of it: whose clock said so may differ.
    assert snapshots_prune(still_run=lambda _: {environment: {began - timedelta(seconds=59.5)}}) == 1

    assert list(SnapshotRow.objects.order_by("epoch").values_list("epoch", flat=True)) == [1, 3, 4, 5]


def test_prune__what_stood_for_weeks_until_a_moment_ago__stays() -> None:
    """A burst of epochs after a quiet week must not take the state before it, to which people would roll back."""
    now = timezone.now()
    for row, age in zip(SnapshotRow.objects.order_by("pk"), (90_000, 20_000, 5, 4, 3), strict=True):
        SnapshotRow.objects.filter(pk=row.pk).update(at=now - timedelta(minutes=age))

    assert snapshots_prune(still_run=nobody) == 1

    assert list(SnapshotRow.objects.order_by("epoch").values_list("epoch", flat=True)) == [2, 3, 4, 5]


@pytest.mark.parametrize("remembers", [True, False])
def test_prune__in_turns_with_another_process__both_know_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, remembers: bool
) -> None:
    """One at a time, by a process that remembers and one that does not; the content of epoch 1 comes back meanwhile."""
    monkeypatch.setattr(retention, "BATCH", 1)
    SnapshotRow.objects.update(at=timezone.now() - timedelta(days=8))
    memory = NeededChunks()

    for turn in range(3):
        assert snapshots_prune(still_run=nobody, memory=memory if remembers or turn % 2 == 0 else None) == 1
        assert stored() == needed()

    assert snapshots_prune(still_run=nobody, memory=memory) == 0


def test_builds_prune__old_ones__go_with_their_snapshots_and_changes_stay_published() -> None:
    change = Change.objects.get(generation=2)
    assert change_progress(public_id=str(change.public_id)).epoch is not None
    SnapshotRow.objects.update(at=timezone.now() - timedelta(days=8))
    Build.objects.update(at=timezone.now() - timedelta(days=8))
    snapshots_prune(still_run=nobody)

    assert builds_prune() == 3
    assert builds_prune() == 0

    assert list(Build.objects.order_by("epoch").values_list("epoch", flat=True)) == [4, 5]
    progress = change_progress(public_id=str(change.public_id))
    assert (progress.state, progress.epoch) == (ChangeState.PUBLISHED, None)


def test_builds_prune__one_that_failed_long_ago__goes_and_young_ones_stay() -> None:
    young = set(Build.objects.values_list("pk", flat=True))
    Build.objects.create(
        environment=Environment.objects.get(key="default"),
        from_generation=6,
        to_generation=7,
        outcome=BuildOutcome.FAILED,
        at=timezone.now() - timedelta(days=8),
    )

    assert builds_prune() == 1

    assert set(Build.objects.values_list("pk", flat=True)) == young
