"""What one data plane can make of incidents: its own share, and never what others need.

The real catalogue, builder, buffer, digest and database (SQLite and PostgreSQL).
"""

import random
import string
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from adsserver.engine.events import NamedContent, Respond
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Environment, Quarantine
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.selectors import incident_get
from controlplane.incidents.services import digest
from controlplane.incidents.services.judging import incidents_judge
from controlplane.incidents.services.pruning import incidents_prune
from controlplane.incidents.values import CROWDED, UNRESOLVED, IncidentState
from controlplane.journal.models import AuditEvent
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.models import Channel, Delivery, Notification
from controlplane.notify.services.expanding import notifications_expand
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
    return "".join(random.Random(number).choices(string.ascii_lowercase, k=12))  # noqa: S311 - the same in every run


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


def tell_all() -> None:
    while notifications_expand():
        pass


def unresolved() -> list[Incident]:
    return list(Incident.objects.filter(cause="nack", state__in=UNRESOLVED).order_by("pk"))


def test_flood__of_one_identity__a_bad_revision_is_named_quarantined_and_told() -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    mad = Fleet(1, identity=MAD)
    others = [Fleet(1, identity=f"spiffe://demo/{name}", first=10 + at) for at, name in enumerate("abc")]
    publish(cluster("pay"), cluster("edge"))
    for each in (mad, *others):
        each.accept(held("pay", 1), held("edge", 1))
    publish(cluster("pay", connect_timeout="2s"), cluster("edge", connect_timeout="2s"))
    both = (held("pay", 2), held("edge", 2))
    response = mad.send(*both)
    rave(mad, response, suspects=both, words=WORDS // 2)
    rave(mad, response, suspects=both[:1], words=WORDS // 2, first=WORDS)
    before = time.process_time()
    digest_all()
    measured(words=WORDS, digest_cpu_s=time.process_time() - before, incidents=Incident.objects.count())

    for each in others:
        each.refuse(each.send(*both), f"no {each.streams[0].node_id}", suspects=both[:1])
    digest_all()
    while notifications_expand():
        pass

    incident = Incident.objects.get(type="cluster", name="pay", state=IncidentState.OPEN)
    assert (incident.revision, incident.confidence) == (2, "only_change")
    assert incident.nacked >= 3
    quarantine = Quarantine.objects.get(released_at=None)
    assert (quarantine.cause, quarantine.revision.number) == ("automatic", 2)
    assert quarantine.incident == str(incident.public_id)
    titles = set(Notification.objects.filter(deliveries=None).values_list("kind", flat=True))
    assert {"incident.opened", "quarantine.opened"} <= titles


def test_words_without_end__of_one_revision_that_is_proven__are_one_incident() -> None:
    """What an identity says in however many words, and once more in each family's name, is one fault."""
    publish(cluster("pay"))
    fleet, core = Fleet(1, identity=MAD), Fleet(1, identity=MAD, first=2, user_agent="gRPC Go")
    rave(fleet, fleet.send(held("pay", 1)), suspects=(held("pay", 1),), words=40)
    rave(core, core.send(held("pay", 1)), suspects=(held("pay", 1),), words=2)

    digest_all()

    (incident,) = unresolved()
    assert (incident.name, incident.revision, incident.nacked) == ("pay", 1, 2)
    assert sum(row.count for row in IncidentClient.objects.all()) == 42


def test_words_that_tell__once_the_revision_is_proven__belong_to_its_incident(settings: Settings) -> None:
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    fleet = Fleet(3)
    response = fleet.send(*both)
    for at, said in enumerate(("alpha", "beta")):
        text = f"Error adding/updating cluster(s) pay: {said}"
        fleet.refuse(response, text, suspects=both, who=slice(at, at + 1))
    digest_all()
    assert [each.confidence for each in unresolved()] == ["named_in_text"] * 2

    fleet.refuse(fleet.send(both[0]), "gamma", suspects=both[:1], who=slice(2, 3))
    digest_all()
    fleet.refuse(response, "Error adding/updating cluster(s) pay: delta", suspects=both, who=slice(1, 2))
    digest_all()

    (incident,) = unresolved()
    assert (incident.name, incident.confidence) == ("pay", "only_change")
    because = AuditEvent.objects.get(verb="incident.resolved").detail["because"]
    assert because == "it is known by now, whatever clients say, that it is the cluster 'pay'"


def test_incidents__beyond_the_share_of_an_identity__are_one_that_names_the_resources(settings: Settings) -> None:
    limited(settings, incidents_per_identity=3)
    publish(cluster("pay"), cluster("edge"))
    fleet = Fleet(1, identity=MAD)
    both = (held("pay", 1), held("edge", 1))
    rave(fleet, fleet.send(*both), suspects=both, words=3)
    fleet.refuse(fleet.send(*both), "Error adding/updating cluster(s) edge: no", suspects=both)

    digest_all()

    *told_apart, crowd = unresolved()
    assert [each.opened_by for each in told_apart] == [f"id {MAD}"] * 3
    assert (crowd.normalised, crowd.name) == (CROWDED, "")
    assert incident_get(public_id=str(crowd.public_id)).suspects == ("edge",)
    assert crowd.clients.get().count == 1


def test_incidents__where_nothing_is_verified__count_by_address_whatever_the_node_ids(settings: Settings) -> None:
    limited(settings, incidents_per_identity=2)
    publish(cluster("pay"), cluster("edge"))
    fleet = Fleet(5)
    both = (held("pay", 1), held("edge", 1))
    response = fleet.send(*both)
    for number in range(5):
        fleet.refuse(response, word(number), suspects=both, who=slice(number, number + 1))

    digest_all()

    assert [(each.opened_by, each.normalised == CROWDED) for each in unresolved()] == [
        ("at 127.0.0.1", False),
        ("at 127.0.0.1", False),
        ("", True),
    ]


def test_resource__that_an_identity_named_beyond_its_share__has_its_incident_once_others_refuse_it(
    settings: Settings,
) -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    limited(settings, incidents_per_identity=1)
    mad = Fleet(1, identity=MAD)
    others = [Fleet(1, identity=f"spiffe://demo/{name}", first=10 + at) for at, name in enumerate("ab")]
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    for number, content in enumerate(both):
        mad.refuse(mad.send(content), word(number), suspects=(content,))
    digest_all()
    assert [each.name for each in unresolved()] == ["pay", ""]

    for each in others:
        each.refuse(each.send(*both), "no", suspects=both[1:])
    digest_all()

    named = Incident.objects.get(name="edge")
    assert (named.state, named.nacked) == ("open", 2)
    assert Quarantine.objects.get(released_at=None).incident == str(named.public_id)


def test_incidents__beyond_the_share__what_is_proven_takes_the_place_of_words_of_the_same_identity(
    settings: Settings,
) -> None:
    limited(settings, incidents_per_identity=3)
    publish(cluster("pay"), cluster("edge"), cluster("else"))
    fleet = Fleet(2, identity=MAD)
    others = (held("edge", 1), held("else", 1))
    rave(fleet, fleet.send(*others), suspects=others, words=5)
    digest_all()

    pay = held("pay", 1)
    fleet.refuse(fleet.send(pay), "no", suspects=(pay,))
    digest_all()

    named = Incident.objects.get(name="pay")
    assert (named.state, named.nacked) == ("open", 2)
    assert [each.normalised == CROWDED for each in unresolved()].count(False) == 3


def test_incidents__no_room_in_all__the_noisiest_identity_makes_it_for_others_and_never_the_other_way(
    settings: Settings,
) -> None:
    limited(settings, incidents_per_environment=6, incidents_per_identity=6)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    mad, other = Fleet(1, identity=MAD), Fleet(1, identity="spiffe://demo/a", first=2)
    rave(mad, mad.send(*both), suspects=both, words=8)
    digest_all()
    rave(other, other.send(*both), suspects=both, words=5, first=100)
    digest_all()
    rave(mad, mad.send(*both), suspects=both, words=8, first=200)
    digest_all()

    held_by = [each.opened_by for each in unresolved() if each.normalised != CROWDED]
    assert sorted(held_by) == ["id spiffe://demo/a"] * 3 + [f"id {MAD}"] * 3


def test_incidents__that_several_say_or_somebody_looks_after__make_room_for_nobody(settings: Settings) -> None:
    limited(settings, incidents_per_environment=4, incidents_per_identity=4)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    mad, same, other = (Fleet(1, identity=f"spiffe://demo/{at}", first=at) for at in (1, 2, 3))
    for text in ("alone", "looked after", "shared", "last"):
        mad.refuse(mad.send(*both), text, suspects=both)
    same.refuse(same.send(*both), "shared", suspects=both)
    digest_all()
    Incident.objects.filter(message="looked after").update(state=IncidentState.ACKNOWLEDGED.value)
    for number in range(3):
        other.refuse(other.send(*both), word(number), suspects=both)
        digest_all()

    told_apart = {each.message for each in unresolved() if each.normalised != CROWDED}
    assert told_apart == {"looked after", "shared", word(0), word(1)}


def test_incidents__resolved_and_refused_again__count_on_the_share_anew(settings: Settings) -> None:
    limited(settings, incidents_per_identity=2)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    fleet = Fleet(1, identity=MAD)
    response = fleet.send(*both)
    rave(fleet, response, suspects=both, words=2)
    digest_all()
    Incident.objects.update(state=IncidentState.RESOLVED.value)
    Incident.objects.update(first_at=timezone.now() - timedelta(hours=2))
    rave(fleet, response, suspects=both, words=2, first=50)
    digest_all()

    rave(fleet, response, suspects=both, words=2)
    digest_all()

    assert [each.normalised == CROWDED for each in unresolved()] == [False, False, True]


def test_incident__of_the_version_before__goes_on_and_resolves() -> None:
    publish(cluster("pay"), cluster("other"))
    fleet = Fleet(2)
    fleet.accept(held("pay", 1), held("other", 1))
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2)), "no", suspects=(held("pay", 2),), who=slice(1))
    digest_all()
    # As it was opened by its words.
    Incident.objects.update(algorithm="v1", fingerprint="0" * 32, opened_by="")

    fleet.refuse(fleet.send(held("pay", 2)), "not at all", suspects=(held("pay", 2),), who=slice(1, 2))
    digest_all()

    (incident,) = unresolved()
    assert (incident.algorithm, incident.nacked) == ("v1", 2)
    publish(cluster("pay", connect_timeout="5s"))
    fleet.accept(held("pay", 3))
    digest_all()
    assert unresolved() == []


def test_incident__of_the_version_before_and_resolved__comes_back_with_the_same_words() -> None:
    publish(cluster("pay"))
    fleet = Fleet(2)
    pay = held("pay", 1)
    response = fleet.send(pay)
    fleet.refuse(response, "no", suspects=(pay,), who=slice(1))
    digest_all()
    IncidentClient.objects.update(accountable="")
    Incident.objects.update(algorithm="v1", fingerprint="0" * 32, opened_by="", state=IncidentState.RESOLVED.value)

    fleet.refuse(response, "no", suspects=(pay,))
    digest_all()

    (incident,) = Incident.objects.all()
    assert (incident.algorithm, incident.state, incident.nacked) == ("v1", "open", 2)
    assert incident.opened_by == "at 127.0.0.1"


def test_incidents__opened_and_resolved_over_and_over__are_spent_for_an_hour(settings: Settings) -> None:
    limited(settings, incidents_per_identity=2)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    fleet = Fleet(1, identity=MAD)
    response = fleet.send(*both)
    for turn in range(3):
        rave(fleet, response, suspects=both, words=2, first=10 * turn)
        digest_all()
        Incident.objects.exclude(normalised=CROWDED).update(state=IncidentState.RESOLVED.value)

    assert Incident.objects.exclude(normalised=CROWDED).count() == 2
    Incident.objects.update(first_at=timezone.now() - timedelta(hours=2))
    rave(fleet, response, suspects=both, words=2, first=100)
    digest_all()
    assert Incident.objects.exclude(normalised=CROWDED).count() == 4


def test_incidents__resolved_ones__are_remembered_in_fair_shares(settings: Settings) -> None:
    limited(settings, resolved_incidents_per_environment=4)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    mad, other = Fleet(1, identity=MAD), Fleet(1, identity="spiffe://demo/a", first=2)
    rave(other, other.send(*both), suspects=both, words=1)
    rave(mad, mad.send(*both), suspects=both, words=8, first=10)
    digest_all()
    Incident.objects.update(state=IncidentState.RESOLVED.value)

    assert incidents_prune() == 5

    remembered = Counter(Incident.objects.values_list("opened_by", flat=True))
    assert remembered == {f"id {MAD}": 3, "id spiffe://demo/a": 1}


@pytest.mark.parametrize("verified", [True, False])
def test_incident__told_beyond_the_share_of_who_opened_it__is_told_when_others_refuse_it(
    settings: Settings, verified: bool
) -> None:
    limited(settings, messages_per_identity_h=1)
    Channel.objects.create(name="ops", kind=ChannelKind.MAIL.value, target="ops@example.com")
    publish(cluster("pay"), cluster("edge"))
    mad = Fleet(1, identity=MAD if verified else "")
    other = Fleet(1, identity="spiffe://demo/pay" if verified else "", first=2, address="192.0.2.7")
    for content in (held("pay", 1), held("edge", 1)):
        mad.refuse(mad.send(content), "no", suspects=(content,))
    digest_all()
    tell_all()
    edge = Incident.objects.get(name="edge")
    assert not Delivery.objects.filter(notification__subject=f"incident/{edge.public_id}").exists()

    other.refuse(other.send(held("edge", 1)), "no", suspects=(held("edge", 1),))
    other.refuse(other.send(held("pay", 1)), "no", suspects=(held("pay", 1),))
    digest_all()
    tell_all()

    counted = Counter(Delivery.objects.values_list("notification__subject", flat=True))
    pay = Incident.objects.get(name="pay")
    assert counted == {f"incident/{pay.public_id}": 1, f"incident/{edge.public_id}": 1}
    [text] = Delivery.objects.filter(notification__subject=f"incident/{edge.public_id}").values_list(
        "notification__text", flat=True
    )
    assert "2 of 2" in str(text)


def test_incident__node_ids_without_end__are_counted_up_to_a_share_and_leave_others_theirs(settings: Settings) -> None:
    limited(settings, incident_clients_per_identity=3)
    publish(cluster("pay"))
    mad, other = Fleet(6, identity=MAD), Fleet(2, identity="spiffe://demo/pay", first=10)
    pay = held("pay", 1)
    response = mad.send(pay)
    for who in (slice(2), slice(2, 6)):
        mad.refuse(response, "no", suspects=(pay,), who=who)
        digest_all()
    mad.refuse(response, "no", suspects=(pay,))

    other.refuse(other.send(pay), "no", suspects=(pay,))
    digest_all()

    counted = Counter(IncidentClient.objects.values_list("accountable", flat=True))
    assert counted == {f"id {MAD}": 3, "id spiffe://demo/pay": 2}
    assert Incident.objects.get().nacked == 5
    assert max(IncidentClient.objects.values_list("count", flat=True)) == 2


def test_judging__many_incidents_of_one_identity__those_of_others_do_not_wait_behind_them() -> None:
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    mad, quiet = Fleet(1, identity=MAD), Fleet(1, identity="spiffe://demo/quiet", first=10)
    response = mad.send(*both)
    for number in range(30):
        said = f"Error adding/updating cluster(s) pay: {word(number)}"
        mad.buffer.learnt(mad.streams[0], rejected(response, said, suspects=both))
    mad.write()
    digest_all()
    quiet.refuse(quiet.send(*both), "Error adding/updating cluster(s) edge: no", suspects=both)
    digest_all()
    Incident.objects.update(judged_at=None)
    seconds = count()

    incidents_judge(clock=lambda: float(next(seconds)))

    assert Incident.objects.get(name="edge").judged_at is not None
    assert 0 < Incident.objects.exclude(judged_at=None).count() < 10
