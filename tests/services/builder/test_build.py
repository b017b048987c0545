"""From catalogue to snapshot, through the real database."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError

from adsserver.ports import Directory
from adsserver.store.blobs import DatabaseBlobs
from adsserver.store.contents import ContentMemory
from adsserver.store.last_good import LastGood
from adsserver.store.loader import Loader
from adsserver.store.snapshot_reading import _check_rules
from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.models import Build
from controlplane.builder.services import build, builds_sweep
from controlplane.builder.stages.assemble import EMPTY
from controlplane.catalog.choices import QuarantineCause
from controlplane.catalog.heads import Moment
from controlplane.catalog.models import Blob, Change, Environment
from controlplane.catalog.services import (
    change_apply,
    environment_create,
    environment_default_ensure,
    proofs_record,
    quarantine_open,
)
from controlplane.catalog.values import Delete, EnvironmentPolicy, ProvenContent, Put
from controlplane.clients.facts import Serving
from controlplane.config.home import Home
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.services import Published, PublishOutcome, snapshot_publish
from tests.support.figures import measured
from tests.support.manifests import cluster, endpoints, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.chunks import ChunkError
from xdscore.decision import Denied, Missing, Serve, Withheld, decide
from xdscore.environment_choice import Selector
from xdscore.resource_types import CLUSTER, ENDPOINT, SECRET
from xdscore.snapshot import Content, Entry, EntryKey, Served, Snapshot

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
EVERYBODY = Audience("default")


@pytest.fixture(autouse=True)
def environment() -> None:
    environment_default_ensure()


class Replica:
    """What an ADS process would hold now."""

    def __init__(self) -> None:
        self.contents = ContentMemory()
        self.offered: list[Directory] = []
        last_good = LastGood(Home(settings.PARLEY.home).cache)
        self.loader = Loader(contents=self.contents, last_good=last_good, on_directory=self.offered.append)

    def snapshot(self) -> Snapshot:
        self.loader._look()
        return self.offered[-1].snapshots["default"]


def put(*trees: dict[str, object]) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)
    builds_sweep()


def test_build__resources_put__a_replica_serves_their_bytes() -> None:
    put(cluster("a", eds=True), endpoints("a", 80), cluster("b"))
    replica = Replica()

    decision = decide(EVERYBODY, CLUSTER, "a", replica.snapshot())

    assert isinstance(decision, Serve)
    assert replica.contents.any_bytes(decision.content) == parsed(cluster("a", eds=True)).any_bytes
    assert decision.content.eds_name == "a"


def test_build__resource_changes_and_no_rule__a_replica_keeps_its_access_table() -> None:
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "a*"), actor=DANA)
    put(cluster("a"))
    replica = Replica()
    before = replica.snapshot()

    put(cluster("b"))
    after = replica.snapshot()

    assert after.epoch > before.epoch
    assert after.access is before.access  # streams look whom they count as only when it is another one
    assert after.type_state(CLUSTER).served["a"].rules == (after.access.rules[0].number,)
    assert after.type_state(CLUSTER).served["b"].rules == ()


def test_load__entry_with_a_rule_that_the_table_does_not_have__is_refused() -> None:
    served = Served(Content(bytes(16), "v", 1), None, (7,))
    entries: list[tuple[EntryKey, Entry]] = [(("cluster", "a"), served)]

    _check_rules(entries, AccessTable(Effect.ALLOW, rules=(Rule(7, Effect.DENY),)))
    with pytest.raises(ChunkError, match="access rule"):
        _check_rules(entries, AccessTable(Effect.ALLOW, rules=(Rule(8, Effect.DENY),)))


def test_build__nothing_due__makes_no_snapshot() -> None:
    put(cluster("a"))
    count = SnapshotRow.objects.count()

    builds_sweep()
    build(environment_id=Environment.objects.get(key="default").pk)

    assert SnapshotRow.objects.count() == count


def test_build__change_and_back_before_the_build__is_unchanged_and_keeps_the_epoch() -> None:
    put(cluster("a"))
    epoch = Environment.objects.get(key="default").epoch
    change_apply(environment_key="default", edits=[Put(parsed(cluster("a", connect_timeout="2s")))], actor=DANA)

    put(cluster("a"))

    environment = Environment.objects.get(key="default")
    assert environment.epoch == epoch
    assert environment.built_generation == environment.generation
    assert Build.objects.latest("id").outcome == "unchanged"


def test_build__deleted_resource__is_gone_and_known_to_have_been_there() -> None:
    put(cluster("a"))
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "a")], actor=DANA)

    builds_sweep()

    assert decide(EVERYBODY, CLUSTER, "a", Replica().snapshot()) == Missing(removed=True)


def test_build__quarantined_with_a_proven_revision__serves_that_one_and_the_neighbour_moves_on() -> None:
    put(cluster("a"), cluster("b"))
    version = parsed(cluster("a")).content_hash.hex()[:16]
    proofs_record(proven=[ProvenContent("default", "cluster", "a", version)])
    put(cluster("a", connect_timeout="9s"))
    quarantine(revision=2)

    put(cluster("b", connect_timeout="5s"))

    snapshot = Replica().snapshot()
    served = snapshot.type_state(CLUSTER).served
    assert served["a"].content.version == version
    assert served["b"].content.version == parsed(cluster("b", connect_timeout="5s")).content_hash.hex()[:16]
    assert Build.objects.latest("id").held == [
        {"type": "cluster", "name": "a", "reason": "rejected by clients", "served": True, "code": "XDS5001"}
    ]


@pytest.mark.parametrize("proof_is_late", [False, True])
def test_build__quarantined_though_others_acknowledged_it__serves_the_one_before(proof_is_late: bool) -> None:
    put(cluster("a"))
    first, second = (
        parsed(tree).content_hash.hex()[:16] for tree in (cluster("a"), cluster("a", connect_timeout="9s"))
    )
    proofs_record(proven=[ProvenContent("default", "cluster", "a", first)])
    put(cluster("a", connect_timeout="9s"))
    if not proof_is_late:
        proofs_record(proven=[ProvenContent("default", "cluster", "a", second)])

    quarantine(revision=2)
    if proof_is_late:
        proofs_record(proven=[ProvenContent("default", "cluster", "a", second)])
    builds_sweep()

    assert Replica().snapshot().type_state(CLUSTER).served["a"].content.version == first


def test_build__quarantined_after_a_deletion__what_was_before_it_does_not_come_back() -> None:
    put(cluster("a"))
    first = parsed(cluster("a")).content_hash.hex()[:16]
    proofs_record(proven=[ProvenContent("default", "cluster", "a", first)])
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "a")], actor=DANA)
    put(cluster("a", connect_timeout="9s"))

    quarantine(revision=3)
    builds_sweep()

    assert decide(EVERYBODY, CLUSTER, "a", Replica().snapshot()) == Withheld("rejected by clients")


def test_build__quarantined_and_never_proven__is_withheld() -> None:
    put(cluster("a"))

    quarantine(revision=1)
    builds_sweep()

    assert decide(EVERYBODY, CLUSTER, "a", Replica().snapshot()) == Withheld("rejected by clients")


def test_build__new_revision_after_quarantine__is_served() -> None:
    put(cluster("a"))
    quarantine(revision=1)
    builds_sweep()

    put(cluster("a", connect_timeout="3s"))

    assert isinstance(decide(EVERYBODY, CLUSTER, "a", Replica().snapshot()), Serve)


def test_publish__older_generation_than_what_is_served__is_fenced() -> None:
    put(cluster("a"))
    put(cluster("a", connect_timeout="2s"))
    environment = Environment.objects.get(key="default")

    late = snapshot_publish(
        environment_id=environment.pk,
        environment_key="default",
        built_from=moment(environment, environment.generation - 1),
        parts=EMPTY.parts,
        access=AccessTable(Effect.ALLOW),
        counts={},
        record=not_called,
    )

    assert late.outcome is PublishOutcome.FENCED
    assert Environment.objects.get(key="default").epoch == environment.epoch
    assert "a" in Replica().snapshot().type_state(CLUSTER).served


@pytest.mark.parametrize("another_lineage", [True, False])
def test_publish__of_what_the_database_has_lost__is_fenced(another_lineage: bool) -> None:
    put(cluster("a"))
    change_apply(environment_key="default", edits=[Put(parsed(cluster("b")))], actor=DANA)
    environment = Environment.objects.get(key="default")
    read = moment(environment, environment.generation)
    read = replace(read, lineage=str(uuid4())) if another_lineage else replace(read, change=uuid4())

    late = snapshot_publish(
        environment_id=environment.pk,
        environment_key="default",
        built_from=read,
        parts=EMPTY.parts,
        access=AccessTable(Effect.ALLOW),
        counts={},
        record=not_called,
    )

    assert late.outcome is PublishOutcome.FENCED
    builds_sweep()
    assert set(Replica().snapshot().type_state(CLUSTER).served) == {"a", "b"}


def moment(environment: Environment, generation: int) -> Moment:
    change = Change.objects.get(environment=environment, generation=generation)
    return Moment(str(environment.lineage), generation, change.public_id)


def not_called(published: Published) -> None:
    pytest.fail(f"a fenced build was recorded as {published}")


@pytest.mark.parametrize("kind", ["chunk", "resource", "root"])
def test_loader__stored_bytes_altered__keeps_the_previous_snapshot(kind: str) -> None:
    put(cluster("a"))
    replica = Replica()
    before = replica.snapshot()
    put(cluster("a", connect_timeout="2s"))
    altered = Blob.objects.filter(kind=kind)
    for blob in altered:
        flipped = bytearray(bytes(blob.data))
        flipped[-1] ^= 1
        Blob.objects.filter(pk=blob.pk).update(data=bytes(flipped))

    assert replica.snapshot() is before
    measured(altered=altered.count(), epoch_served_on=before.epoch)


def test_loader__row_of_the_snapshot_altered__is_not_believed() -> None:
    put(cluster("a"))
    replica = Replica()
    before = replica.snapshot()
    put(cluster("b"))
    newest = SnapshotRow.objects.latest("epoch")
    SnapshotRow.objects.filter(pk=newest.pk).update(root_id=SnapshotRow.objects.earliest("epoch").root_id)

    assert replica.snapshot() is before
    status = replica.loader.status()
    assert status.database_ok
    assert status.detail == (
        "snapshot 2 of 'default' is refused (its signature does not hold: it was altered, or signed under a key that "
        "is not configured); snapshot 1 is served on"
    )
    assert replica.loader.serving() == {"default": Serving(str(newest.lineage), 1, status.detail)}


def test_loader__after_a_refused_snapshot_comes_a_good_one__status_is_well_again() -> None:
    put(cluster("a"))
    replica = Replica()
    replica.snapshot()
    put(cluster("b"))
    SnapshotRow.objects.filter(pk=SnapshotRow.objects.latest("epoch").pk).update(mac="0" * 64)
    replica.snapshot()
    put(cluster("c"))

    assert set(replica.snapshot().type_state(CLUSTER).served) == {"a", "b", "c"}
    assert replica.loader.status().detail == ""


def test_loader__one_resource_changes__other_types_are_the_very_same() -> None:
    put(cluster("a", eds=True), endpoints("a", 80))
    replica = Replica()
    before = replica.snapshot()

    put(cluster("a", eds=True, connect_timeout="2s"), cluster("b"))
    after = replica.snapshot()

    assert after.type_state(ENDPOINT) is before.type_state(ENDPOINT)
    assert set(after.type_state(CLUSTER).served) == {"a", "b"}
    assert after.type_state(CLUSTER).served["a"] != before.type_state(CLUSTER).served["a"]


def test_loader__database_fails_between_two_environments__new_rules_of_the_first_count_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = EnvironmentPolicy(default_effect=Effect.ALLOW, selectors=(Selector(node_cluster="shop"),))
    environment_create(key="shop", policy=policy, actor=DANA)
    for environment in ("default", "shop"):
        change_apply(environment_key=environment, edits=[Put(parsed(cluster("a")))], actor=DANA)
    builds_sweep()
    replica = Replica()
    replica.snapshot()
    for environment in ("default", "shop"):
        rule_create(environment_key=environment, draft=RuleDraft(Effect.DENY, "a"), actor=DANA)
        change_apply(environment_key=environment, edits=[Put(parsed(cluster("b")))], actor=DANA)
    builds_sweep()
    read, reads = DatabaseBlobs.contents, []

    def fails_second(self: DatabaseBlobs, addresses: frozenset[bytes]) -> object:
        reads.append(addresses)
        if len(reads) == 2:
            raise OperationalError("the connection is gone")
        return read(self, addresses)

    monkeypatch.setattr(DatabaseBlobs, "contents", fails_second)
    offered = len(replica.offered)
    replica.loader._look()
    assert len(replica.offered) == offered

    replica.loader._look()

    for environment, snapshot in replica.offered[-1].snapshots.items():
        assert isinstance(decide(Audience(environment), CLUSTER, "a", snapshot), Denied)
        assert isinstance(decide(Audience(environment), CLUSTER, "b", snapshot), Serve)


def test_loader__environment_made_again_under_its_name__serves_nothing_of_the_one_before() -> None:
    put(cluster("a"))
    replica = Replica()
    replica.snapshot()
    Environment.objects.filter(key="default").update(key="former")
    replica.loader._look()
    environment_default_ensure()

    replica.loader._look()

    assert replica.offered[-1].snapshots == {}


def test_loader__secret__stays_sealed_until_it_is_sent() -> None:
    put(tls_secret("key", "hunter2hunter2"))
    replica = Replica()

    content = replica.snapshot().type_state(SECRET).served["key"].content

    assert all(b"hunter2" not in data for data in replica.contents._sealed.values())
    assert b"hunter2hunter2" in replica.contents.any_bytes(content)


def test_loader__swept__lets_go_of_what_no_snapshot_needs() -> None:
    put(cluster("a"))
    replica = Replica()
    old = replica.snapshot().type_state(CLUSTER).served["a"].content
    put(cluster("a", connect_timeout="2s"))

    for _ in range(3):
        replica.loader._reader._next_sweep = 0.0
        replica.loader._look()

    assert replica.contents.missing([old.blob])
    new = replica.snapshot().type_state(CLUSTER).served["a"].content
    assert not replica.contents.missing([new.blob])


def quarantine(*, revision: int) -> None:
    quarantine_open(
        environment_key="default",
        word="cluster",
        name="a",
        revision=revision,
        cause=QuarantineCause.OPERATOR,
        reason="clients refuse it",
        actor=DANA,
    )
