"""A pilot: no change reaches the fleet before a real client of every kind took it."""

import pytest

from controlplane.catalog.models import Quarantine, Revision
from controlplane.database.aliases import READER
from controlplane.incidents.selectors import incidents_of_name
from controlplane.rollouts.selectors import stops_of_changes
from controlplane.rollouts.values import Outcome, ResourceOutcome, RolloutState
from tests.services.rollouts.clients import ENVOY, GO, Fleet, go_on, rollout_now, switch_on, write
from tests.support.manifests import cluster

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]


def version(name: str, number: int) -> str:
    return Revision.objects.get(resource__name=name, number=number).version


def test_pilot__every_kind_takes_it__reaches_everybody(fleet: Fleet) -> None:
    for number in range(4):
        fleet.join(f"envoy-{number}", agent=ENVOY)
        fleet.join(f"go-{number}", "pay", agent=GO)
    write(cluster("pay"))
    go_on(fleet)
    switch_on()

    write(cluster("pay", connect_timeout="2s"))
    go_on(fleet, until=lambda: bool(fleet.saw("pay", version("pay", 2))))

    asked = fleet.saw("pay", version("pay", 2))
    assert sorted(node.split("-")[0] for node in asked) == ["envoy", "go"]

    go_on(fleet)

    view = rollout_now()
    assert (view.state, view.outcome) == (RolloutState.DONE, Outcome.PASS)
    assert set(fleet.has("pay").values()) == {version("pay", 2)}
    assert [each.outcome for each in view.resources] == [ResourceOutcome.PROMOTED]


def test_pilot__one_kind_refuses__is_taken_back_and_the_rest_goes_on(fleet: Fleet) -> None:
    for number in range(3):
        fleet.join(f"envoy-{number}", agent=ENVOY)
        fleet.join(f"go-{number}", "pay", "shop", agent=GO)
    write(cluster("pay"), cluster("shop"))
    go_on(fleet)
    for number in range(3):
        fleet.members[f"go-{number}"].refuses = frozenset({"pay"})
    switch_on()

    change = write(cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))
    go_on(fleet)

    view = rollout_now()
    bad = version("pay", 2)
    assert view.state is RolloutState.DONE
    assert [(each.name, each.outcome) for each in view.resources] == [
        ("pay", ResourceOutcome.REVERTED),
        ("shop", ResourceOutcome.PROMOTED),
    ]
    # One Envoy, and two of gRPC, because one client's word is not a fleet's (R8).
    assert len([node for node in fleet.saw("pay", bad) if node.startswith("go")]) == 2
    assert len([node for node in fleet.saw("pay", bad) if node.startswith("envoy")]) == 1
    assert set(fleet.has("pay").values()) == {version("pay", 1)}
    assert set(fleet.has("shop").values()) == {version("shop", 2)}
    [incident] = incidents_of_name(environment_key="default", word="cluster", name="pay")
    assert view.reverted[0].incident == incident.id
    quarantine = Quarantine.objects.get(released_at=None)
    assert (quarantine.cause, quarantine.incident) == ("rollout", incident.id)
    assert stops_of_changes(change_ids=[change])[change].incidents == (incident.id,)
