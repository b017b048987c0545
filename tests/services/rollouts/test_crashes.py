"""State is in the database: whoever is killed, and wherever, the end is the same (R12)."""

from collections import Counter

import pytest

from controlplane.builder.services import build
from controlplane.catalog.models import Quarantine, Revision
from controlplane.database import failpoints
from controlplane.database.aliases import READER
from controlplane.rollouts.models import Rollout, RolloutPick
from controlplane.rollouts.services import rollout_tick, ticking
from controlplane.rollouts.values import RolloutState
from tests.services.rollouts.clients import GO, Fleet, environment_id, go_on, rollout_now, switch_on, write
from tests.support.manifests import cluster

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]

POINTS = {
    *("rollout.claimed", "rollout.read", "rollout.judged", "rollout.opened", "rollout.served", "rollout.moved"),
    *("rollout.settled", "build.resolved", "publish.claimed", "publish.committed"),
}


class Died(BaseException):
    """The worker's process is gone. No handler of the product may see it."""


@pytest.fixture(autouse=True)
def _disarmed() -> object:
    yield
    failpoints.arm()


def version(name: str, number: int) -> str:
    return Revision.objects.get(resource__name=name, number=number).version


def begin(fleet: Fleet, **settings: object) -> None:
    for number in range(3):
        fleet.join(f"node-{number}")
        fleet.join(f"go-{number}", agent=GO)
    write(cluster("pay"), cluster("shop"))
    go_on(fleet)
    for number in range(3):
        fleet.members[f"go-{number}"].refuses = frozenset({"pay"})
    switch_on(**settings)


def test_rollout__workers_die_at_every_step__ends_as_if_nobody_had(fleet: Fleet) -> None:
    begin(fleet, mode="steps", steps=[{"kinds": 1}, {"percent": 100}])
    died: Counter[str] = Counter()
    reached: Counter[str] = Counter()

    def die(name: str) -> None:
        reached[name] += 1
        if name in POINTS and reached[name] % 2:
            died[name] += 1
            raise Died

    write(cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))
    for _ in range(60):
        failpoints.arm(die)
        for work in (rollout_tick, build):
            try:
                work(environment_id=environment_id())
            except Died:
                continue
        failpoints.arm()
        fleet.look()
        fleet.settle()
    go_on(fleet)

    view = rollout_now()
    assert POINTS - died.keys() == {"rollout.settled"}  # nobody wrote meanwhile
    assert Rollout.objects.count() == 1
    assert view.state is RolloutState.DONE
    assert [(each.name, each.outcome) for each in view.resources] == [("pay", "reverted"), ("shop", "promoted")]
    assert set(fleet.has("pay").values()) == {version("pay", 1)}
    assert set(fleet.has("shop").values()) == {version("shop", 2)}
    assert Quarantine.objects.filter(released_at=None).count() == 1
    # The first of each kind, and one more of the kind that refused.
    assert len(fleet.saw("pay", version("pay", 2))) == 3


@pytest.mark.parametrize("point", ["rollout.read", "rollout.judged"])
def test_rollout__another_worker_overtakes__a_step_is_taken_once(fleet: Fleet, point: str) -> None:
    begin(fleet, mode="steps", steps=[{"kinds": 1}, {"kinds": 2}, {"percent": 100, "bake": "1h"}])
    write(cluster("shop", connect_timeout="2s"))
    overtaken = 0

    def overtake(name: str) -> None:
        nonlocal overtaken
        if name == point:
            overtaken += 1
            failpoints.arm()
            ticking._look_on(environment_id())
            failpoints.arm(overtake)

    seen = []
    for _ in range(12):
        failpoints.arm(overtake)
        rollout_tick(environment_id=environment_id())
        failpoints.arm()
        build(environment_id=environment_id())
        fleet.look()
        fleet.settle()
        row = Rollout.objects.get()
        seen.append((row.step, RolloutPick.objects.filter(step=row.step).count()))

    assert overtaken > 3
    assert list(dict.fromkeys(seen)) == [(0, 2), (1, 2), (2, 0)]
    assert len(set(fleet.has("shop").values())) == 1
