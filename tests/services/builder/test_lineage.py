"""The database loses what replicas serve: a backup is put back, power fails, a standby takes over (decisions D5b)."""

from pathlib import Path

import pytest
from django.db import transaction

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Change, Environment, Resource
from controlplane.catalog.services import change_apply, lineages_renew
from controlplane.catalog.values import Delete, Put
from controlplane.database.aliases import READER
from controlplane.database.append_only import maintenance
from controlplane.journal.models import AuditEvent
from controlplane.snapshots.models import SnapshotRow
from tests.support.ads_replica import Replica
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.resource_types import CLUSTER

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

DANA = somebody("dana", ADMIN_SCOPES)


def put(name: str) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(cluster(name)))], actor=DANA)
    builds_sweep()


def database_goes_back() -> None:
    """The newest change, and the snapshot it made, were never written."""
    with transaction.atomic(), maintenance():
        SnapshotRow.objects.latest("epoch").delete()
        Resource.objects.latest("pk").delete()
        Change.objects.latest("generation").delete()
    environment = Environment.objects.get()
    Environment.objects.update(
        epoch=environment.epoch - 1,
        generation=environment.generation - 1,
        built_generation=environment.built_generation - 1,
    )


def names(replica: Replica) -> set[str]:
    return set(replica.snapshot().type_state(CLUSTER).served)


def test_look__database_went_back__replica_follows_it_again(tmp_path: Path) -> None:
    put("a")
    put("lost")
    replica = Replica(tmp_path).look()
    before = replica.snapshot()

    database_goes_back()
    replica.look()
    served_meanwhile = names(replica)
    builds_sweep()

    assert served_meanwhile == {"a", "lost"}
    assert names(replica.look()) == {"a"}
    assert replica.snapshot().lineage != before.lineage
    put("new")
    assert names(replica.look()) == {"a", "new"}
    (told,) = AuditEvent.objects.filter(verb="environment.lineage_renewed")
    assert told.detail["reason"] == f"the database went back behind epoch {before.epoch}, which is being served"


def test_look__database_went_back_and_on_to_the_same_epoch__replica_takes_what_it_says_now(tmp_path: Path) -> None:
    put("a")
    put("lost")
    replica = Replica(tmp_path).look()
    epoch = replica.snapshot().epoch
    database_goes_back()

    put("other")

    assert SnapshotRow.objects.latest("epoch").epoch == epoch
    replica.look()
    builds_sweep()
    assert names(replica.look()) == {"a", "other"}


def test_look__replica_restored_from_disk_is_ahead_of_the_database__follows_it(tmp_path: Path) -> None:
    put("a")
    put("lost")
    Replica(tmp_path).look()
    database_goes_back()

    restarted = Replica(tmp_path)
    restarted.loader._restore()
    ahead = names(restarted)
    restarted.look()
    builds_sweep()

    assert ahead == {"a", "lost"}
    assert names(restarted.look()) == {"a"}


def test_look__several_replicas_notice__one_new_lineage(tmp_path: Path) -> None:
    put("a")
    put("lost")
    replicas = [Replica(tmp_path / str(number)).look() for number in range(3)]
    database_goes_back()

    for replica in replicas:
        replica.look()

    assert AuditEvent.objects.filter(verb="environment.lineage_renewed").count() == 1


def test_look__nothing_was_lost__lineage_stays(tmp_path: Path) -> None:
    put("a")
    replica = Replica(tmp_path).look()
    put("b")
    lineage = Environment.objects.get().lineage

    replica.look().look()
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "b")], actor=DANA)
    builds_sweep()
    replica.look().look()

    assert Environment.objects.get().lineage == lineage


def test_look__newest_snapshot_was_forged__is_no_reason_to_begin_anew(tmp_path: Path) -> None:
    put("a")
    put("b")
    replica = Replica(tmp_path).look()
    lineage = Environment.objects.get().lineage

    newest, first = SnapshotRow.objects.latest("epoch"), SnapshotRow.objects.earliest("epoch")
    SnapshotRow.objects.filter(pk=newest.pk).update(root_id=first.root_id)
    replica.look()

    assert Environment.objects.get().lineage == lineage
    assert names(replica) == {"a", "b"}


def test_lineages_renew__after_a_restore__every_environment_is_built_and_served_again(tmp_path: Path) -> None:
    put("a")
    replica = Replica(tmp_path).look()
    before = replica.snapshot()

    assert lineages_renew(actor=DANA, reason="restored") == ("default",)
    builds_sweep()

    after = replica.look().snapshot()
    assert (after.lineage != before.lineage, names(replica)) == (True, {"a"})
