"""Writes, rollouts, rollbacks and acknowledgements in any order: the stable side never differs from what was stable or
promoted, both sides are closed under references, and nobody falls back to what was not promoted
(rollouts.md R4, R5, R6, R7 and R13).

The model keeps, for each name, what each side is to have; what a build then publishes is held against it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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

from controlplane.builder.memory import Memory
from controlplane.builder.services import build
from controlplane.catalog.models import Environment, StagedChange, StagedName
from controlplane.catalog.rollout_settings import ROLLOUT_OFF
from controlplane.catalog.services import environment_default_ensure, proofs_record, quarantine_release
from controlplane.catalog.values import ProvenContent
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.rollback import environment_rollback
from controlplane.snapshots.selectors import candidate_diff, entries_published
from tests.support.emptying import database_empty
from tests.support.manifests import Tree, cluster, endpoints, route
from tests.support.sides import (
    DANA,
    PILOT,
    closed,
    opened,
    promoted,
    rollouts,
    staged,
    stepped,
    taken_back,
    version,
    write,
)
from xdscore.sides import RolloutTable
from xdscore.snapshot import Entry, EntryKey, Served, WithheldName

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

NAMES = ("a", "b", "c")
CLUSTERS = tuple(("cluster", name) for name in NAMES)
KEYS = (*CLUSTERS, *(("route", name) for name in NAMES))
Chosen = frozenset[EntryKey]
# Most names: of few there would seldom be one that is staged.
most = st.frozensets(st.sampled_from(KEYS), max_size=3).map(lambda without: frozenset(KEYS) - without)


@dataclass
class Name:
    """What the model knows of a name: the content of the newest revision and of the stable side (empty: none), how far
    the newest one has come, and every content that all clients were ever to have.
    """

    newest: str = ""
    stable: str = ""
    state: str = ""
    number: int = 0
    promoted: set[str] = field(default_factory=set)

    def settle(self) -> None:
        """Give the newest content to all clients."""
        self.stable, self.state = self.newest, ""
        self.promoted.add(self.stable)


class Sides(RuleBasedStateMachine):
    """Clusters, and routes that lead to one of them, in an environment with rollouts."""

    @initialize()
    def start(self) -> None:
        database_empty("default")
        environment_default_ensure()
        rollouts(PILOT)
        self.environment = Environment.objects.get(key="default").pk
        self.memory = Memory()
        self.names = {key: Name() for key in KEYS}
        self.leads_to: dict[str, str] = {}  # a route's version -> its cluster
        self.mode = True
        self.table: RolloutTable | None = None
        self.snapshots: dict[int, Mapping[EntryKey, str]] = {}

    # Writes

    @rule(name=st.sampled_from(NAMES), timeout=st.integers(1, 3), at_once=st.booleans())
    def put_cluster(self, name: str, timeout: int, at_once: bool) -> None:
        self.write({("cluster", name): cluster(name, connect_timeout=f"{timeout}s")}, at_once=at_once)

    @rule(name=st.sampled_from(NAMES), leads_to=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def put_route_and_cluster(self, name: str, leads_to: str, other: str) -> None:
        tree = route(name, leads_to)
        self.leads_to[version(tree)] = leads_to
        self.write({("route", name): tree, ("cluster", other): cluster(other, connect_timeout="9s")})

    @rule(key=st.sampled_from(KEYS), at_once=st.booleans())
    def delete(self, key: EntryKey, at_once: bool) -> None:
        if self.names[key].newest:
            self.write({key: None}, at_once=at_once)

    @rule(port=st.integers(1, 3))
    def endpoints_move(self, port: int) -> None:
        """An immediate type: it never waits."""
        write(endpoints("a", port))

    def write(self, trees: Mapping[EntryKey, Tree | None], *, at_once: bool = False) -> None:
        write(
            *(tree for tree in trees.values() if tree is not None),
            delete=[key for key, tree in trees.items() if tree is None],
            staged=not at_once,
        )
        contents = {key: version(tree) if tree is not None else "" for key, tree in trees.items()}
        effective = {key for key, content in contents.items() if self.names[key].newest != content}
        joins = any(self.names[key].state == "candidate" for key in effective)
        for key, content in contents.items():
            name = self.names[key]
            if key in effective:
                name.newest, name.number = content, name.number + 1
            if at_once or (key in effective and (content == name.stable or not (self.mode or self.table))):
                name.settle()
            elif key in effective:
                name.state = "candidate" if joins else "waiting"

    # Rollouts

    @precondition(lambda self: self.table is None and bool(self.in_state("waiting")))
    @rule(chosen=most)
    def a_rollout_opens(self, chosen: Chosen) -> None:
        self.table = opened(chosen)
        self.move(self.in_state("waiting") & chosen, "candidate")

    @precondition(lambda self: self.table is not None)
    @rule()
    def it_steps(self) -> None:
        assert self.table is not None
        self.table = replace(self.table, step=self.table.step + 1, permille=min(1000, self.table.permille + 100))
        stepped(self.table)

    @precondition(lambda self: self.table is not None and bool(self.in_state("candidate")))
    @rule(chosen=most)
    def it_promotes(self, chosen: Chosen) -> None:
        promoted(chosen)
        for key in self.in_state("candidate") & chosen:
            self.names[key].settle()

    @precondition(lambda self: self.table is not None and bool(self.in_state("candidate")))
    @rule(chosen=most)
    def it_takes_back(self, chosen: Chosen) -> None:
        taken_back(*chosen)
        self.move(self.in_state("candidate") & chosen, "stopped")

    @precondition(lambda self: self.table is not None)
    @rule()
    def it_ends(self) -> None:
        closed()
        self.table = None
        self.move(self.in_state("candidate"), "waiting")
        if not self.mode:
            self.settle_all("waiting")

    @rule(on=st.booleans())
    def rollouts_are_switched(self, on: bool) -> None:
        rollouts(PILOT if on else ROLLOUT_OFF)
        if self.mode and not on:
            self.settle_all("waiting")
        self.mode = on

    @precondition(lambda self: bool(self.in_state("stopped")))
    @rule(data=st.data())
    def somebody_releases(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.in_state("stopped"))))
        name = self.names[key]
        word, called = key
        quarantine_release(
            environment_key="default", word=word, name=called, revision=name.number, reason="why", actor=DANA
        )
        name.state = "waiting"
        if not self.mode and self.table is None:
            name.settle()

    # Clients

    @rule(key=st.sampled_from(KEYS), newest=st.booleans())
    def a_client_acknowledges(self, key: EntryKey, newest: bool) -> None:
        content = self.names[key].newest if newest else self.names[key].stable
        if content:
            proofs_record(proven=[ProvenContent("default", *key, content)])

    # Operators

    @precondition(lambda self: self.table is None and bool(self.snapshots))
    @rule(data=st.data())
    def somebody_rolls_back(self, data: st.DataObject) -> None:
        epoch = data.draw(st.sampled_from(sorted(self.snapshots)))
        wanted = self.snapshots[epoch]
        environment_rollback(environment_key="default", to_epoch=epoch, reason="why", hold=False, actor=DANA)
        for key, name in self.names.items():
            content = wanted.get(key, "")
            if content == "withheld":
                continue
            if name.newest != content:
                name.newest, name.number = content, name.number + 1
            name.settle()

    # What must hold

    @invariant()
    def each_side_has_what_it_is_to_have(self) -> None:
        build(environment_id=self.environment, memory=self.memory)
        stable = entries_published(environment_key="default")
        diff = candidate_diff(environment_key="default")
        candidate: dict[EntryKey, Entry | None] = {**stable, **diff}
        self.snapshots[SnapshotRow.objects.latest("epoch").epoch] = {
            key: told(entry) for key, entry in stable.items() if key[0] != "endpoint"
        }
        assert bool(diff) <= (self.table is not None)
        for key in CLUSTERS:
            name = self.names[key]
            on_its_way = name.state == "candidate"
            assert told(stable.get(key)) == name.stable, f"{key}: what is stable"
            assert told(candidate.get(key)) == (name.newest if on_its_way else name.stable), f"{key}: the candidate"
        for key, entry in stable.items():
            if isinstance(entry, Served) and key in self.names:
                assert entry.content.version in self.names[key].promoted, f"{key}: never promoted"
                assert entry.proven is None or entry.proven.version in self.names[key].promoted, f"{key}: R6"
        for key, held in candidate.items():
            if isinstance(held, Served) and key in self.names and held.proven is not None:
                assert held.proven.version in self.names[key].promoted, f"{key}: R6 of the cohort"
        self.closed(stable)
        self.closed(candidate)

    def closed(self, side: Mapping[EntryKey, Entry | None]) -> None:
        """Who leads to nothing is served only where clients acknowledged it, or fall back to it."""
        for (word, name), entry in side.items():
            if word != "route" or not isinstance(entry, Served) or entry.content == entry.proven:
                continue
            target = side.get(("cluster", self.leads_to[entry.content.version]))
            assert isinstance(target, Served | WithheldName), f"route {name} leads to nothing"

    @invariant()
    def what_is_staged_is_what_differs(self) -> None:
        assert staged() == {key: name.state for key, name in self.names.items() if name.state}
        for key, name in self.names.items():
            assert not name.state or name.newest != name.stable, f"{key}: staged, and the same"

    @invariant()
    def changes_are_where_their_names_are(self) -> None:
        on_their_way = StagedChange.objects.filter(state__in=("waiting", "candidate"))
        heads = StagedName.objects.exclude(state="stopped").values("resource__head__change")
        assert not on_their_way.exclude(change__in=heads).exists()
        promoted_ones = StagedChange.objects.filter(state="promoted")
        assert not promoted_ones.filter(change__in=StagedName.objects.values("resource__head__change")).exists()
        assert not promoted_ones.filter(promoted_generation=None).exists()

    def in_state(self, state: str) -> Chosen:
        return frozenset(key for key, name in self.names.items() if name.state == state)

    def move(self, keys: Chosen, state: str) -> None:
        for key in keys:
            self.names[key].state = state

    def settle_all(self, state: str) -> None:
        for key in self.in_state(state):
            self.names[key].settle()


def told(entry: Entry | None) -> str:
    """What an entry serves; nothing of a name that is gone is as good as none of a name that never was."""
    match entry:
        case Served(content=content):
            return content.version
        case WithheldName():
            return "withheld"
    return ""


def test_sides__whatever_happens__hold_their_invariants() -> None:
    run_state_machine_as_test(
        Sides,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
