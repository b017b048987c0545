"""Every state that an environment, a resource in it and the change that wrote it last can be in: what makes it, and the
one word for each of the three.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import environment_update
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest, incident_quarantine, incident_release, incident_set_state
from controlplane.incidents.values import IncidentState
from controlplane.snapshots.rollback import environment_rollback
from controlplane.status.changes import Outcome
from controlplane.status.environments import Headline
from controlplane.status.values import Status
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.losses import lose
from tests.support.manifests import cluster, route
from xdscore.resource_types import CLUSTER, ROUTE

NAME: Final = "pay"


@dataclass
class Scene:
    """What a situation is made with. `change` is the id of the change that is asked about, empty for none."""

    fleets: list[Fleet] = field(default_factory=list)
    change: str = ""

    def fleet(self, count: int, **more: object) -> Fleet:
        """Clients that stay connected until `leave`."""
        self.fleets.append(Fleet(count, **more))  # type: ignore[arg-type]  # Fleet's own words
        return self.fleets[-1]

    def leave(self) -> None:
        """Everybody closes its stream."""
        for fleet in self.fleets:
            for each in fleet.streams:
                fleet.buffer.closed(each, "left")
            fleet.write()
        digest()


@dataclass(frozen=True)
class Situation:
    """`resource`: the word for `TYPE/pay`, None where it is not there, `count`: how many resources stand so; `change`:
    None where all is well with it.
    """

    make: Callable[[Scene], None]
    resource: Status | None
    environment: Headline
    change: Outcome | None
    word: str = CLUSTER.word
    count: int = 1


def _refuse(fleet: Fleet, number: int) -> None:
    text = f"Error adding/updating cluster(s) {NAME}: Invalid path: /no/such/ca.pem"
    fleet.refuse(fleet.send(held(NAME, number)), text, suspects=(held(NAME, number),))
    digest()


def _incident() -> str:
    return str(Incident.objects.get().public_id)


def _quarantine() -> None:
    incident_quarantine(public_id=_incident(), reason="breaks pay", actor=DANA, request_id="")
    rebuild()


def _hold() -> None:
    before = environment_get(key="default").policy
    policy = replace(before, hold="freeze")
    environment_update(key="default", policy=policy, before=before, actor=DANA, request_id="")
    rebuild()


def _lose(change: str) -> None:
    lose(change)
    digest()


def empty(scene: Scene) -> None:
    rebuild()
    scene.fleet(2)


def published(scene: Scene) -> None:
    fleet = scene.fleet(2)
    scene.change = publish(cluster(NAME))
    fleet.accept(held(NAME, 1))
    digest()


def waiting(scene: Scene) -> None:
    published(scene)
    scene.change = publish(cluster(NAME, connect_timeout="2s"), built=False)


def refused(scene: Scene) -> None:
    published(scene)
    scene.change = publish(cluster(NAME, connect_timeout="2s"))
    _refuse(scene.fleets[0], 2)


def refused_and_unnamed(scene: Scene) -> None:
    fleet = scene.fleet(2)
    scene.change = publish(cluster(NAME), cluster("other"))
    both = (held(NAME, 1), held("other", 1))
    fleet.refuse(fleet.send(*both), "Something is wrong", suspects=both)
    digest()


def quarantined(scene: Scene) -> None:
    refused(scene)
    _quarantine()


def released(scene: Scene) -> None:
    quarantined(scene)
    incident = _incident()
    incident_set_state(public_id=incident, state=IncidentState.RESOLVED, actor=DANA, request_id="")
    incident_release(public_id=incident, reason="it was the disk", actor=DANA, request_id="")


def withheld(scene: Scene) -> None:
    fleet = scene.fleet(2)
    scene.change = publish(cluster(NAME))
    _refuse(fleet, 1)
    _quarantine()


def withheld_from_a_kind(scene: Scene) -> None:
    takes = scene.fleet(2)
    refuses = scene.fleet(2, user_agent="gRPC C-core linux Python", version="C-core 1.85.1", first=10)
    scene.change = publish(cluster(NAME))
    takes.accept(held(NAME, 1))
    digest()
    _refuse(refuses, 1)
    _quarantine()


def stalled(scene: Scene) -> None:
    scene.fleet(2)
    scene.change = publish(route(NAME, "nowhere"))


def stalled_behind_another(scene: Scene) -> None:
    fleet = scene.fleet(2, kind=ROUTE)
    publish(cluster("there"), route(NAME, "there"))
    fleet.accept(held(NAME, 1))
    digest()
    scene.change = publish(route(NAME, "nowhere"))


def lost(scene: Scene) -> None:
    published(scene)
    _lose(scene.change)


def lost_and_withheld(scene: Scene) -> None:
    withheld(scene)
    _lose(scene.change)


def on_hold(scene: Scene) -> None:
    published(scene)
    _hold()


def on_hold_and_quarantined(scene: Scene) -> None:
    quarantined(scene)
    _hold()


def deleted(scene: Scene) -> None:
    published(scene)
    scene.change = publish(delete=(NAME,), built=False, losing=2)


def rolled_back(scene: Scene) -> None:
    published(scene)
    scene.change = publish(cluster(NAME, connect_timeout="2s"))
    environment_rollback(environment_key="default", to_epoch=1, reason="why", hold=False, actor=DANA)
    rebuild()


SITUATIONS: Final = (
    Situation(empty, None, Headline.EMPTY, None),
    Situation(published, Status.PUBLISHED, Headline.PUBLISHED, None),
    Situation(waiting, Status.WAITING, Headline.WAITING, Outcome.WAITING),
    Situation(refused, Status.REFUSED, Headline.REFUSED, Outcome.REFUSED),
    Situation(refused_and_unnamed, Status.PUBLISHED, Headline.REFUSED, Outcome.REFUSED, count=2),
    Situation(quarantined, Status.QUARANTINED, Headline.QUARANTINED, Outcome.QUARANTINED),
    Situation(released, Status.WAITING, Headline.WAITING, Outcome.WAITING),
    Situation(withheld, Status.WITHHELD, Headline.WITHHELD, Outcome.WITHHELD),
    Situation(withheld_from_a_kind, Status.WITHHELD, Headline.WITHHELD, Outcome.WITHHELD),
    Situation(stalled, Status.STALLED, Headline.STALLED, Outcome.STALLED, word=ROUTE.word),
    Situation(stalled_behind_another, Status.STALLED, Headline.STALLED, Outcome.STALLED, word=ROUTE.word),
    Situation(lost, Status.PUBLISHED, Headline.LOST, Outcome.LOST),
    Situation(lost_and_withheld, Status.WITHHELD, Headline.LOST, Outcome.LOST),
    Situation(on_hold, Status.PUBLISHED, Headline.HELD, None),
    Situation(on_hold_and_quarantined, Status.QUARANTINED, Headline.QUARANTINED, Outcome.QUARANTINED),
    Situation(deleted, None, Headline.WAITING, Outcome.WAITING),
    Situation(rolled_back, Status.PUBLISHED, Headline.PUBLISHED, Outcome.TAKEN_BACK),
)
