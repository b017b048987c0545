"""How resources stand: read from catalogue, build and incidents, by the page and by filter, which agree."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.builder import recording
from controlplane.catalog.selectors import resource_list
from controlplane.catalog.services import environment_create
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest, incident_quarantine, incident_release, incident_set_state
from controlplane.incidents.values import IncidentState
from controlplane.status.selectors import Standing, standings_of, with_status
from controlplane.status.values import ConditionType, Reason, Status, Truth
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.manifests import cluster, route

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

PAY = ("cluster", "pay")


def refuse(fleet: Fleet, name: str, number: int, words: str = "Invalid path: /no/such/ca.pem") -> None:
    """Everybody refuses this revision, naming it."""
    text = f"Error adding/updating cluster(s) {name}: {words}"
    fleet.refuse(fleet.send(held(name, number)), text, suspects=(held(name, number),))
    digest()


def incident_of(name: str) -> str:
    return str(Incident.objects.get(name=name).public_id)


def standing(word: str, name: str) -> Standing:
    return standings_of(environment_key="default", keys=[(word, name)])[word, name]


def by_status() -> dict[str, Status]:
    """Every resource's status by its name, which the filter must agree with."""
    rows = list(resource_list(environment_key="default"))
    found = standings_of(environment_key="default", keys=[(row.type, row.name) for row in rows])
    for status in Status:
        chosen = with_status(resource_list(environment_key="default"), environment_key="default", status=status)
        by_filter = {(row.type, row.name) for row in chosen}
        assert by_filter == {key for key, each in found.items() if each.status.status is status}
        assert chosen.count() == len(by_filter)
    return {name: each.status.status for (_, name), each in found.items()}


@pytest.fixture
def fleet(database: str) -> Fleet:
    """Two clients that run r1 of `pay`, and refuse r2."""
    two = Fleet(2)
    publish(cluster("pay"), cluster("sound"))
    two.accept(held("pay", 1), held("sound", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    refuse(two, "pay", 2)
    return two


def test_standings__one_of_each__page_and_filter_agree(fleet: Fleet) -> None:
    publish(cluster("older-runs"), cluster("nothing-runs"), route("stalled", "missing"))
    fleet.accept(held("older-runs", 1))
    digest()
    publish(cluster("older-runs", connect_timeout="2s"))
    for name, number in (("older-runs", 2), ("nothing-runs", 1)):
        refuse(fleet, name, number)
        incident_quarantine(public_id=incident_of(name), reason="breaks it", actor=DANA, request_id="")
    rebuild()
    publish(cluster("saved"), built=False)

    assert by_status() == {
        "pay": Status.REFUSED,
        "sound": Status.PUBLISHED,
        "older-runs": Status.QUARANTINED,
        "nothing-runs": Status.WITHHELD,
        "stalled": Status.STALLED,
        "saved": Status.WAITING,
    }
    assert "clients get r1. Why: breaks it." in standing("cluster", "older-runs").status.reason


def test_standing__clients_refuse__counts_and_incident_before_and_after_they_leave(fleet: Fleet) -> None:
    before = standing(*PAY).status

    for each in fleet.streams:
        fleet.buffer.closed(each, "left")
    fleet.write()
    digest()

    after = standing(*PAY).status
    assert before == after
    assert after.status is Status.REFUSED
    assert after.refusal is not None
    assert (after.refusal.incident, after.refusal.clients, after.refusal.sent) == (incident_of("pay"), 2, 2)
    assert after.reason == "2 of 2 clients refuse r2."
    accepted = after.condition(ConditionType.ACCEPTED)
    assert (accepted.status, accepted.reason, accepted.revision) == (Truth.FALSE, Reason.REFUSED, 2)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (IncidentState.ACKNOWLEDGED, Status.REFUSED),
        (IncidentState.IGNORED, Status.PUBLISHED),
        (IncidentState.RESOLVED, Status.PUBLISHED),
    ],
)
def test_standing__incident_in_another_state__refused_while_it_is_open(
    fleet: Fleet, state: IncidentState, status: Status
) -> None:
    incident_set_state(public_id=incident_of("pay"), state=state, actor=DANA, request_id="")

    assert by_status()["pay"] is status


def test_standing__fix_is_published__refused_no_more_and_unknown_until_a_client_takes_it(fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="3s"))
    fixed = standing(*PAY).status
    fleet.accept(held("pay", 3))
    digest()
    taken = standing(*PAY).status
    publish(cluster("pay", connect_timeout="2s"))

    assert (fixed.status, fixed.condition(ConditionType.ACCEPTED).status) == (Status.PUBLISHED, Truth.UNKNOWN)
    assert incident_of("pay") in fixed.condition(ConditionType.ACCEPTED).message
    assert (taken.status, taken.condition(ConditionType.ACCEPTED).status) == (Status.PUBLISHED, Truth.TRUE)
    assert by_status()["pay"] is Status.PUBLISHED  # that incident is over; nobody has refused it again


def test_standing__refused_content_comes_back_while_the_incident_is_open__is_refused(fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="3s"))
    publish(cluster("pay", connect_timeout="2s"))

    found = standing(*PAY).status

    assert by_status()["pay"] is Status.REFUSED
    assert found.reason == "2 of 2 clients refuse r4."


def test_standing__quarantined_and_released__waits_for_each_build_unless_it_is_refused(fleet: Fleet) -> None:
    incident = incident_of("pay")
    incident_quarantine(public_id=incident, reason="breaks pay", actor=DANA, request_id="")
    opened = by_status()["pay"]
    rebuild()
    built = by_status()["pay"]
    incident_set_state(public_id=incident, state=IncidentState.RESOLVED, actor=DANA, request_id="")
    still = by_status()["pay"]
    incident_release(public_id=incident, reason="it was the disk", actor=DANA, request_id="")
    released = by_status()["pay"]
    rebuild()

    assert (opened, built, still, released) == (
        *(Status.REFUSED, Status.QUARANTINED, Status.QUARANTINED, Status.WAITING),
    )
    assert by_status()["pay"] is Status.PUBLISHED


def test_standing__refused_in_two_ways__each_client_counts_once(fleet: Fleet) -> None:
    # Two suspects, of which only words tell one: other words are another incident.
    publish(cluster("pay", connect_timeout="3s"), cluster("sound", connect_timeout="3s"))
    both = (held("pay", 3), held("sound", 2))
    for words in ("some words", "some other words"):
        fleet.refuse(fleet.send(*both), f"Error adding/updating cluster(s) pay: {words}", suspects=both)
    digest()
    assert Incident.objects.filter(name="pay", revision=3).count() == 2

    found = standing(*PAY).status

    assert found.refusal is not None
    assert (found.refusal.clients, found.refusal.sent) == (2, 2)


def test_standing__response_with_several_suspects_is_refused__is_unknown_and_not_refused(fleet: Fleet) -> None:
    publish(cluster("one"), cluster("two"))
    both = (held("one", 1), held("two", 1))
    fleet.refuse(fleet.send(*both), "Something is wrong", suspects=both)
    digest()

    found = standing("cluster", "one").status

    assert by_status()["one"] is Status.PUBLISHED
    accepted = found.condition(ConditionType.ACCEPTED)
    assert (accepted.status, accepted.reason) == (Truth.UNKNOWN, Reason.SUSPECTED)
    assert "2 of 2 clients refused a response of which r1 may be the cause." in accepted.message


def test_standing__stalled__says_since_which_build_and_for_what(database: str) -> None:
    publish(route("shop", "nowhere"))
    first = standing("route", "shop")
    publish(cluster("other"))

    again = standing("route", "shop")

    assert again == first
    assert again.status.reason == "It refers to a Cluster that does not exist. Clients get nothing under this name."
    assert again.held is not None
    assert again.held.since == again.status.condition(ConditionType.PUBLISHED).since
    assert [each.code for each in again.held.findings] == ["XDS2002"]


def test_standing__more_are_held_than_are_told_of__none_of_them_is_called_published(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MAX_HELD", 3)
    publish(*(route(f"r{number}", "nowhere") for number in range(5)))

    assert set(by_status().values()) == {Status.STALLED}
    publish(cluster("nowhere"))
    assert set(by_status().values()) == {Status.PUBLISHED}


def test_standing__same_names_in_another_environment__stand_by_themselves(fleet: Fleet) -> None:
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)

    assert standings_of(environment_key="prod", keys=[PAY]) == {}
    for status in Status:
        assert not with_status(resource_list(environment_key="prod"), environment_key="prod", status=status)


def test_standing__deleted__is_not_told_of(fleet: Fleet) -> None:
    publish(delete=("pay",), losing=2)

    assert standings_of(environment_key="default", keys=[PAY]) == {}
    assert "pay" not in by_status()


def test_standings__a_page_of_any_size__seven_queries_at_most(fleet: Fleet) -> None:
    refuse(fleet, "pay", 2, "some other words")
    publish(*(cluster(f"c{number}") for number in range(60)), *(route(f"r{number}", "no") for number in range(60)))
    keys = [("cluster", f"c{number}") for number in range(60)] + [("route", f"r{number}") for number in range(60)]

    with CaptureQueriesContext(connection) as few:
        standings_of(environment_key="default", keys=[PAY])
    with CaptureQueriesContext(connection) as many:
        found = standings_of(environment_key="default", keys=[PAY, *keys])

    assert len(found) == 121
    assert len(many) <= len(few) <= 7
