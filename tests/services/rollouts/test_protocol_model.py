"""The real services and the model that the explorer goes through, side by side: whatever happens, both are at the same
place (rollouts.md R12).

A worker of the model looks, and acts later. So does one here: it is held before its transaction, with what it saw and
judged, while everything else goes on; of several that are held the last one goes on first. What a restore does is not
walked through: test_steps.py has that.
"""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from controlplane.builder.services import build
from controlplane.catalog.models import CandidateSide, Environment, Resource, StagedName
from controlplane.catalog.rollout_settings import ROLLOUT_OFF, settings_from_json
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Put
from controlplane.database import failpoints
from controlplane.database.aliases import READER
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.services import (
    rollout_abort,
    rollout_advance,
    rollout_pause,
    rollout_resume,
    ticking,
)
from controlplane.rollouts.services.situation import Situation, environment_of, situation_read
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.rollback import environment_rollback
from tests.protocol.publish.explorer import Step
from tests.protocol.publish.rollout_model import steps
from tests.protocol.publish.rollout_world import BAD, NO_TABLE, Flaws, World, world
from tests.services.rollouts.clients import DANA, Fleet, environment_id
from tests.support.manifests import cluster, parsed
from tests.support.sides import rollouts

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

ON = settings_from_json({"mode": "steps", "steps": [{"clients": 1}, {"percent": 100}]})
STEPS = 60
CALM = 0.7


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm()


@dataclass
class Real:
    """The installation. `epochs`: of each content, a snapshot in which all had it."""

    fleet: Fleet
    epochs: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        self.write("1g", staged=True)
        self.fleet.join("node-0")
        self.build("1g", "1g")
        rollouts(ON)

    def write(self, content: str, *, staged: bool) -> None:
        edit = Put(parsed(cluster("pay", connect_timeout=f"{content[:-1]}s", alt_stat_name=content)))
        change_apply(environment_key="default", edits=[edit], actor=DANA, terms=Terms(staged=staged))

    def build(self, stable: str, candidate: str) -> None:
        build(environment_id=environment_id())
        self.epochs[stable] = SnapshotRow.objects.latest("epoch").epoch
        bad = candidate.endswith(BAD)
        self.fleet.members["node-0"].refuses = frozenset({"pay"} if bad else ())
        self.fleet.look()
        self.fleet.settle()

    def do(self, step: Step[World]) -> None:
        name = step.name
        if name.startswith("write"):
            self.write(step.to.database.head, staged=name != "write now")
        elif name.startswith("roll back"):
            epoch = self.epochs[name.rpartition(" ")[2]]
            environment_rollback(environment_key="default", to_epoch=epoch, reason="no", hold=False, actor=DANA)
        elif name.startswith("switch"):
            rollouts(ON if name == "switch on" else ROLLOUT_OFF)
        elif name == "build":
            published = step.to.database.published
            assert published is not None
            self.build(published.stable, published.candidate)
        else:
            acts = {
                "pause": rollout_pause,
                "resume": rollout_resume,
                "advance": rollout_advance,
                "abort": rollout_abort,
            }
            public_id = str(Rollout.objects.latest("pk").public_id)
            acts[name](public_id=public_id, reason="because", actor=DANA)

    def state(self) -> tuple[object, ...]:
        """Where the installation is, as `expected` says where the model is."""
        environment = Environment.objects.get(pk=environment_id())
        resource = Resource.objects.select_related("head").get(name="pay")
        staged = StagedName.objects.select_related("stable").filter(resource=resource).first()
        head = resource.head.version if resource.head is not None else ""
        stable = head if staged is None else staged.stable.version if staged.stable is not None else ""
        side = CandidateSide.objects.first()
        rows = Rollout.objects.order_by("pk")
        return (
            environment.generation == environment.built_generation,
            head,
            stable,
            staged.state if staged is not None else "",
            side.table["step"] if side is not None else NO_TABLE[1],
            tuple(("running" if row.state == "waiting" else row.state, row.step) for row in rows),
            tuple(row.evidence_at is not None for row in rows if row.state in ("running", "waiting", "paused")),
        )


def expected(model: World) -> tuple[object, ...]:
    database = model.database
    return (
        database.generation == database.built,
        version(database.head),
        version(database.stable),
        database.state,
        database.table[1],
        tuple((row.state, row.step) for row in database.rows),
        tuple(bool(row.evidence) for row in database.rows if row.open),
    )


def version(content: str) -> str:
    tree = cluster("pay", connect_timeout=f"{content[:-1]}s", alt_stat_name=content)
    return parsed(tree).content_hash.hex()[:16]


class Died(BaseException):
    """The worker's process is gone. No handler of the product may see it."""


class Walk:
    """A walk through the model with the installation beside it. `held`: the workers that are held, the last one on top;
    `seen`: what those saw that do nothing before their transaction at which they could be held.
    """

    def __init__(self, real: Real, model: World, chance: random.Random) -> None:
        self.real, self.model, self.chance = real, model, chance
        self.way: list[str] = []
        self.held: list[int] = []
        self.seen: dict[int, Situation] = {}

    def go(self, until: int | None = None) -> Step[World]:
        """Make steps until this worker goes on or dies, and return that step; to the end of the walk for None."""
        while True:
            choices = self._choices()
            over = len(self.way) >= STEPS
            if over and until is None:
                return choices[0][0]
            # Else people would do so much that no rollout ever came to its end.
            calm = [choice for choice in choices if not choice[0].faulty]
            step, worker = self.chance.choice(calm if calm and self.chance.random() < CALM else choices)
            if over:
                step, worker = next(each for each in choices if each[1] == until)
            if worker is not None and worker == until:
                return step
            self._make(step, worker)

    def _choices(self) -> list[tuple[Step[World], int | None]]:
        """The steps of the model that can be made here, and whose they are where a worker makes them."""
        found = []
        for step in steps(self.model, Flaws.NONE):
            pairs = zip(self.model.workers, step.to.workers, strict=True)
            worker = next((place for place, (now, then) in enumerate(pairs) if now != then), None)
            if worker in self.held[:-1]:
                continue
            if step.name.startswith("roll back") and step.name.rpartition(" ")[2] not in self.real.epochs:
                continue
            found.append((step, worker))
        return found

    def _make(self, step: Step[World], worker: int | None) -> None:
        if worker is None:
            self.real.do(step)
        elif step.name.startswith("worker sees"):
            step = self._look(step, worker)
        else:
            saw = self.seen.pop(worker)
            if step.name != "worker dies":
                ticking._look(saw)
        self.way.append(step.name)
        self.model = step.to
        assert self.real.state() == expected(self.model), self.way

    def _look(self, step: Step[World], worker: int) -> Step[World]:
        """Let a worker look and hold it; returns the step that is made by then."""
        environment = environment_of(environment_id())
        assert environment is not None
        situation = situation_read(environment)
        plan = step.to.workers[worker]
        assert plan is not None
        if plan.plan in ("begin", "settle"):
            assert situation is not None
            self.seen[worker] = situation
            return step
        point = "rollout.read" if plan.plan == "open" else "rollout.judged"
        went_on: list[Step[World]] = []

        def hold(name: str) -> None:
            if name != point or went_on:
                return
            went_on.append(self.go(until=worker))
            failpoints.arm()
            if went_on[0].name == "worker dies":
                raise Died

        self.way.append(step.name)
        self.model = step.to
        self.held.append(worker)
        failpoints.arm(hold)
        with suppress(Died):
            if situation is None:
                ticking._open(environment)
            else:
                ticking._look(situation)
        failpoints.arm()
        self.held.pop()
        assert went_on, f"it never came to {point}: {self.way}"
        return went_on[0]


@pytest.mark.parametrize("seed", range(4))
def test_rollouts__any_steps_in_any_order__are_where_the_model_is(fleet: Fleet, seed: int) -> None:
    real = Real(fleet)
    real.begin()
    first = world(workers=2, acts=STEPS)
    built = next(step for step in steps(first, Flaws.NONE) if step.name == "build")
    real.build("1g", "1g")
    walk = Walk(real, built.to, random.Random(seed))  # noqa: S311 - the same walk every time

    walk.go()

    assert len(walk.way) >= STEPS
