"""A change by which connected clients lost something: an incident once it is published, until it is taken back.

The real catalogue, builder and database (SQLite and PostgreSQL).
"""

from dataclasses import replace

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from controlplane.builder.selectors import change_progress
from controlplane.catalog.choices import QuarantinePolicy
from controlplane.catalog.guarding import Loss, LostName
from controlplane.catalog.models import Environment, Quarantine, Resource, Revision
from controlplane.catalog.selectors import change_get
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict
from controlplane.database.aliases import READER
from controlplane.incidents.filtering import IncidentFilter
from controlplane.incidents.models import Incident, IncidentClient
from controlplane.incidents.refusals import open_counts, refusals_of
from controlplane.incidents.selectors import (
    incident_get,
    incident_list,
    incidents_of_change,
    incidents_of_name,
    refused_and_lost,
)
from controlplane.incidents.services import (
    digest,
    incident_quarantine,
    incident_release,
    incident_set_state,
    losing,
)
from controlplane.incidents.settling import change_delivery
from controlplane.incidents.triage import incident_events, incident_page
from controlplane.incidents.values import IncidentCause, IncidentState
from controlplane.journal.models import DomainEvent
from controlplane.snapshots.rollback import environment_rollback
from controlplane.status.selectors import standings_of, with_status
from controlplane.status.values import Status
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.losses import LOSS, lose, take_back
from tests.support.manifests import cluster

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
_PAY = ("cluster", "pay")


def loss_incident() -> Incident:
    return Incident.objects.get(cause=IncidentCause.LOSS.value)


def told() -> list[tuple[str, str]]:
    """What became of losses, as events, oldest first."""
    events = DomainEvent.objects.filter(payload__cause="loss").order_by("pk")
    return [(event.kind, event.payload["change"]) for event in events]


def deletion(*, built: bool = True) -> str:
    """A change that deletes `pay`, by which clients lost something."""
    publish(cluster("pay"), cluster("other"))
    change = lose(publish(delete=("pay",), built=False))
    if built:
        rebuild()
    return change


def test_digest__a_published_change_took_something__one_run_opens_one_incident_that_says_who_what_and_by_whom() -> None:
    change = deletion()

    digest()
    digest()

    (incident,) = incident_list(environment_keys=["default"])
    assert (incident.cause, incident.state, incident.change) == (IncidentCause.LOSS, IncidentState.OPEN, change)
    assert (incident.type, incident.name, incident.loss) == (*_PAY, LOSS)
    assert (incident.clients.nacked, incident.clients.sent) == (3, 5)
    wrote = f"by change {change[:8]} of dana: “why”"
    way_back = "The page of the change has the way back."
    assert incident.message == f"3 of 5 connected clients lost 2 names {wrote}. {way_back}"
    detail = incident_get(public_id=incident.id)
    assert (detail.author, detail.family, detail.verdict, detail.revision) == ("dana", "envoy", None, 0)
    assert (detail.refusing, detail.samples, detail.quarantined) == ((), (), False)
    assert detail.opened_epoch == Environment.objects.get(key="default").epoch
    assert incidents_of_change(change_id=change) == (incident,)
    assert open_counts(environment_keys=["default"])["default"].unattended == 1
    assert told() == [("incident.opened", change)]


def test_digest__not_published_yet__opens_once_it_is() -> None:
    change = deletion(built=False)
    digest()
    assert not Incident.objects.exists()

    rebuild()
    digest()

    assert loss_incident().change == change


def test_digest__crash_before_the_commit__nothing_is_lost_nor_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    change = deletion()
    with monkeypatch.context() as patch:
        patch.setattr(losing, "incident_told", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(RuntimeError, match="killed"):
            digest()
    assert not Incident.objects.exists()

    digest()

    assert told() == [("incident.opened", change)]


def test_digest__many_at_once__each_change_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losing, "_AT_ONCE", 2)
    changes = [lose(publish(cluster("pay", connect_timeout=f"{number}s"), built=False)) for number in range(1, 4)]
    rebuild()

    digest()
    assert told() == [("incident.opened", change) for change in changes[:2]]
    waiting = lose(publish(cluster("pay", connect_timeout="9s"), built=False))
    digest()

    assert told() == [("incident.opened", change) for change in changes]
    rebuild()
    digest()
    assert told()[3:] == [("incident.opened", waiting)]


def test_digest__taken_back_before_it_was_published__opens_nothing_for_it_and_the_next_one() -> None:
    change = deletion(built=False)
    take_back(change, by=publish(cluster("pay"), built=False))
    other = lose(publish(delete=("other",), built=False))
    rebuild()

    digest()

    assert told() == [("incident.opened", other)]


def test_digest__taken_back__is_resolved_once_that_is_published_and_says_by_what() -> None:
    change = deletion()
    digest()
    undo = take_back(change, by=publish(cluster("pay"), built=False))
    digest()
    assert loss_incident().state == IncidentState.OPEN

    rebuild()
    digest()

    incident = loss_incident()
    assert (incident.state, incident.resolved_epoch) == (IncidentState.RESOLVED, incident.environment.epoch)
    assert told() == [("incident.opened", change), ("incident.resolved", change)]
    (event, *_) = incident_events(incident_get(public_id=str(incident.public_id)))
    assert (event.actor, event.detail["change"], event.detail["author"]) == ("parley", undo, "dana")


def test_digest__opened_and_taken_back_while_nobody_digests__opens_nothing() -> None:
    change = deletion()
    take_back(change, by=publish(cluster("pay")))

    digest()

    assert not Incident.objects.exists()


def test_digest__rolled_back__is_resolved() -> None:
    change = deletion()
    digest()

    back = environment_rollback(environment_key="default", to_epoch=1, reason="oh", hold=False, actor=DANA)
    rebuild()
    digest()

    assert (loss_incident().state, told()[-1]) == (IncidentState.RESOLVED, ("incident.resolved", change))
    (event, *_) = incident_events(incident_get(public_id=str(loss_incident().public_id)))
    assert event.detail["change"] == back.change_id


@pytest.mark.parametrize("rolls_back", [False, True])
def test_digest__way_back_is_written_and_not_published__opens_until_it_is(rolls_back: bool) -> None:
    change = deletion()
    if rolls_back:
        environment_rollback(environment_key="default", to_epoch=1, reason="oh", hold=False, actor=DANA)
    else:
        take_back(change, by=publish(cluster("pay"), built=False))

    digest()
    assert told() == [("incident.opened", change)]
    rebuild()
    digest()

    assert told() == [("incident.opened", change), ("incident.resolved", change)]


def test_digest__what_was_deleted_is_written_again__is_resolved_once_all_of_it_is_published() -> None:
    publish(cluster("pay"), cluster("other"))
    lose(publish(delete=("pay", "other")))
    digest()
    publish(cluster("pay"))
    digest()
    again = publish(cluster("other", connect_timeout="9s"), built=False)
    digest()
    assert loss_incident().state == IncidentState.OPEN

    rebuild()
    digest()

    assert loss_incident().state == IncidentState.RESOLVED
    (event, *_) = incident_events(incident_get(public_id=str(loss_incident().public_id)))
    assert (event.detail["change"], event.detail["author"]) == (again, "dana")


def test_digest__what_was_deleted_is_written_again_and_withheld__stays_open() -> None:
    publish(cluster("pay"), cluster("other"))
    lose(publish(delete=("pay", "other")))
    digest()
    publish(cluster("pay"), cluster("other"), built=False)
    again = Revision.objects.get(resource__name="pay", number=3)
    Quarantine.objects.create(revision=again, cause="manual", reason="no", opened_by="dana")
    rebuild()
    digest()
    assert loss_incident().state == IncidentState.OPEN

    Quarantine.objects.update(released_at=database_now())
    publish(cluster("third"))
    digest()

    assert loss_incident().state == IncidentState.RESOLVED


def test_digest__a_rule_took_it_and_the_resource_is_written__stays_open() -> None:
    publish(cluster("pay"), cluster("other"))
    lose(publish(cluster("unrelated")))  # as a change of rules does: nothing that was lost was deleted
    digest()

    publish(cluster("pay", connect_timeout="9s"), cluster("other", connect_timeout="9s"))
    digest()

    assert loss_incident().state == IncidentState.OPEN


def test_digest__another_change_is_published__leaves_it_open() -> None:
    deletion()
    digest()

    publish(cluster("other", connect_timeout="9s"))
    Fleet(1).accept(held("other", 2))
    digest()

    assert loss_incident().state == IncidentState.OPEN


def test_incident__resolved_by_hand__stays_so_and_may_be_opened_again() -> None:
    deletion()
    digest()
    public_id = str(loss_incident().public_id)

    for state in (IncidentState.ACKNOWLEDGED, IncidentState.RESOLVED, IncidentState.OPEN):
        incident_set_state(public_id=public_id, state=state, actor=DANA, request_id="")
        digest()

        assert loss_incident().state == state


def test_loss__without_names__is_told_all_the_same() -> None:
    publish(cluster("pay"))
    change = publish(delete=("pay",), built=False)
    lose(change, Loss(clients=1, connected=1, doubtful=1, who=LOSS.who[:1]))
    rebuild()

    digest()

    (incident,) = incident_list(environment_keys=["default"])
    assert (incident.name, incident.clients.nacked) == ("", 1)
    assert incident.message.startswith("1 of 1 connected client (1 of them perhaps) lost 0 names by change ")
    delivery = change_delivery(change=change_get(public_id=change), progress=change_progress(public_id=change))
    assert delivery.nacked == 0


def test_losses__nothing_is_due__costs_one_query_that_steps_into_the_index(
    django_assert_num_queries: object, database: str
) -> None:
    deletion()
    digest()

    with django_assert_num_queries(1) as captured:  # type: ignore[operator]  # pytest-django's has no types
        assert losing.losses_open() == 0

    if database == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {captured.captured_queries[0]['sql']}")
            plan = " ".join(str(row[3]) for row in cursor.fetchall())
        assert "USING INDEX change_losses (environment_id=? AND generation>?)" in plan, plan


def test_loss__is_no_refusal__whatever_asks_for_refusals() -> None:
    fleet = Fleet(2)
    publish(cluster("pay"), cluster("other"))
    fleet.accept(held("pay", 1), held("other", 1))
    change = lose(publish(cluster("pay", connect_timeout="2s"), built=False))
    rebuild()
    Environment.objects.update(quarantine=QuarantinePolicy.AUTOMATIC.value)
    fleet.accept(held("pay", 2), held("other", 1))

    digest()
    digest()

    incident = loss_incident()
    public_id = str(incident.public_id)
    assert (incident.verdict, incident.nacked, incident.sent) == ("", 3, 5)
    assert refused_and_lost(change_ids=[change]) == ({}, {change: 3})
    delivery = change_delivery(change=change_get(public_id=change), progress=change_progress(public_id=change))
    assert (delivery.acked, delivery.nacked) == (2, 0)
    found = standings_of(environment_key="default", keys=[_PAY])[_PAY]
    assert (found.status.status, found.status.refusal) == (Status.PUBLISHED, None)
    assert refusals_of(environment_key="default", versions={_PAY: held("pay", 2).content.version}) == {}
    assert not with_status(Resource.objects.all(), environment_key="default", status=Status.REFUSED).exists()
    for act in (incident_quarantine, incident_release):
        with pytest.raises(Conflict, match=r"refuse nothing.*take that change back"):
            act(public_id=public_id, reason="no", actor=DANA, request_id="")
    assert not Quarantine.objects.exists()


@pytest.mark.parametrize("policy", list(QuarantinePolicy))
def test_nack_incident__beside_a_loss_of_the_same_name__is_what_it_is_without(policy: QuarantinePolicy) -> None:
    Environment.objects.update(quarantine=policy.value)
    fleet = Fleet(4, identity="spiffe://shop/{number}")
    publish(cluster("pay"), cluster("other"))
    fleet.accept(held("pay", 1), held("other", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 2), held("other", 1)), BAD, suspects=(held("pay", 2),), who=slice(3))
    digest()
    columns = [field.attname for field in Incident._meta.concrete_fields if field.attname != "judged_at"]
    nacks = Incident.objects.filter(cause=IncidentCause.NACK.value)
    alone, quarantined = nacks.values(*columns).get(), Quarantine.objects.count()

    lose(publish(cluster("other", connect_timeout="5s"), built=False), replace(LOSS, names=(LostName(*_PAY, 3),)))
    rebuild()
    generation = Environment.objects.get(key="default").built_generation
    digest()
    digest()

    assert loss_incident().name == "pay"
    assert {**nacks.values(*columns).get(), "checked_generation": 0} == {**alone, "checked_generation": 0}
    assert nacks.get().checked_generation == generation
    assert Quarantine.objects.count() == quarantined
    assert IncidentClient.objects.filter(incident=nacks.get()).count() == 3

    publish(cluster("pay", connect_timeout="3s"))
    fleet.accept(held("pay", 3), held("other", 2))
    digest()

    assert (nacks.get().state, loss_incident().state) == (IncidentState.RESOLVED, IncidentState.OPEN)


def test_nack_incidents__however_many_losses__are_told_apart(settings: Settings) -> None:
    limits = replace(settings.PARLEY.limits, incidents_per_environment=1, incidents_per_identity=1)
    settings.PARLEY = replace(settings.PARLEY, limits=limits)
    deletion()
    digest()
    fleet = Fleet(1)
    publish(cluster("pay", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("pay", 3)), BAD, suspects=(held("pay", 3),))

    digest()

    assert Incident.objects.get(cause=IncidentCause.NACK.value).name == "pay"


def test_lists__of_both_causes__the_loss_is_first_and_each_is_found_by_what_it_is_about() -> None:
    fleet = Fleet(5)
    publish(cluster("pay"), cluster("other"))
    fleet.refuse(fleet.send(held("pay", 1)), BAD, suspects=(held("pay", 1),))
    lose(publish(cluster("other", connect_timeout="5s"), built=False))
    rebuild()
    digest()
    loss, nack = (str(Incident.objects.get(cause=cause).public_id) for cause in ("loss", "nack"))

    shown, _ = incident_page(environment_keys=["default"])
    assert [row.id for row in shown] == [loss, nack]

    def listed(**wanted: object) -> set[str]:
        found = incident_list(environment_keys=["default"], wanted=IncidentFilter(**wanted))  # type: ignore[arg-type]
        return {each.id for each in found}

    assert listed(cause=IncidentCause.LOSS) == listed(client="c0000003") == {loss}
    assert listed(cause=IncidentCause.NACK) == {nack}
    assert listed(word="cluster", name="pay", author="dana", client="node-1") == {loss, nack}
    # A loss is found by each of its names.
    for name, found in {"pay": [loss, nack], "other": [loss], "else": []}.items():
        of_name = incidents_of_name(environment_key="default", word="cluster", name=name)
        assert [each.id for each in of_name] == found, name
