"""Refusals of what only the candidate side of a rollout has: its rollout decides (rollouts.md R7)."""

import pytest

from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Environment, Quarantine
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from controlplane.incidents.values import IncidentState
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.manifests import cluster
from tests.support.sides import PILOT, opened, promoted, rollouts

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
EACH_ITS_OWN = "spiffe://shop/{number}"


@pytest.mark.parametrize("staged", [True, False])
def test_digest__everybody_who_was_asked_refuses_a_candidate__is_an_incident_and_no_quarantine(staged: bool) -> None:
    fleet = Fleet(4, identity=EACH_ITS_OWN)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    digest()
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    if staged:
        rollouts(PILOT)
    publish(cluster("pay", connect_timeout="2s"))
    if staged:
        opened()
        rebuild()

    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), who=slice(3))
    digest()

    incident = Incident.objects.get()
    assert (incident.name, incident.revision, incident.nacked) == ("pay", 2, 3)
    assert incident.verdict == "fail"
    assert incident.verdict_asks is not staged
    assert Quarantine.objects.exists() is not staged


def test_digest__a_candidate_stands_in_for_what_is_refused__the_incident_is_over_once_it_is_promoted() -> None:
    fleet = Fleet(4)
    publish(cluster("pay"))
    fleet.refuse(fleet.send(held("pay", 1)), BAD, suspects=(held("pay", 1),))
    digest()
    rollouts(PILOT)
    publish(cluster("pay", connect_timeout="2s"))
    opened()
    rebuild()

    fleet.accept(held("pay", 2), who=slice(1))
    digest()
    on_the_candidate_side = Incident.objects.get().state
    promoted()
    rebuild()
    digest()

    assert on_the_candidate_side != IncidentState.RESOLVED.value
    assert Incident.objects.get().state == IncidentState.RESOLVED.value
