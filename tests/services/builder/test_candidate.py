"""The candidate side of a snapshot: how it is stored, signed, read, kept and forgotten (rollouts.md R2)."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from django.utils import timezone
from pytest_django.fixtures import Settings

from adsserver.store.disk import DiskCache
from adsserver.store.disk_format import decode_directory
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Blob, Environment
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from controlplane.snapshots.history import snapshot_at, snapshot_of_name_at
from controlplane.snapshots.lineages import lineage_check
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.retention import NeededChunks, snapshots_prune
from controlplane.snapshots.rotation import snapshots_foreign, snapshots_resign
from controlplane.snapshots.selectors import (
    candidate_diff,
    entries_published,
    rollout_table,
    snapshot_head,
    snapshot_heads,
    snapshot_of_name,
    snapshot_of_names,
)
from controlplane.snapshots.services import PublishOutcome
from tests.support.ads_replica import Replica
from tests.support.candidates import EVERYBODY, NOBODY, publish_with
from tests.support.keys import FOREIGN_KEY, NEW_KEY, UseKeys
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.access import Audience
from xdscore.decision import Missing, Serve, decide
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER, SECRET
from xdscore.rollout_part import CandidatePart
from xdscore.sides import RolloutTable, Side
from xdscore.snapshot import Content, Entry, RemovedName, Served, Snapshot

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

DANA = somebody("dana", ADMIN_SCOPES)
STABLE, CANDIDATE = Audience("default"), Audience("default", side=Side.CANDIDATE)
A = ("cluster", "a")


def put(*trees: dict[str, object]) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)
    builds_sweep()


def entry(key: tuple[str, str]) -> Entry:
    return entries_published(environment_key="default")[key]


@pytest.fixture
def other() -> Served:
    """What the candidate side has of the cluster: content that the database has, and that is not what is published."""
    put(cluster("a", connect_timeout="2s"), cluster("b"))
    newer = entry(A)
    assert isinstance(newer, Served)
    put(cluster("a", connect_timeout="1s"))
    return newer


def versions(snapshot: Snapshot | None) -> tuple[str, str]:
    """The versions of the cluster on the stable side and on the candidate side."""
    assert snapshot is not None
    found = [decide(audience, CLUSTER, "a", snapshot) for audience in (STABLE, CANDIDATE)]
    return found[0].content.version, found[1].content.version  # type: ignore[union-attr]


def test_publish__a_candidate_or_another_table_alone__is_a_difference_and_the_same_again_is_none(other: Served) -> None:
    outcomes = [
        publish_with(candidate).outcome
        for candidate in (
            None,
            CandidatePart(NOBODY, {A: other}),
            CandidatePart(NOBODY, {A: other}),
            CandidatePart(EVERYBODY, {A: other}),
            CandidatePart(EVERYBODY, {}),
            None,
        )
    ]

    new, same = PublishOutcome.PUBLISHED, PublishOutcome.UNCHANGED
    assert outcomes == [same, new, same, new, new, new]


def test_publish__a_rollout_opens_and_ends__root_and_signature_of_the_stable_side_are_what_they_were(
    other: Served,
) -> None:
    before = SnapshotRow.objects.latest("epoch")
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    during = SnapshotRow.objects.latest("epoch")
    publish_with(None)
    after = SnapshotRow.objects.latest("epoch")

    assert before.root_id == during.root_id == after.root_id
    assert (before.rollout_id, before.rollout_mac, after.rollout_id, after.rollout_mac) == (None, "", None, "")
    # A process of the version before verifies `mac` over root and access table alone.
    stable = snapshot_head(
        environment="default",
        lineage=str(during.lineage),
        epoch=during.epoch,
        root=during.root_id,
        access=during.access_id,
        mac=during.mac,
    )
    assert stable.genuine


def test_selectors__rollout_open__answers_for_now_have_both_sides_and_history_the_stable_one(other: Served) -> None:
    epoch = publish_with(CandidatePart(EVERYBODY, {A: other, ("cluster", "b"): RemovedName()})).epoch
    stable = entry(A)
    assert isinstance(stable, Served)
    both = stable.content.version, other.content.version

    assert versions(snapshot_of_name(environment_key="default", kind=CLUSTER, name="a")) == both
    names = snapshot_of_names(environment_key="default", keys=[A, ("cluster", "b"), ("cluster", "none")])
    assert versions(names) == both
    assert names is not None
    assert decide(CANDIDATE, CLUSTER, "b", names) == Missing(removed=True)
    assert isinstance(decide(STABLE, CLUSTER, "b", names), Serve)
    assert names.audience(ClientFacts(node_id="n")).side is Side.CANDIDATE
    assert rollout_table(environment_key="default") == EVERYBODY
    assert candidate_diff(environment_key="default") == {A: other, ("cluster", "b"): RemovedName()}

    at = snapshot_of_name_at(environment_key="default", epoch=epoch, kind=CLUSTER, name="a")
    assert (at.rollout, at.candidate) == (None, None)  # R13
    assert snapshot_at(environment_key="default", epoch=epoch).served[A] == stable.content


def test_selectors__no_rollout__there_is_no_candidate_side(other: Served) -> None:
    snapshot = snapshot_of_name(environment_key="default", kind=CLUSTER, name="a")

    assert snapshot is not None
    assert (snapshot.rollout, snapshot.candidate) == (None, None)
    assert rollout_table(environment_key="default") is None
    assert candidate_diff(environment_key="default") == {}
    assert rollout_table(environment_key="nowhere") is None


def test_replica__rollout_open__serves_both_sides_and_has_their_contents(other: Served, tmp_path: Path) -> None:
    replica = Replica(tmp_path).look()
    stable = replica.snapshot()
    publish_with(CandidatePart(EVERYBODY, {A: other}))

    snapshot = replica.look().snapshot()

    decision = decide(CANDIDATE, CLUSTER, "a", snapshot)
    assert isinstance(decision, Serve)
    assert replica.contents.any_bytes(decision.content) == parsed(cluster("a", connect_timeout="2s")).any_bytes
    assert snapshot.types == stable.types
    assert replica.loader.status().detail == ""


def test_replica__unneeded_contents_are_dropped__those_of_the_candidate_side_stay(
    other: Served, tmp_path: Path
) -> None:
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    replica = Replica(tmp_path).look()
    # What was fetched, and then what was in use before, is kept once more.
    for _ in range(3):
        replica.loader._reader._next_sweep = 0.0
        replica.look()

    assert replica.contents.any_bytes(other.content) == parsed(cluster("a", connect_timeout="2s")).any_bytes
    publish_with(None)
    for _ in range(3):
        replica.loader._reader._next_sweep = 0.0
        replica.look()
    assert replica.contents.missing([other.content.blob])


def test_replica__next_step__types_of_both_sides_are_the_very_same(other: Served, tmp_path: Path) -> None:
    publish_with(CandidatePart(NOBODY, {A: other}))
    replica = Replica(tmp_path).look()
    before = replica.snapshot()
    publish_with(CandidatePart(EVERYBODY, {A: other}))

    after = replica.look().snapshot()

    assert before.candidate is not None
    assert after.candidate is not None
    assert after.types["cluster"] is before.types["cluster"]
    assert after.candidate.types["cluster"] is before.candidate.types["cluster"]
    assert after.candidate.types["cluster"] is not after.types["cluster"]
    assert after.rollout == EVERYBODY


def test_replica__something_else_changes__table_is_the_very_same_object(other: Served, tmp_path: Path) -> None:
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    replica = Replica(tmp_path).look()
    before = replica.snapshot()
    put(cluster("c"))
    publish_with(CandidatePart(EVERYBODY, {A: other, ("cluster", "b"): RemovedName()}))

    after = replica.look().snapshot()

    assert after.rollout is before.rollout
    assert versions(after)[1] == other.content.version
    assert "c" in after.seen_by(CANDIDATE).type_state(CLUSTER).served


FORGED = "its signature does not hold: it was altered, or signed under a key that is not configured"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("mac", FORGED),
        ("another row's", FORGED),
        ("part", "1 parts are missing or altered"),
        ("format", "1 parts are missing or altered"),
        ("content", "1 contents are missing or altered"),
        ("rule", "an entry names an access rule that the access table does not have"),
    ],
)
def test_replica__candidate_side_that_is_forged_or_damaged__stable_side_is_served_to_everybody_and_it_is_told(
    other: Served, tmp_path: Path, how: str, why: str
) -> None:
    replica = Replica(tmp_path).look()
    diff: dict[tuple[str, str], Entry | None] = {A: other}
    if how == "content":
        diff = {A: Served(Content(b"x" * 16, "x", 1))}
    if how == "rule":
        diff = {A: replace(other, rules=(77,))}
    publish_with(CandidatePart(NOBODY, diff))
    publish_with(CandidatePart(EVERYBODY, diff))
    earlier, row = SnapshotRow.objects.order_by("-epoch")[1], SnapshotRow.objects.latest("epoch")
    match how:
        case "mac":
            SnapshotRow.objects.filter(pk=row.pk).update(rollout_mac="0" * 96)
        case "another row's":
            SnapshotRow.objects.filter(pk=row.pk).update(rollout_id=earlier.rollout_id, rollout_mac=earlier.rollout_mac)
        case "part":
            Blob.objects.filter(pk=row.rollout_id).update(data=b"rubbish")
        case "format":
            data = Blob.objects.get(pk=row.rollout_id).data
            Blob.objects.filter(pk=row.rollout_id).update(data=b"\xff" + bytes(data)[1:])

    with structlog.testing.capture_logs() as logged:
        snapshot = replica.look().snapshot()
        replica.look()

    assert (snapshot.rollout, snapshot.candidate, snapshot.epoch) == (None, None, row.epoch)
    assert why in replica.loader.status().detail
    assert f"the candidate side of snapshot {row.epoch} of 'default' is refused" in replica.loader.status().detail
    assert [each["event"] for each in logged].count("candidate.refused") == 1


def test_selectors__forged_signature__is_as_without_a_candidate_side(other: Served) -> None:
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    SnapshotRow.objects.filter(pk=SnapshotRow.objects.latest("epoch").pk).update(rollout_mac="0" * 96)

    snapshot = snapshot_of_name(environment_key="default", kind=CLUSTER, name="a")

    assert snapshot is not None
    assert snapshot.candidate is None
    assert rollout_table(environment_key="default") is None


def test_replica__refused_candidate_is_mended__is_served_without_a_new_snapshot(other: Served, tmp_path: Path) -> None:
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    row = SnapshotRow.objects.latest("epoch")
    data = bytes(Blob.objects.get(pk=row.rollout_id).data)
    Blob.objects.filter(pk=row.rollout_id).update(data=b"rubbish")
    replica = Replica(tmp_path).look()
    assert replica.snapshot().candidate is None
    Blob.objects.filter(pk=row.rollout_id).update(data=data)
    replica.loader._reread_at = 0.0

    assert versions(replica.look().snapshot())[1] == other.content.version
    assert replica.loader.status().detail == ""


def test_replica__secret_of_the_candidate_cannot_be_opened__stable_content_is_served_in_its_place(
    tmp_path: Path, use_keys: UseKeys
) -> None:
    key = ("secret", "key")
    put(tls_secret("key", "one"), cluster("a", connect_timeout="2s"))
    newer, newer_cluster = entry(key), entry(A)
    put(tls_secret("key", "two"), cluster("a"))
    assert isinstance(newer, Served)
    assert isinstance(newer_cluster, Served)
    publish_with(CandidatePart(EVERYBODY, {key: newer, A: newer_cluster}))
    blob = Blob.objects.get(pk=newer.content.blob.hex())
    sealed = bytes(blob.data)
    Blob.objects.filter(pk=blob.pk).update(data=sealed[:-1] + bytes([sealed[-1] ^ 1]))

    snapshot = Replica(tmp_path).look().snapshot()

    stable, candidate = (snapshot.seen_by(each).type_state(SECRET).served["key"] for each in (STABLE, CANDIDATE))
    assert candidate.content == stable.content != newer.content
    assert versions(snapshot)[1] == newer_cluster.content.version


def test_disk__rollout_open__a_start_without_database_serves_both_sides(other: Served, tmp_path: Path) -> None:
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    Replica(tmp_path).look()
    SnapshotRow.objects.all().delete()
    disk = Replica(tmp_path)
    disk.loader._restore()

    assert versions(disk.snapshot())[1] == other.content.version
    decision = decide(CANDIDATE, CLUSTER, "a", disk.snapshot())
    assert isinstance(decision, Serve)
    assert disk.contents.any_bytes(decision.content) == parsed(cluster("a", connect_timeout="2s")).any_bytes


def test_disk__what_is_written_of_a_snapshot__has_the_candidate_side_apart_and_only_when_there_is_one(
    other: Served, tmp_path: Path
) -> None:
    Replica(tmp_path).look()
    without = DiskCache(tmp_path, key_ring()).directory_bytes()
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    Replica(tmp_path).look()
    data = DiskCache(tmp_path, key_ring()).directory_bytes()

    row = SnapshotRow.objects.latest("epoch")
    assert b"rollout" not in without
    # As a process of the version before has it, which knows five fields of a snapshot and no others.
    assert b'"mac":"%s"}}' % row.mac.encode() in data
    saved = decode_directory(data, key_ring()).snapshots["default"]
    assert (saved.rollout, saved.rollout_mac) == (row.rollout_id, row.rollout_mac)


def test_disk__kept_by_a_version_that_knows_no_rollouts__database_is_followed_and_nothing_counts_as_lost(
    other: Served, tmp_path: Path
) -> None:
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    replica = Replica(tmp_path).look()
    loaded = replica.loader._loaded["default"]
    head = replace(loaded.head, rollout="", rollout_mac="", rollout_genuine=False)
    replica.loader._loaded["default"] = replace(
        loaded, head=head, candidate=None, snapshot=replace(loaded.snapshot, rollout=None, candidate=None)
    )
    assert not lineage_check(held=head)

    assert versions(replica.look().snapshot())[1] == other.content.version
    assert Environment.objects.get(key="default").lineage == SnapshotRow.objects.latest("epoch").lineage


def test_lineage__database_has_another_candidate_side_of_the_same_epoch__has_lost_what_is_served(
    other: Served, tmp_path: Path
) -> None:
    publish_with(CandidatePart(NOBODY, {}))
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    replica = Replica(tmp_path).look()
    (held,) = snapshot_heads()
    assert not lineage_check(held=held)
    SnapshotRow.objects.filter(pk=SnapshotRow.objects.latest("epoch").pk).update(
        rollout_id=SnapshotRow.objects.order_by("-epoch")[1].rollout_id
    )

    assert replica.snapshot().candidate is not None
    assert lineage_check(held=held)


def test_prune__old_candidate_sides__go_with_their_snapshots_and_those_in_use_stay(
    other: Served, settings: Settings
) -> None:
    settings.PARLEY = replace(settings.PARLEY, limits=replace(settings.PARLEY.limits, epochs_kept=2))
    tables = [RolloutTable(f"rollout-{number}", 0, frozenset(), (), 10, "seed") for number in range(4)]
    for table in tables:
        publish_with(CandidatePart(table, {A: other}))
    SnapshotRow.objects.update(at=timezone.now() - timedelta(days=8))

    snapshots_prune(still_run=lambda _: {}, needed=NeededChunks())

    kept = set(SnapshotRow.objects.values_list("rollout_id", flat=True))
    assert len(kept) == 2
    assert set(Blob.objects.filter(kind="rollout").values_list("hash", flat=True)) == kept


def test_rotate__new_key_in_front__both_signatures_move_and_a_forged_one_stays_forged(
    other: Served, use_keys: UseKeys, old_key: bytes
) -> None:
    publish_with(CandidatePart(NOBODY, {A: other}))
    publish_with(CandidatePart(EVERYBODY, {A: other}))
    forged = SnapshotRow.objects.filter(rollout__isnull=False).earliest("epoch")
    SnapshotRow.objects.filter(pk=forged.pk).update(rollout_mac=f"{forged.rollout_mac[:-4]}0000")

    use_keys(NEW_KEY, old_key)
    resigned = snapshots_resign()

    assert resigned.lost == 1
    use_keys(NEW_KEY)
    (head,) = snapshot_heads()
    assert head.genuine
    assert head.rollout_genuine
    assert snapshots_foreign() == 1
    use_keys(FOREIGN_KEY)
    assert snapshots_foreign() == SnapshotRow.objects.count()
