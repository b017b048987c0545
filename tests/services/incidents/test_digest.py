"""From a NACK to an incident, a quarantine and its end.

The real catalogue, builder, buffer and database (SQLite and PostgreSQL).
"""

from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from controlplane.builder.claims import claim
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.models import Environment, Quarantine
from controlplane.clients.models import Client, ContentProof, Nack
from controlplane.database.aliases import READER
from controlplane.incidents import services
from controlplane.incidents.attribution import Confidence
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.selectors import incident_get, incident_list, incidents_of_change
from controlplane.incidents.services import digest, incident_quarantine, recording
from controlplane.incidents.tasks import digest as digest_task
from controlplane.incidents.values import IncidentState
from controlplane.journal.models import AuditEvent, DomainEvent
from tests.services.incidents.fleet import DANA, Fleet, held, proven, publish, rebuild
from tests.support.manifests import cluster, endpoints
from xdscore.evidence import Evidence
from xdscore.resource_types import ENDPOINT

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
EACH_ITS_OWN = "spiffe://shop/{number}"
NAMELESS = "Invalid duration: Expected positive duration: goo.gle/debugonly    \nseconds: -1"


def only_incident() -> Incident:
    return Incident.objects.get(cause="nack")


def automatic() -> None:
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)


def broken_pay(fleet: Fleet) -> str:
    """r1 of `pay` and `other` is proven, r2 of `pay` is refused by the first client; the change that made r2."""
    publish(cluster("pay"), cluster("other"))
    fleet.accept(held("pay", 1), held("other", 1))
    digest()
    change = publish(cluster("pay", connect_timeout="2s"))
    response = fleet.send(held("pay", 2), held("other", 1))
    fleet.refuse(response, BAD, suspects=(held("pay", 2),), who=slice(1))
    return change


def test_digest__ack__proves_the_revision_once_and_empties_the_inbox() -> None:
    fleet = Fleet(3)
    publish(cluster("pay"))
    fleet.accept(held("pay", 1))

    assert digest() == 1
    assert digest() == 0

    assert proven("pay") == 1
    assert ContentProof.objects.count() == 0


def test_digest__whole_text_names_what_the_client_took_before__is_about_that_and_not_about_its_neighbour() -> None:
    fleet = Fleet(2)
    publish(cluster("pay"), cluster("other"))
    fleet.accept(held("pay", 1), held("other", 1))
    publish(cluster("other", connect_timeout="2s"))
    response = fleet.send(held("pay", 1), held("other", 2))
    # As a stream reports it (reliability N2).
    fleet.refuse(response, BAD, suspects=(held("pay", 1),), who=slice(1), evidence=Evidence.TEXT)

    digest()

    (incident,) = incident_list(environment_keys=["default"])
    assert (incident.name, incident.confidence, incident.message) == ("pay", Confidence.NAMED_IN_TEXT, BAD)


def test_digest__nack__names_resource_change_author_and_impact() -> None:
    fleet = Fleet(4)
    change = broken_pay(fleet)

    digest()

    (incident,) = incident_list(environment_keys=["default"])
    assert (incident.environment, incident.type, incident.name) == ("default", "cluster", "pay")
    assert (incident.state, incident.confidence) == (IncidentState.OPEN, Confidence.ONLY_CHANGE)
    assert (incident.change, incident.message) == (change, BAD)
    assert (incident.clients.nacked, incident.clients.sent) == (1, 4)
    detail = incident_get(public_id=incident.id)
    assert (detail.author, detail.revision, detail.family, detail.quarantined) == ("dana", 2, "envoy", False)
    assert [each.node_id for each in detail.refusing] == ["node-1"]
    assert [(each.text, each.suspects) for each in detail.samples] == [
        (BAD, (("pay", held("pay", 2).content.version),))
    ]
    assert incidents_of_change(change_id=change) == (incident,)
    assert incident_list(environment_keys=["other"]) == ()


@pytest.mark.parametrize(
    ("user_agent", "family"),
    [
        ("gRPC C-core linux Python", "grpc-core"),
        ("gRPC Go", "grpc-go"),
        ("gRPC Java", "grpc-java"),
        ("gRPC Node Pure JS", "grpc-node"),
        ("tonic-xds", "grpc-rust"),
        ("curl", "other"),
    ],
)
def test_digest__nack_of_any_family__client_and_incident_say_which(user_agent: str, family: str) -> None:
    fleet = Fleet(1, user_agent=user_agent)
    broken_pay(fleet)

    digest()

    (incident,) = incident_list(environment_keys=["default"])
    assert incident_get(public_id=incident.id).family == family
    assert Client.objects.get().family == family


def test_digest__incident_opens__people_are_told_of_all_that_were_sent_it() -> None:
    fleet = Fleet(4)
    broken_pay(fleet)

    digest()

    told = DomainEvent.objects.get(kind="incident.opened").payload
    assert (told["nacked"], told["sent"]) == (1, 4)


@pytest.mark.parametrize(("minutes_ago", "told"), [(0, 0), (2, 1)])
def test_digest__the_rest_of_the_fleet_refuses_too__is_news_once_the_first_wave_is_over(
    minutes_ago: int, told: int
) -> None:
    fleet = Fleet(20)
    broken_pay(fleet)
    digest()
    Incident.objects.update(first_at=timezone.now() - timedelta(minutes=minutes_ago))
    response = fleet.send(held("pay", 2))
    fleet.refuse(response, BAD, suspects=(held("pay", 2),), who=slice(1, 20))

    digest()

    escalated = DomainEvent.objects.filter(kind="incident.escalating")
    assert [event.payload["nacked"] for event in escalated] == [20] * told


def test_digest__run_twice__counts_nothing_twice() -> None:
    fleet = Fleet(2)
    broken_pay(fleet)

    digest()
    digest()

    row = IncidentClient.objects.get()
    assert (row.count, Nack.objects.filter(digested_at=None).count()) == (1, 0)


def test_digest__crash_before_the_commit__nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet(2)
    broken_pay(fleet)
    with monkeypatch.context() as patch:
        patch.setattr(recording, "_keep_samples", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(RuntimeError, match="killed"):
            digest()
    assert Incident.objects.count() == 0

    digest()

    assert IncidentClient.objects.get().count == 1


@pytest.mark.parametrize("wait_s", [0.0, 20.0])
def test_digest__while_another_process_digests__does_nothing_unless_it_is_to_wait(wait_s: float) -> None:
    broken_pay(Fleet(1))

    def other() -> int:
        try:
            return digest(wait_s=wait_s)
        finally:
            connections.close_all()  # a second connection, as a second process has

    with ThreadPoolExecutor(1) as pool:
        with claim("digest") as claimed:
            assert claimed
            result = pool.submit(other)
            wait([result], timeout=0.5)
            assert result.done() is (wait_s == 0.0)

        assert (result.result(20) > 0) is (wait_s > 0.0)
    digest_task()
    assert Incident.objects.count() == 1


def test_digest__same_fault_from_many__is_one_incident_with_bounded_samples() -> None:
    fleet = Fleet(40)
    publish(cluster("pay"))
    response = fleet.send(held("pay", 1))
    for number in range(40):
        text = f"Invalid duration: goo.gle/debug{'str' if number % 2 else 'only'}  \nseconds: -{number}"
        fleet.refuse(response, text, suspects=(held("pay", 1),), who=slice(number, number + 1))

    digest()

    incident = only_incident()
    assert (incident.nacked, incident.sent) == (40, 40)
    # They come from one address, which leaves room for what others say.
    assert len(incident_get(public_id=str(incident.public_id)).samples) == recording.SAMPLES_OF_ONE


def test_digest__one_of_two_changes__is_an_incident_without_a_name_until_they_are_told_apart() -> None:
    fleet = Fleet(1)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    fleet.refuse(fleet.send(*both), NAMELESS, suspects=both)
    digest()
    unnamed = only_incident()
    assert (unnamed.name, unnamed.confidence, unnamed.revision) == ("", "one_of", 0)
    assert incident_get(public_id=str(unnamed.public_id)).suspects == ("pay", "edge")

    fleet.refuse(fleet.send(both[1]), NAMELESS, suspects=(both[1],))  # the engine sent them apart
    digest()

    unnamed.refresh_from_db()
    assert unnamed.state == IncidentState.RESOLVED
    (named,) = incident_list(environment_keys=["default"], states=[IncidentState.OPEN])
    assert resolution()["because"] == "clients say by now which resource it is: the cluster 'edge'"
    assert resolution()["incident"] == named.id
    assert (named.name, named.confidence) == ("edge", Confidence.ONLY_CHANGE)


def resolution() -> dict[str, object]:
    """What is kept of how the only incident was resolved."""
    detail: dict[str, object] = AuditEvent.objects.get(verb="incident.resolved").detail
    return detail


def test_digest__suspects_that_all_moved_on__resolve_an_incident_without_a_name() -> None:
    fleet = Fleet(1)
    publish(cluster("pay"), cluster("edge"))
    both = (held("pay", 1), held("edge", 1))
    fleet.refuse(fleet.send(*both), NAMELESS, suspects=both)
    digest()
    publish(cluster("pay", connect_timeout="3s"))
    digest()
    assert only_incident().state == IncidentState.OPEN

    publish(delete=("edge",))
    digest()

    assert only_incident().state == IncidentState.RESOLVED
    assert str(resolution()["because"]).startswith("none of the resources that were suspected")


def test_digest__fixed_revision_acknowledged__resolves_in_that_epoch() -> None:
    fleet = Fleet(2)
    broken_pay(fleet)
    digest()
    publish(cluster("pay", connect_timeout="5s"))
    digest()
    assert only_incident().state == IncidentState.OPEN  # published, but nobody has accepted it yet

    fleet.accept(held("pay", 3))
    digest()

    incident = only_incident()
    assert (incident.state, incident.resolved_epoch) == (IncidentState.RESOLVED, Environment.objects.get().epoch)
    assert resolution()["because"] == "clients accept r3"
    assert resolution()["author"] == "dana"


def test_digest__resource_deleted_and_published__resolves() -> None:
    fleet = Fleet(2)
    broken_pay(fleet)
    digest()

    publish(delete=("pay",), built=False, losing=2)
    digest()
    assert only_incident().state == IncidentState.OPEN

    rebuild()
    digest()

    assert only_incident().state == IncidentState.RESOLVED
    assert resolution()["because"] == "it was deleted, and that is published"


def test_digest__reverted_to_what_a_quarantine_serves__resolves_without_a_new_ack() -> None:
    fleet = Fleet(2)
    broken_pay(fleet)
    digest()
    key = str(only_incident().public_id)
    incident_quarantine(public_id=key, reason="breaks pay", actor=DANA, request_id="")
    rebuild()
    digest()
    epoch = Environment.objects.get().epoch

    publish(cluster("pay"))
    digest()

    assert Environment.objects.get().epoch == epoch  # clients see no difference
    assert only_incident().state == IncidentState.RESOLVED
    assert resolution()["because"] == "clients accept r3"


def test_digest__old_revision_refused_after_the_fix__does_not_bring_the_incident_back() -> None:
    fleet = Fleet(3)
    broken_pay(fleet)
    digest()
    publish(cluster("pay", connect_timeout="5s"))
    fleet.accept(held("pay", 3))
    digest()

    late = fleet.send(held("pay", 2))
    fleet.refuse(late, BAD, suspects=(held("pay", 2),), who=slice(2, 3))
    digest()
    assert only_incident().state == IncidentState.RESOLVED

    change = publish(cluster("pay", connect_timeout="6s"))
    fleet.refuse(fleet.send(held("pay", 4)), BAD, suspects=(held("pay", 4),), who=slice(1))
    digest()

    incident = only_incident()
    assert (incident.state, incident.revision, incident.change) == (IncidentState.OPEN, 4, change)
    assert incident.resolved_epoch is None
    assert (incident.nacked, incident.sent) == (1, 3)  # of this revision


def test_digest__ignored_incident__counts_and_stays_ignored() -> None:
    fleet = Fleet(2)
    broken_pay(fleet)
    digest()
    Incident.objects.update(state=IncidentState.IGNORED.value)

    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),))
    digest()

    assert only_incident().state == IncidentState.IGNORED
    assert IncidentClient.objects.count() == 2


def test_digest__automatic_policy_and_enough_refusals__publishes_the_last_proven_revision() -> None:
    automatic()
    fleet = Fleet(4, identity=EACH_ITS_OWN)
    broken_pay(fleet)
    digest()
    assert not Quarantine.objects.exists()  # one of four

    response = fleet.send(held("pay", 2))
    fleet.refuse(response, BAD, suspects=(held("pay", 2),), who=slice(1, 3))
    digest()

    quarantine = Quarantine.objects.get(released_at=None)
    assert (quarantine.revision.number, quarantine.cause) == (2, "automatic")
    assert quarantine.reason == "automatic: 3 of 4 clients refused it"  # the fourth cannot outweigh them
    assert quarantine.incident == str(only_incident().public_id)
    rebuild()
    assert incident_get(public_id=quarantine.incident).quarantined
    digest()
    assert Quarantine.objects.count() == 1


def test_digest__clients_not_yet_sent_it__count_against_the_first_two() -> None:
    automatic()
    fleet = Fleet(100, identity=EACH_ITS_OWN)
    publish(cluster("pay"))
    quick = fleet.streams[:2]
    response = fleet.send(held("pay", 1), to=quick)
    fleet.refuse(response, BAD, suspects=(held("pay", 1),), who=slice(2))

    digest()

    assert not Quarantine.objects.exists()
    assert (only_incident().nacked, only_incident().sent) == (2, 2)


@pytest.mark.parametrize("policy", [QuarantinePolicy.OFF, QuarantinePolicy.SUGGEST])
def test_digest__policy_leaves_it_to_people__nothing_is_quarantined(policy: QuarantinePolicy) -> None:
    Environment.objects.update(quarantine=policy.value)
    fleet = Fleet(2)
    broken_pay(fleet)
    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),))

    digest()

    assert (only_incident().nacked, Quarantine.objects.count()) == (2, 0)


def test_digest__endpoints__are_tracked_but_never_quarantined_automatically() -> None:
    automatic()
    fleet = Fleet(2, kind=ENDPOINT, identity=EACH_ITS_OWN)
    publish(endpoints("pay", 80))
    fleet.refuse(fleet.send(held("pay", 1)), "malformed IP address", suspects=(held("pay", 1),))

    digest()

    assert (only_incident().type, only_incident().nacked, Quarantine.objects.count()) == ("endpoint", 2, 0)


def test_digest__client_forgotten__incident_still_says_who_refused() -> None:
    fleet = Fleet(1)
    broken_pay(fleet)
    digest()

    Client.objects.all().delete()

    detail = incident_get(public_id=str(only_incident().public_id))
    assert ([each.node_id for each in detail.refusing], detail.samples) == (["node-1"], ())


def test_services__are_what_the_doors_call() -> None:
    many = {"revisions_quarantine", "revisions_release"}
    acts = {"incident_quarantine", "incident_release", "incident_set_state", "quarantine_undo", "quarantine_undo_way"}
    agreed = {"incident_assign", "incident_mute", "incident_unmute", "incident_mended_next"}
    assert set(services.__all__) == {"digest"} | acts | many | agreed
