"""What operators do about an incident."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Environment, Quarantine
from controlplane.common.errors import Conflict, NotFound
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import incident_get, incident_list
from controlplane.incidents.services import digest, incident_quarantine, incident_release, incident_set_state
from controlplane.incidents.values import IncidentState
from controlplane.journal.models import AuditEvent
from controlplane.snapshots.selectors import snapshot_heads
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.manifests import cluster
from tests.support.principals import somebody

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

OPAL = somebody("opal", ADMIN_SCOPES)
BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"


@pytest.fixture
def fleet(database: str) -> Fleet:
    """Two clients that run r1 of `pay`; the first refused r2."""
    two = Fleet(2, identity="spiffe://shop/{number}")
    publish(cluster("pay"))
    two.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    two.refuse(two.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), who=slice(1))
    digest()
    return two


def the_id() -> str:
    return str(Incident.objects.get(state=IncidentState.OPEN.value).public_id)


def quarantined() -> bool:
    return incident_get(public_id=the_id()).quarantined


def test_incident_quarantine__then_a_build__serves_the_last_acknowledged_revision(fleet: Fleet) -> None:
    before = snapshot_heads()[0].root

    made = incident_quarantine(public_id=the_id(), reason="breaks pay", actor=OPAL, request_id="r-1")
    rebuild()

    assert (made.changed, quarantined()) == (True, True)
    (row,) = Quarantine.objects.all()
    assert (row.cause, row.opened_by, row.incident) == ("operator", "opal", the_id())
    assert snapshot_heads()[0].root != before
    again = incident_quarantine(public_id=the_id(), reason="breaks pay", actor=OPAL, request_id="r-2")
    assert not again.changed


def test_incident_release__revision_is_served_again_and_never_quarantined_automatically(fleet: Fleet) -> None:
    incident_quarantine(public_id=the_id(), reason="breaks pay", actor=OPAL, request_id="")
    incident_release(public_id=the_id(), reason="we need it", actor=OPAL, request_id="")
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)

    for text in (BAD, "Error adding/updating cluster(s) pay: something else"):
        fleet.refuse(fleet.send(held("pay", 2)), text, suspects=(held("pay", 2),))
    digest()

    # One revision is one incident, in whatever words it is refused.
    assert Incident.objects.get().nacked == 2
    assert Quarantine.objects.filter(released_at=None).count() == 0


def test_incident_release__newer_revision_refused_too__policy_applies_to_that_one(fleet: Fleet) -> None:
    incident_release(public_id=the_id(), reason="we need it", actor=OPAL, request_id="")
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    publish(cluster("pay", connect_timeout="4s"))

    fleet.refuse(fleet.send(held("pay", 3)), BAD, suspects=(held("pay", 3),))
    digest()

    assert Quarantine.objects.get(released_at=None).revision.number == 3


def test_incident_quarantine__newer_revision_is_there__says_so_and_does_nothing(fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="9s"))

    with pytest.raises(Conflict, match="r3 is"):
        incident_quarantine(public_id=the_id(), reason="late", actor=OPAL, request_id="")

    assert not Quarantine.objects.exists()


def test_incident_quarantine__nobody_named__says_so(database: str) -> None:
    fleet = Fleet(1)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    fleet.refuse(fleet.send(*both), "Invalid duration", suspects=both)
    digest()

    with pytest.raises(Conflict, match="names no single revision"):
        incident_quarantine(public_id=the_id(), reason="all", actor=OPAL, request_id="")


@pytest.mark.parametrize("public_id", ["nonsense", "6f1f6d2e-7f6e-4d43-9a54-0d3a9a5d9a11"])
def test_incident_actions__unknown_id__not_found(database: str, public_id: str) -> None:
    for action in (incident_quarantine, incident_release):
        with pytest.raises(NotFound):
            action(public_id=public_id, reason="", actor=OPAL, request_id="")
    with pytest.raises(NotFound):
        incident_set_state(public_id=public_id, state=IncidentState.OPEN, actor=OPAL, request_id="")
    with pytest.raises(NotFound):
        incident_get(public_id=public_id)


def test_incident_set_state__allowed_and_not__is_audited_or_refused(fleet: Fleet) -> None:
    key = the_id()

    incident_set_state(public_id=key, state=IncidentState.ACKNOWLEDGED, actor=OPAL, request_id="r-7")
    incident_set_state(public_id=key, state=IncidentState.RESOLVED, actor=OPAL, request_id="r-8")

    detail = incident_get(public_id=key)
    assert (detail.incident.state, detail.resolved_epoch) == (IncidentState.RESOLVED, Environment.objects.get().epoch)
    with pytest.raises(Conflict, match="resolved cannot become acknowledged"):
        incident_set_state(public_id=key, state=IncidentState.ACKNOWLEDGED, actor=OPAL, request_id="")
    events = AuditEvent.objects.filter(subject=key).order_by("id").values_list("verb", "actor", "request_id")
    assert list(events) == [("incident.acknowledged", "opal", "r-7"), ("incident.resolved", "opal", "r-8")]


def test_incident_set_state__resolved_by_hand_while_clients_still_refuse__comes_back(fleet: Fleet) -> None:
    key = the_id()
    incident_set_state(public_id=key, state=IncidentState.RESOLVED, actor=OPAL, request_id="")
    digest()
    assert incident_get(public_id=key).incident.state is IncidentState.RESOLVED

    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), who=slice(1, 2))
    digest()

    assert incident_get(public_id=key).incident.state is IncidentState.OPEN


def test_incident_list__pages__from_the_one_behind(database: str) -> None:
    fleet = Fleet(1)
    publish(*(cluster(name) for name in "abcde"))
    for name in "abcde":
        fleet.refuse(fleet.send(held(name, 1)), f"broken {name}", suspects=(held(name, 1),))
    digest()

    first = incident_list(environment_keys=["default"], limit=2)
    rest = incident_list(environment_keys=["default"], after=first[-1].id)

    assert sorted(each.name for each in (*first, *rest)) == list("abcde")
