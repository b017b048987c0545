"""Who takes a revision out of service for all: never one identity, and nobody what others acknowledged.

The real catalogue, builder, buffer and database (SQLite and PostgreSQL).
"""

from datetime import timedelta

import pytest
from django.db import models

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Environment, Quarantine
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.selectors import VerdictView, incident_get
from controlplane.incidents.services import digest
from tests.services.incidents.fleet import DANA, Fleet, held, publish
from tests.support.manifests import cluster
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

NO = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
EACH_ITS_OWN = "spiffe://shop/{number}"
shared = pytest.mark.parametrize("identity", ["", "spiffe://shop/everybody"], ids=["none", "one identity"])


@pytest.fixture(autouse=True)
def _automatic(database: str) -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)


def refuse(fleet: Fleet, number: int = 1) -> None:
    fleet.refuse(fleet.send(held("pay", number)), NO, suspects=(held("pay", number),))


def a_minute_later() -> None:
    """The same facts, judged when nobody is waited for any more."""
    ago = timedelta(seconds=60)
    Incident.objects.update(judged_at=None, first_at=models.F("first_at") - ago)
    IncidentClient.objects.update(first_at=models.F("first_at") - ago, last_at=models.F("last_at") - ago)
    digest()


def verdict() -> VerdictView:
    found = incident_get(public_id=str(Incident.objects.get().public_id)).verdict
    assert found is not None
    return found


@shared
def test_automatic__sole_client_refuses_a_new_resource__it_stays_for_those_that_come_later(identity: str) -> None:
    publish(cluster("pay"))
    refuse(Fleet(1, identity=identity))

    digest()
    a_minute_later()

    assert not Quarantine.objects.exists()
    assert verdict().suggested
    assert verdict().reason == "1 of 1 clients refused it; it is the only client, so that a person decides"


@shared
def test_automatic__two_invented_nodes_of_one_identity__take_nothing_from_ten_that_acknowledged(identity: str) -> None:
    others, invented = Fleet(10, identity=identity), Fleet(2, identity=identity, first=50)
    publish(cluster("pay"))
    others.accept(held("pay", 1))
    invented.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    others.accept(held("pay", 2))
    refuse(invented, 2)

    digest()
    a_minute_later()

    assert not Quarantine.objects.exists()
    assert verdict().suggested
    assert verdict().reason.startswith("10 clients acknowledged r2; 2 refuse it")


def test_automatic__as_many_acknowledged_as_identities_refuse__a_person_decides() -> None:
    takers, refusers = Fleet(3, identity=EACH_ITS_OWN), Fleet(3, identity=EACH_ITS_OWN, first=50)
    publish(cluster("pay"))
    takers.accept(held("pay", 1))
    refuse(refusers)

    digest()
    a_minute_later()

    assert not Quarantine.objects.exists()
    assert verdict().reason.startswith("3 clients acknowledged r1; 3 refuse it")


def test_automatic__who_may_not_read_it_acknowledged_that__is_no_ack_of_it() -> None:
    denied, refusers = Fleet(9, identity=EACH_ITS_OWN), Fleet(2, identity="spiffe://other/{number}", first=50)
    taker = Fleet(1, identity="spiffe://other/taker", first=90)
    shop = GroupDraft("shop", (Selector(identity="spiffe://shop/*"),), Trust.VERIFIED)
    group_create(environment_key="default", draft=shop, actor=DANA)
    rule_create(environment_key="default", draft=RuleDraft(Effect.DENY, "pay", client_groups=("shop",)), actor=DANA)
    publish(cluster("pay"), cluster("ledger"))
    denied.accept(held("ledger", 1))
    taker.accept(held("pay", 1), held("ledger", 1))
    refuse(refusers)

    digest()
    a_minute_later()

    assert Quarantine.objects.get().reason == "automatic: 2 of 12 clients refused it"
    assert (Incident.objects.get().nacked, Incident.objects.get().sent) == (2, 3)


def test_automatic__two_identities_refuse_what_nobody_acknowledged__is_out_of_service_at_once() -> None:
    publish(cluster("pay"))
    refuse(Fleet(2, identity=EACH_ITS_OWN))

    digest()

    assert Quarantine.objects.get().reason == "automatic: 2 of 2 clients refused it"


def test_automatic__who_was_sent_it_may_still_acknowledge_it__is_waited_for() -> None:
    silent, refusers = Fleet(2, identity=EACH_ITS_OWN), Fleet(2, identity=EACH_ITS_OWN, first=50)
    publish(cluster("pay"))
    silent.send(held("pay", 1))
    refuse(refusers)

    digest()
    early = (Quarantine.objects.count(), verdict().reason)
    a_minute_later()

    assert early == (0, "2 of 4 clients refused it; 2 that were sent it may still acknowledge it")
    assert Quarantine.objects.get().reason == "automatic: 2 of 4 clients refused it"


def test_automatic__refuser_acknowledges_what_stands_in__is_no_ack_of_what_it_refused() -> None:
    fleet = Fleet(2, identity=EACH_ITS_OWN)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    refuse(fleet, 2)
    # The overlay: each goes on with r1, beside something newer.
    fleet.accept(held("pay", 1))

    digest()

    assert Quarantine.objects.get().reason == "automatic: 2 of 2 clients refused it"
