"""The real services and the model that the explorer goes through, side by side: whatever happens, both are at the same
place (rollouts.md R12).

A worker of the model looks, and acts later; so does one here: it acts upon what it saw, with what the real code finds
by then. What a restore does is not walked through: test_steps.py has that.
"""

import random
from dataclasses import dataclass, field

import pytest

from controlplane.builder.services import build
from controlplane.catalog.models import CandidateSide, Environment, Resource, StagedName
from controlplane.catalog.rollout_settings import ROLLOUT_OFF, settings_from_json
from controlplane.catalog.selectors import EnvironmentState
from controlplane.catalog.services import Terms, change_apply
from controlplane.catalog.values import Put
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
from tests.protocol.publish.rollout_model import BAD, NO_TABLE, Flaws, World, steps, world
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


@dataclass
class Real:
    """The installation. `seen`: what each worker saw; `epochs`: of each content, a snapshot in which all had it."""

    fleet: Fleet
    seen: dict[int, Situation | EnvironmentState] = field(default_factory=dict)
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

    def do(self, step: Step[World], worker: int | None) -> None:
        name = step.name
        if worker is not None:
            self.work(name, worker)
        elif name.startswith("write"):
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

    def work(self, name: str, worker: int) -> None:
        if name.startswith("worker sees"):
            environment = environment_of(environment_id())
            assert environment is not None
            self.seen[worker] = situation_read(environment) or environment
            return
        saw = self.seen.pop(worker)
        if name == "worker dies":
            return
        if isinstance(saw, Situation):
            ticking._look(saw)
        else:
            ticking._open(saw)

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


def possible(model: World, real: Real) -> list[tuple[Step[World], int | None]]:
    """The steps of the model that can be made here, and whose they are where a worker makes them."""
    found = []
    for step in steps(model, Flaws.NONE):
        changed = [
            place for place, (now, then) in enumerate(zip(model.workers, step.to.workers, strict=True)) if now != then
        ]
        worker = changed[0] if changed else None
        if step.name.startswith("roll back") and step.name.rpartition(" ")[2] not in real.epochs:
            continue
        saw = model.workers[worker] if worker is not None else None
        if step.name == "worker finds it moved" and saw is not None and saw.plan == "open":
            continue  # it reads what waits when it acts, and would open a rollout of what is there by then
        found.append((step, worker))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_rollouts__any_steps_in_any_order__are_where_the_model_is(fleet: Fleet, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same walk every time
    real = Real(fleet)
    real.begin()
    model = world(workers=2, acts=STEPS)
    build_at_first = next(step for step in steps(model, Flaws.NONE) if step.name == "build")
    model = build_at_first.to
    real.build("1g", "1g")
    way = []

    for _ in range(STEPS):
        choices = possible(model, real)
        calm = [choice for choice in choices if not choice[0].faulty]
        # Else people would do so much that no rollout ever came to its end.
        step, worker = chance.choice(calm if calm and chance.random() < 0.75 else choices)
        way.append(step.name)
        real.do(step, worker)
        model = step.to

        assert real.state() == expected(model), way
