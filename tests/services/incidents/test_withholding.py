"""A revision that some clients take and others refuse, with nothing older to go back to (F18a, decisions C10, N4)."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Environment, Quarantine
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest, incident_quarantine
from controlplane.incidents.services.judging import incidents_judge
from controlplane.snapshots.selectors import snapshot_of_name
from controlplane.status.selectors import standings_of
from controlplane.status.values import Status
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.facts import probed
from tests.support.manifests import cluster
from tests.support.principals import somebody
from xdscore.client_kinds import ClientFamily, ClientKind
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER
from xdscore.snapshot import Served, WithheldName, client_mark

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

OPAL = somebody("opal", ADMIN_SCOPES)
GRPC, ENVOY = "grpc-core 1.85", "envoy 1.40"
EACH_ITS_OWN = "spiffe://shop/{number}"
NO = "xDS response validation errors: [resource index 0: pay: INVALID_ARGUMENT: unsupported]"


def grpc(count: int, *, identity: str = "", version: str = "C-core 1.85.1", first: int = 10) -> Fleet:
    return Fleet(count, identity=identity, user_agent="gRPC C-core linux Python", version=version, first=first)


def published() -> Served | WithheldName | None:
    rebuild()
    snapshot = snapshot_of_name(environment_key="default", kind=CLUSTER, name="pay")
    assert snapshot is not None
    state = snapshot.type_state(CLUSTER)
    return state.served.get("pay") or state.withheld.get("pay")


def refuse(fleet: Fleet, who: slice = slice(None)) -> None:
    fleet.refuse(fleet.send(held("pay", 1)), NO, suspects=(held("pay", 1),), who=who)
    digest()


def quarantine() -> None:
    incident = Incident.objects.order_by("-last_at")[0]
    incident_quarantine(public_id=str(incident.public_id), reason="refused", actor=OPAL, request_id="")


def standing() -> tuple[Status, str]:
    found = standings_of(environment_key="default", keys=[("cluster", "pay")])["cluster", "pay"].status
    return found.status, found.reason


def test_quarantine__others_acknowledged_it__is_withheld_from_the_kind_that_refuses(database: str) -> None:
    envoys, clients = Fleet(2), grpc(2)
    publish(cluster("pay"))
    envoys.accept(held("pay", 1))
    refuse(clients)

    quarantine()
    entry = published()

    assert isinstance(entry, WithheldName)
    assert (entry.kinds, entry.reason) == ((GRPC,), "rejected by clients of this kind")
    assert entry.content is not None
    snapshot = snapshot_of_name(environment_key="default", kind=CLUSTER, name="pay")
    assert snapshot is not None
    assert snapshot.audience(ClientFacts(kind=ClientKind(ClientFamily.GRPC_CORE, "1.85"))).kind == GRPC
    status, reason = standing()
    assert status is Status.WITHHELD
    assert GRPC in reason


def test_quarantine__nobody_acknowledged_it__is_withheld_from_everybody_until_somebody_does(database: str) -> None:
    clients, envoys = grpc(2), Fleet(1)
    publish(cluster("pay"))
    refuse(clients)
    quarantine()
    before = published()

    # One that was sent it before warms for a while, and acknowledges late.
    envoys.accept(held("pay", 1))
    digest()
    after = published()

    assert before == WithheldName("rejected by clients")
    assert isinstance(after, WithheldName)
    assert after.kinds == (GRPC,)


def test_automatic__another_client_tries_it_and_takes_it__the_quarantine_ends(database: str) -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    clients = grpc(2, identity=EACH_ITS_OWN)
    publish(cluster("pay"))
    refuse(clients)
    entry = published()
    assert isinstance(entry, WithheldName)
    assert (entry.kinds, len(entry.refusers)) == ((), 2)
    assert client_mark(ClientFacts("spiffe://shop/other")) not in entry.refusers

    newcomer = grpc(1, identity="spiffe://shop/other")
    newcomer.learn(probed(newcomer.send(held("pay", 1))))
    digest()

    # Two refused it; but they must not keep it from all that come later, and one more may never come.
    assert isinstance(published(), Served)
    row = Quarantine.objects.get()
    assert row.released_by == SYSTEM.name

    # The two who refused it say that they are of another kind: one revision is one incident, whoever refuses it.
    go = Fleet(2, identity=EACH_ITS_OWN, user_agent="gRPC Go", version="1.85.0", first=10)
    refuse(go)
    assert (Incident.objects.get(revision=1).nacked, Incident.objects.get(revision=1).verdict) == (2, "fail")
    assert isinstance(published(), Served)


def test_automatic__who_refused_it_takes_it_later__counts_for_nothing(database: str) -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    clients = grpc(2, identity=EACH_ITS_OWN)
    publish(cluster("pay"))
    refuse(clients)
    published()

    clients.learn(probed(clients.send(held("pay", 1))))
    digest()

    assert Quarantine.objects.get().accepted_by == {}
    assert Quarantine.objects.get().released_at is None


def test_quarantine__another_kind_refuses_it_later__is_withheld_from_both(database: str) -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    go = Fleet(2, identity=EACH_ITS_OWN, user_agent="gRPC Go", version="1.85.0", first=30)
    clients = grpc(5, identity=EACH_ITS_OWN)
    envoys = Fleet(2, identity=EACH_ITS_OWN)
    publish(cluster("pay"))
    envoys.accept(held("pay", 1))
    digest()
    refuse(clients)
    first = published()
    refuse(go)
    incidents_judge()
    second = published()

    assert isinstance(first, WithheldName)
    assert isinstance(second, WithheldName)
    assert (first.kinds, second.kinds) == ((GRPC,), (GRPC, "grpc-go 1.85"))


def test_automatic__newcomer_that_proved_nothing_takes_it__may_be_one_who_refused_it(database: str) -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    publish(cluster("pay"))
    refuse(grpc(2, identity=EACH_ITS_OWN))
    published()

    newcomer = grpc(1)
    newcomer.learn(probed(newcomer.send(held("pay", 1))))
    digest()

    assert Quarantine.objects.get().accepted_by == {}
    assert Quarantine.objects.get().released_at is None


@pytest.mark.parametrize("identity", ["", "spiffe://shop/one"])
def test_quarantine__one_identity_refuses_it_later_as_another_kind__that_kind_goes_on(
    database: str, identity: str
) -> None:
    takers, clients = grpc(2, identity=EACH_ITS_OWN, version="C-core 1.99.0", first=1), grpc(2, identity=EACH_ITS_OWN)
    publish(cluster("pay"))
    takers.accept(held("pay", 1))
    refuse(clients)
    quarantine()

    # Any client can say that it is of the newer kind, and be as many as it likes.
    refuse(grpc(5, identity=identity, version="C-core 1.99.0", first=50))
    incidents_judge()

    entry = published()
    assert isinstance(entry, WithheldName)
    assert entry.kinds == (GRPC,)


def test_quarantine__earlier_revision_was_proven__is_served_to_every_kind(database: str) -> None:
    envoys, clients = Fleet(2), grpc(2)
    publish(cluster("pay"))
    envoys.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    clients.refuse(clients.send(held("pay", 2)), NO, suspects=(held("pay", 2),))
    digest()
    quarantine()

    entry = published()

    assert isinstance(entry, Served)
    assert standing()[0] is Status.QUARANTINED
