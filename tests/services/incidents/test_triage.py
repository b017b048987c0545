"""The list of incidents, and what a page of one shows beside the incident itself."""

import pytest
from pytest_django import DjangoAssertNumQueries

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.database.aliases import READER
from controlplane.incidents.selectors import incident_get
from controlplane.incidents.services import digest, incident_quarantine, incident_set_state
from controlplane.incidents.triage import (
    IncidentRow,
    incident_difference,
    incident_events,
    incident_page,
    incident_state_counts,
)
from controlplane.incidents.values import IncidentState
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster
from tests.support.principals import somebody

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

OPAL = somebody("opal", ADMIN_SCOPES)
NORA = somebody("nora", ADMIN_SCOPES)


@pytest.fixture
def fleet(database: str) -> Fleet:
    """Four clients: one refused r2 of `pay`, then three refused r2 of `ads`."""
    four = Fleet(4)
    for name, who in (("pay", slice(1)), ("ads", slice(3))):
        publish(cluster(name))
        four.accept(held(name, 1))
        publish(cluster(name, connect_timeout="2s"))
        text = f"Error adding/updating cluster(s) {name}: Invalid path: /no/such/{name}.pem"
        four.refuse(four.send(held(name, 2)), text, suspects=(held(name, 2),), who=who)
        digest()
    return four


def listed(**asked: object) -> tuple[tuple[IncidentRow, ...], int]:
    return incident_page(environment_keys=["default"], **asked)  # type: ignore[arg-type]  # the tests' own words


def test_incident_page__two_incidents__the_greater_share_first_in_two_queries(
    fleet: Fleet, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(3):  # PostgreSQL is asked for its clock, too
        rows, count = listed()

    assert [(row.name, row.impact.nacked, row.impact.sent) for row in rows] == [("ads", 3, 4), ("pay", 1, 4)]
    assert count == 2
    assert rows[0].sentence == "Error adding/updating cluster(s) ads: Invalid path: /no/such/ads.pem"


def test_incident_page__filtered_by_text__finds_names_and_words(fleet: Fleet) -> None:
    found = {text: [row.name for row in listed(text=text)[0]] for text in ("no/such/PAY", "ads", "%", "")}

    assert found == {"no/such/PAY": ["pay"], "ads": ["ads"], "%": [], "": ["ads", "pay"]}


def test_incident_page__second_page__holds_the_rest_of_the_same_order(fleet: Fleet) -> None:
    rows, count = listed(offset=1, limit=1)

    assert ([row.name for row in rows], count) == (["pay"], 2)


def test_incident_page__other_environment_or_state__holds_nothing(fleet: Fleet) -> None:
    assert incident_page(environment_keys=["prod"]) == ((), 0)
    assert listed(states=(IncidentState.RESOLVED,)) == ((), 0)


def test_incident_state_counts__one_ignored__counts_each_state(fleet: Fleet) -> None:
    first = listed()[0][0]
    incident_set_state(public_id=first.id, state=IncidentState.IGNORED, actor=OPAL, request_id="")

    counts = incident_state_counts(environment_keys=["default"])

    assert (counts[IncidentState.OPEN], counts[IncidentState.IGNORED], counts[IncidentState.RESOLVED]) == (1, 1, 0)


def test_incident_difference__refused_revision__is_held_against_the_last_acknowledged(fleet: Fleet) -> None:
    difference = incident_difference(incident_get(public_id=listed()[0][0].id))

    assert difference is not None
    assert (difference.before, difference.after) == (1, 2)
    assert "+connect_timeout: 2s" in difference.text


def test_incident_difference__nothing_was_acknowledged__shows_the_whole_resource(database: str) -> None:
    two = Fleet(2)
    publish(cluster("new"))
    two.refuse(two.send(held("new", 1)), "bad", suspects=(held("new", 1),))
    digest()

    difference = incident_difference(incident_get(public_id=listed()[0][0].id))

    assert difference is not None
    assert (difference.before, difference.after) == (None, 1)
    assert "+name: new" in difference.text


def test_incident_set_state__acknowledged_by_two_people__the_last_looks_after_it(fleet: Fleet) -> None:
    public_id = listed()[0][0].id

    for actor in (OPAL, NORA):
        incident_set_state(public_id=public_id, state=IncidentState.ACKNOWLEDGED, actor=actor, request_id="")
    taken = incident_get(public_id=public_id).incident.assignee
    incident_set_state(public_id=public_id, state=IncidentState.OPEN, actor=NORA, request_id="")

    assert (taken and taken.name, incident_get(public_id=public_id).incident.assignee) == ("nora", None)


def test_incident_events__what_people_did__newest_first_and_of_this_resource_alone(fleet: Fleet) -> None:
    ads, pay = listed()[0]
    incident_set_state(public_id=ads.id, state=IncidentState.ACKNOWLEDGED, actor=OPAL, request_id="")
    incident_quarantine(public_id=ads.id, reason="breaks ads", actor=OPAL, request_id="")
    incident_set_state(public_id=pay.id, state=IncidentState.IGNORED, actor=NORA, request_id="")

    events = incident_events(incident_get(public_id=ads.id))

    assert [(event.actor, event.verb) for event in events] == [
        ("opal", "quarantine.opened"),
        ("opal", "incident.acknowledged"),
    ]
