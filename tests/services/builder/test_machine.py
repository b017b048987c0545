"""Two builders, three replicas, an unreliable world: what is served is always one whole, correct moment (reliability P1
to P7, P10, P12).

The builders stop and die between any two steps; hints are lost, repeated and come in any order, which is what a replica
sees that looks whenever it likes. The model computes from the catalogue's history what each epoch must be.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from adsserver.ports import Directory
from adsserver.store.contents import ContentMemory
from adsserver.store.last_good import LastGood
from adsserver.store.loader import Loader
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.memory import Memory
from controlplane.builder.models import Build
from controlplane.builder.selectors import ChangeState, change_progress
from controlplane.builder.services import build
from controlplane.catalog.models import Blob, Environment
from controlplane.catalog.services import change_apply, environment_default_ensure
from controlplane.catalog.values import Delete, Put
from controlplane.database import failpoints
from controlplane.snapshots.models import SnapshotRow
from tests.support.emptying import database_empty
from tests.support.manifests import cluster, parsed, route
from tests.support.principals import somebody
from xdscore.resource_types import CLUSTER, ROUTE
from xdscore.snapshot import Snapshot

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.slow,
]

DANA = somebody("dana", ADMIN_SCOPES)
NAMES = ("a", "b", "c")
POINTS = (
    *("build.read", "build.resolved", "build.assembled", "publish.locked", "publish.claimed", "publish.blobs_written"),
    *("publish.snapshot_written", "publish.recorded", "publish.committed", "build.ended"),
)
# How far a change has come, in order; it never goes back (P12).
PROGRESS = (ChangeState.SAVED, ChangeState.UNCHANGED, ChangeState.SUPERSEDED, ChangeState.PUBLISHED)

Served = dict[tuple[str, str], str]
"""What a snapshot serves: (type, name) -> version."""


class Died(BaseException):
    """The builder's process is gone. No handler of the product may see it."""


class Replica:
    """An ADS process as far as snapshots go."""

    def __init__(self, folder: Path) -> None:
        self.offered: list[Directory] = []
        self.loader = Loader(contents=ContentMemory(), last_good=LastGood(folder), on_directory=self.offered.append)

    def look(self) -> Snapshot | None:
        """What a hint, a repeated hint, a forged hint and a poll all come to."""
        self.loader._look()
        return self.snapshot

    @property
    def snapshot(self) -> Snapshot | None:
        return self.offered[-1].snapshots.get("default") if self.offered else None


class Publication(RuleBasedStateMachine):
    """A small catalogue: clusters, and routes that may lead to one that is not there."""

    @initialize()
    def start(self) -> None:
        database_empty("default")
        environment_default_ensure()
        self.environment = Environment.objects.get(key="default").pk
        self.folder = TemporaryDirectory(prefix="parley-machine-")
        # One remembers, as a long-lived worker does; the other starts anew each time.
        self.memories = [Memory(), Memory(max_names=0)]
        self.replicas = [Replica(Path(self.folder.name) / str(number)) for number in range(3)]
        self.catalogue: dict[tuple[str, str], str] = {}
        self.needs: dict[str, str] = {}
        # What each generation's build must serve.
        self.expected: dict[int, Served] = {1: {}}
        self.changes: dict[str, ChangeState] = {}
        self.seen = [0, 0, 0]
        self.damaged: dict[str, bytes] = {}

    def teardown(self) -> None:
        failpoints.arm()
        if hasattr(self, "folder"):
            self.mend()
            self.builder_builds(0)
            self.everybody_arrives()
            self.folder.cleanup()

    # Operators

    @rule(name=st.sampled_from(NAMES), timeout=st.integers(1, 3))
    def put_cluster(self, name: str, timeout: int) -> None:
        resource = parsed(cluster(name, connect_timeout=f"{timeout}s"))
        self.catalogue["cluster", name] = resource.content_hash.hex()[:16]
        self.write([Put(resource)])

    @rule(name=st.sampled_from(NAMES), leads_to=st.sampled_from(NAMES), domain=st.sampled_from(("*", "x.example")))
    def put_route(self, name: str, leads_to: str, domain: str) -> None:
        resource = parsed(route(name, leads_to, domain=domain))
        self.catalogue["route", name] = resource.content_hash.hex()[:16]
        self.needs[name] = leads_to
        self.write([Put(resource)])

    @rule(kind=st.sampled_from((CLUSTER, ROUTE)), name=st.sampled_from(NAMES))
    def delete(self, kind: object, name: str) -> None:
        chosen = CLUSTER if kind is CLUSTER else ROUTE
        self.catalogue.pop((chosen.word, name), None)
        self.write([Delete(chosen, name, missing_ok=True)])

    def write(self, edits: list[Put | Delete]) -> None:
        made = change_apply(environment_key="default", edits=edits, actor=DANA)
        if made.changed:
            self.changes[made.change_id] = ChangeState.SAVED
            self.expected[made.generation] = self.servable()

    def servable(self) -> Served:
        """Nothing was ever acknowledged here, so a route to a missing cluster is withheld, and only that (P7)."""
        return {
            (word, name): version
            for (word, name), version in self.catalogue.items()
            if word != "route" or ("cluster", self.needs[name]) in self.catalogue
        }

    # Builders

    @rule(number=st.integers(0, 1))
    def builder_builds(self, number: int) -> None:
        build(environment_id=self.environment, memory=self.memories[number])

    @rule(number=st.integers(0, 1), point=st.sampled_from(POINTS))
    def builder_dies(self, number: int, point: str) -> None:
        with stopped_at(point, die):
            try:
                self.builder_builds(number)
            except Died:
                self.memories[number] = Memory() if number == 0 else Memory(max_names=0)

    @rule(number=st.integers(0, 1), point=st.sampled_from(("build.read", "build.resolved", "build.assembled")))
    def builder_is_overtaken(self, number: int, point: str) -> None:
        """It pauses; a change is written and the other one builds that; then it wakes (F11)."""

        def meanwhile() -> None:
            failpoints.arm()
            self.put_cluster("a", 1 + len(self.changes) % 3)
            self.builder_builds(1 - number)

        with stopped_at(point, meanwhile):
            self.builder_builds(number)

    # Replicas

    @rule(number=st.integers(0, 2))
    def replica_looks(self, number: int) -> None:
        snapshot = self.replicas[number].look()
        if snapshot is None:
            return
        assert snapshot.epoch >= self.seen[number], "P5: an epoch goes back"
        self.seen[number] = snapshot.epoch

    @rule(number=st.integers(0, 2))
    def replica_restarts(self, number: int) -> None:
        self.replicas[number] = Replica(Path(self.folder.name) / str(number))

    # The store

    @precondition(lambda self: not self.damaged)
    @rule(kind=st.sampled_from(("chunk", "root", "resource")))
    def a_blob_is_damaged(self, kind: str) -> None:
        blob = Blob.objects.filter(kind=kind).order_by("hash").last()
        if blob is not None:
            self.damaged[blob.pk] = bytes(blob.data)
            Blob.objects.filter(pk=blob.pk).update(data=bytes(blob.data)[:-1] + bytes([bytes(blob.data)[-1] ^ 1]))

    @rule()
    def mend(self) -> None:
        for address, data in self.damaged.items():
            Blob.objects.filter(pk=address).update(data=data)
        self.damaged.clear()

    # What must hold

    @invariant()
    def every_replica_serves_one_whole_moment(self) -> None:
        for replica in self.replicas:
            if replica.snapshot is not None:
                generation = SnapshotRow.objects.get(epoch=replica.snapshot.epoch).generation
                assert served_by(replica.snapshot) == self.expected[generation]

    @invariant()
    def epochs_and_generations_rise_together(self) -> None:
        rows = list(SnapshotRow.objects.order_by("epoch").values_list("epoch", "generation", "root_id"))
        assert [epoch for epoch, _, _ in rows] == list(range(1, len(rows) + 1)), "P2: one after the other"
        generations = [generation for _, generation, _ in rows]
        assert generations == sorted(set(generations)), "P2: a later epoch covers more"
        assert all(one[2] != other[2] for one, other in pairwise(rows)), "a new epoch is new"

    @invariant()
    def published_means_built_and_told(self) -> None:
        environment = Environment.objects.get(pk=self.environment)
        ended = Build.objects.filter(outcome__in=("published", "unchanged"))
        told = max(ended.values_list("to_generation", flat=True), default=0)
        assert told == environment.built_generation, "P3: the build's record is part of the publication"

    @invariant()
    def changes_only_go_on(self) -> None:
        for change, before in self.changes.items():
            now = change_progress(public_id=change).state
            assert PROGRESS.index(now) >= PROGRESS.index(before), f"P12: {before} -> {now}"
            self.changes[change] = now

    def everybody_arrives(self) -> None:
        """With every hint lost, one look is enough (P4); equal inputs made equal bytes, whoever built (P6)."""
        newest = Environment.objects.get(pk=self.environment)
        assert newest.generation == newest.built_generation
        snapshots = [replica.look() for replica in self.replicas]
        assert all(each is not None and each.epoch == newest.epoch for each in snapshots)
        assert all(served_by(each) == self.servable() for each in snapshots if each is not None)
        assert all(state is not ChangeState.SAVED for state in map(state_of, self.changes))


def state_of(change: str) -> ChangeState:
    return change_progress(public_id=change).state


def served_by(snapshot: Snapshot) -> Served:
    return {
        (word, name): entry.content.version
        for word, state in snapshot.types.items()
        for name, entry in state.served.items()
    }


def die() -> None:
    raise Died


@contextmanager
def stopped_at(point: str, action: object) -> Iterator[None]:
    def reached(name: str) -> None:
        if name == point and callable(action):
            action()

    failpoints.arm(reached)
    try:
        yield
    finally:
        failpoints.arm()


def test_publication__whatever_happens__holds_its_invariants() -> None:
    run_state_machine_as_test(
        Publication,
        settings=settings(
            max_examples=12,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
