"""How resources stand, as interfaces.md section 8 spells it; and which incidents a list is filtered by."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.manifests import cluster, route, tls_secret

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

PAY = "environments/default/resources/cluster/pay"
LIST = "environments/default/resources"


@pytest.fixture
def api() -> Caller:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=DANA)
    return caller(*ADMIN_SCOPES)


@pytest.fixture
def fleet(api: Caller) -> Fleet:
    """Two clients that refuse r2 of `pay`, and run `sound`."""
    two = Fleet(2)
    publish(cluster("pay"), cluster("sound"))
    two.accept(held("pay", 1), held("sound", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    text = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
    two.refuse(two.send(held("pay", 2)), text, suspects=(held("pay", 2),))
    digest()
    return two


def names(api: Caller, question: str) -> list[str]:
    return [row["name"] for row in api.get(f"{LIST}?{question}").json["results"]]


def test_row__refused_by_everybody__says_so_with_counts_incident_and_conditions(api: Caller, fleet: Fleet) -> None:
    incident = str(Incident.objects.get().public_id)

    refused, sound = api.get(LIST).json["results"]

    assert (refused["status"], refused["reason"]) == ("refused", "2 of 2 clients refuse r2.")
    assert refused["refused"] == {"clients": 2, "sent": 2, "incident": incident}
    accepted, published = refused["conditions"]
    assert {**accepted, "since": ""} == {
        "type": "Accepted",
        "status": "False",
        "reason": "Refused",
        "message": f"2 of 2 clients refuse r2. Incident: {incident}.",
        "since": "",
        "revision": 2,
    }
    assert (published["type"], published["status"], published["reason"]) == ("Published", "True", "Published")
    assert all(datetime.fromisoformat(each["since"]) <= timezone.now() for each in refused["conditions"])
    assert (sound["status"], sound["reason"], sound["refused"]) == ("published", "", None)
    assert [each["status"] for each in sound["conditions"]] == ["True", "True"]


def test_row__quarantined_and_then_nothing_to_fall_back_to__each_says_what_is_served(api: Caller, fleet: Fleet) -> None:
    incident = str(Incident.objects.get().public_id)
    api.post(f"incidents/{incident}/quarantine", {"reason": "breaks pay"})
    rebuild()

    (row,) = api.get(f"{LIST}?status=quarantined").json["results"]

    assert (row["name"], row["reason"]) == ("pay", "r2 is out of service; clients get r1. Why: breaks pay.")
    assert row["refused"] == {"clients": 2, "sent": 2, "incident": incident}
    assert [(each["type"], each["reason"]) for each in row["conditions"]] == [
        ("Accepted", "Refused"),
        ("Published", "Quarantined"),
    ]
    assert row["held"] == row["held_back"]
    assert row["held_back"]["served"]


def test_list__filtered_by_status__pages_over_those_alone(api: Caller, fleet: Fleet) -> None:
    publish(*(route(f"r{number}", "nowhere") for number in range(5)))
    publish(cluster("saved"), built=False)

    first = api.get(f"{LIST}?status=stalled&limit=2").json
    second = api.get(first["next"].partition("/api/v1/")[2]).json

    assert (first["count"], [row["name"] for row in first["results"]]) == (5, ["r0", "r1"])
    assert [row["name"] for row in second["results"]] == ["r2", "r3"]
    assert names(api, "status=refused") == ["pay"]
    assert names(api, "status=published") == ["sound"]
    assert names(api, "status=waiting") == ["saved"]
    assert names(api, "status=stalled&type=cluster") == []
    assert_problem(api.get(f"{LIST}?status=sound"), 422)


def test_list__100_rows_of_everything__costs_as_many_queries_as_one(api: Caller, fleet: Fleet) -> None:
    def cost(question: str) -> int:
        api.get(f"{LIST}?{question}")
        with CaptureQueriesContext(connection) as queries:
            assert api.get(f"{LIST}?{question}").status == 200
        return len(queries)

    few = [cost(question) for question in ("", "status=published", "status=refused")]
    publish(*(cluster(f"c{number}") for number in range(60)), *(route(f"r{number}", "no") for number in range(60)))

    many = [cost(question) for question in ("", "status=published", "status=stalled")]
    assert max(many) <= max(few) <= 14


def test_document__with_status__is_the_row_with_the_manifest_and_never_304(api: Caller, fleet: Fleet) -> None:
    (row,) = api.get(f"{LIST}?status=refused").json["results"]
    manifest = api.get(PAY)

    document = api.get(f"{PAY}?status=true", If_None_Match=manifest.headers["ETag"])

    assert document.status == 200
    assert document.json == {**row, "manifest": manifest.json}
    assert document.headers["ETag"] == manifest.headers["ETag"]
    assert "status" not in manifest.json
    assert_problem(api.get("environments/default/resources/cluster/none?status=true"), 404)
    assert_problem(api.get(f"{PAY}?status=refused"), 422)


def test_document__sent_back__is_refused_for_its_read_only_members(api: Caller, fleet: Fleet) -> None:
    document = api.get(f"{PAY}?status=true").json
    manifest = api.get(PAY).json

    assert_problem(api.put(PAY, document), 422)
    for member in ("status", "reason", "refused", "conditions"):
        answer = api.put(PAY, {**manifest, member: document[member]})
        assert_problem(answer, 422)
        assert f"/{member}" in answer.pointers
    assert api.put(PAY, manifest).json == {"changed": False}


def test_document__of_a_secret__keeps_its_value_and_is_recorded(api: Caller) -> None:
    api.put("environments/default/resources/secret/tls", tls_secret("tls", "very-private"))

    document = api.get("environments/default/resources/secret/tls?status=true")

    assert "<kept:" in document.content.decode()
    assert "very-private" not in document.content.decode()
    assert any(event["verb"] == "secret.read" for event in api.get("audit").json["results"])


@pytest.fixture
def incidents(api: Caller, fleet: Fleet) -> dict[str, str]:
    """One about `pay`, refused by both clients; and one about `ads`, that one client refused a day ago. By name."""
    publish(cluster("ads"))
    text = "Error adding/updating cluster(s) ads: no such thing"
    fleet.refuse(fleet.send(held("ads", 1)), text, suspects=(held("ads", 1),), who=slice(1))
    digest()
    Incident.objects.filter(name="ads").update(last_at=timezone.now() - timedelta(hours=25), author="erin")
    return {row.name: str(row.public_id) for row in Incident.objects.all()}


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("", {"pay", "ads"}),
        ("type=cluster", {"pay", "ads"}),
        ("type=listener", set()),
        ("type=type.googleapis.com/envoy.config.cluster.v3.Cluster", {"pay", "ads"}),
        ("name=ad", {"ads"}),
        ("name=nobody", set()),
        ("resource=cluster/ads", {"ads"}),
        ("resource=cluster/ad", set()),
        ("resource=listener/ads", set()),
        ("client=node-1", {"pay", "ads"}),
        ("client=node-2", {"pay"}),
        ("client=nobody", set()),
        ("author=erin", {"ads"}),
        ("author=eri", set()),
        ("since=24h", {"pay"}),
        ("since=2d", {"pay", "ads"}),
        ("since=2020-01-01T00:00:00Z", {"pay", "ads"}),
        ("since=2999-01-01T00:00:00Z", set()),
        ("state=open&name=pay&client=node-2&since=1h&author=dana", {"pay"}),
        ("state=resolved&name=pay", set()),
    ],
)
def test_incidents__filtered__only_those(
    api: Caller, incidents: dict[str, str], question: str, found: set[str]
) -> None:
    answer = api.get(f"incidents?{question}").json["results"]

    assert {each["name"] for each in answer} == found


def test_incidents__filtered_by_the_id_of_a_client__are_what_it_refuses(api: Caller, incidents: dict[str, str]) -> None:
    (client,) = api.get("clients?node_id=node-2").json["results"]

    assert [each["name"] for each in api.get(f"incidents?client={client['id']}").json["results"]] == ["pay"]


def test_incidents__filtered_and_paged__the_next_page_is_filtered_too(api: Caller, incidents: dict[str, str]) -> None:
    first = api.get("incidents?client=node-1&limit=1").json
    second = api.get(first["next"].partition("/api/v1/")[2]).json

    assert [each["name"] for page in (first, second) for each in page["results"]] == ["pay", "ads"]
    assert second["next"] is None


@pytest.mark.parametrize(
    "question",
    ["type=klaster", "resource=pay", "resource=cluster/", "since=yesterday", "since=2026-07-01T12:00:00", "since=24"],
)
def test_incidents__filter_that_cannot_be__422_that_names_it(api: Caller, question: str) -> None:
    answer = api.get(f"incidents?{question}")

    assert_problem(answer, 422)
    assert f"'{question.partition('=')[0]}'" in answer.json["errors"][0]["detail"]


def test_incidents__of_another_environment__are_in_no_filter(api: Caller, incidents: dict[str, str]) -> None:
    stranger = caller(Scope(Role.ADMIN, "prod"))

    for question in ("resource=cluster/pay", "client=node-1", "author=erin", "since=24h"):
        assert stranger.get(f"incidents?{question}").json["results"] == []
