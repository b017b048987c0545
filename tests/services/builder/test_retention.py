"""Old snapshots go, with what only they needed; what is served and what is young stays (C21)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import ADMIN_SCOPES, Principal
from controlplane.builder.memory import Memory
from controlplane.builder.services import build
from controlplane.catalog.models import Blob, Environment, Revision
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.retention import snapshots_prune
from controlplane.snapshots.selectors import snapshot_of_name
from tests.support.manifests import cluster, parsed
from xdscore.chunks import decode_root
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])


@pytest.fixture(autouse=True)
def five_snapshots(database: str, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, limits=replace(settings.PARLEY.limits, epochs_kept=2))
    for number in range(5):
        edits = [Put(parsed(cluster("a", connect_timeout=f"{number + 1}s"))), Put(parsed(cluster(f"only-{number}")))]
        change_apply(environment_key="default", edits=edits, actor=Principal("dana", ADMIN_SCOPES))
        build(environment_id=Environment.objects.get(key="default").pk, memory=Memory())


def needed() -> set[str]:
    addresses: set[str] = set()
    for row in SnapshotRow.objects.select_related("root"):
        addresses |= {row.root_id, row.access_id, *(each.hex() for each in decode_root(bytes(row.root.data)))}
    return addresses


def stored() -> set[str]:
    return set(Blob.objects.filter(kind__in=("chunk", "root", "access")).values_list("hash", flat=True))


def test_prune__young_snapshots__all_stay() -> None:
    assert snapshots_prune() == 0
    assert SnapshotRow.objects.count() == 5


def test_prune__old_ones__go_with_their_chunks_and_the_newest_are_whole() -> None:
    SnapshotRow.objects.update(at=timezone.now() - timedelta(days=8))
    revisions = Revision.objects.count()

    assert snapshots_prune() == 3
    assert snapshots_prune() == 0

    assert list(SnapshotRow.objects.order_by("epoch").values_list("epoch", flat=True)) == [4, 5]
    assert stored() == needed()
    assert Revision.objects.count() == revisions
    assert Blob.objects.filter(kind="resource").count() == 10
    served = snapshot_of_name(environment_key="default", kind=CLUSTER, name="only-0")
    assert served is not None
    assert "only-0" in served.type_state(CLUSTER).served


def test_prune__after_it__the_same_content_is_published_again_whole() -> None:
    SnapshotRow.objects.update(at=timezone.now() - timedelta(days=8))
    snapshots_prune()

    change_apply(
        environment_key="default",
        edits=[Put(parsed(cluster("a", connect_timeout="1s")))],
        actor=Principal("dana", ADMIN_SCOPES),
    )
    build(environment_id=Environment.objects.get(key="default").pk, memory=Memory())

    assert needed() <= stored()
