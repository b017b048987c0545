"""What one data plane can make of incidents: its own share, and never what others need.

The real catalogue, builder, buffer, digest and database (SQLite and PostgreSQL).
"""

import random
import string
import time
from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from adsserver.engine.events import NamedContent, Respond
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Environment, Quarantine
from controlplane.databases import READER
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.selectors import incident_get
from controlplane.incidents.services import digest
from controlplane.incidents.values import CROWDED, UNRESOLVED, IncidentState
from controlplane.journal.models import AuditEvent
from controlplane.notify.models import Notification
from controlplane.notify.services import notify
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.facts import rejected
from tests.support.figures import measured
from tests.support.manifests import cluster

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

MAD = "spiffe://demo/mad"
WORDS = 1_500


def word(number: int) -> str:
    """A word of letters alone: numbers are noise to a fingerprint."""
    return "".join(random.Random(number).choices(string.ascii_lowercase, k=12))


def rave(fleet: Fleet, response: Respond, *, suspects: tuple[NamedContent, ...], words: int, first: int = 0) -> None:
    """The first client of this fleet refuses a response over and over, each time in other words about other names."""
    for number in range(first, first + words):
        said = f"Error adding/updating cluster(s) {word(number)}: {word(-number)}"
        fleet.buffer.learnt(fleet.streams[0], rejected(response, said, suspects=suspects))
    fleet.write()


def limited(settings: Settings, **limits: int) -> None:
    settings.PARLEY = replace(settings.PARLEY, limits=replace(settings.PARLEY.limits, **limits))


def digest_all() -> None:
    while digest():
        pass


def unresolved() -> list[Incident]:
    return list(Incident.objects.filter(cause="nack", state__in=UNRESOLVED).order_by("pk"))


@pytest.mark.parametrize("proven", [True, False])
def test_flood__of_one_identity__a_bad_revision_is_named_quarantined_and_told(proven: bool) -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    mad = Fleet(1, identity=MAD)
    others = [Fleet(1, identity=f"spiffe://demo/{name}", first=10 + at) for at, name in enumerate("abc")]
    publish(cluster("pay"), cluster("edge"))
    for each in (mad, *others):
        each.accept(held("pay", 1), held("edge", 1))
    publish(cluster("pay", connect_timeout="2s"), cluster("edge", connect_timeout="2s"))
    both = (held("pay", 2), held("edge", 2))
    rave(mad, mad.send(*both), suspects=both[:1] if proven else both, words=WORDS)
    before = time.perf_counter()
    digest_all()
    took_s = time.perf_counter() - before
    measured(proven=proven, words=WORDS, digest_s=round(took_s, 2), incidents=Incident.objects.count())

    for each in others:
        each.refuse(each.send(*both), f"no {each.streams[0].node_id}", suspects=both[:1])
    digest_all()
    notify()

    incident = Incident.objects.get(type="cluster", name="pay", state=IncidentState.OPEN)
    assert (incident.revision, incident.confidence) == (2, "only_change")
    assert incident.nacked >= 3
    quarantine = Quarantine.objects.get(released_at=None)
    assert (quarantine.cause, quarantine.revision.number) == ("automatic", 2)
    assert quarantine.incident == str(incident.public_id)
    titles = set(Notification.objects.filter(deliveries=None).values_list("kind", flat=True))
    assert {"incident.opened", "quarantine.opened"} <= titles
