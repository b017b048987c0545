"""Who looks after an incident, until when it is muted, and that the next revision mends it, over REST."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import Role
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.conftest import Caller, assert_problem
from tests.api.test_facts import BAD
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def incident(api: Caller) -> str:
    """One client refuses r2 of `pay`, which belongs to the team `payments`."""
    publish(cluster("pay"))
    fleet = Fleet(2)
    fleet.accept(held("pay", 1))
    publish(cluster("pay", connect_timeout="2s"))
    api.post("environments/default/apply", {"resources": [cluster("other")], "owner": "payments"})
    fleet.refuse(fleet.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), who=slice(1))
    digest()
    (found,) = api.get("incidents").json["results"]
    return str(found["id"])


def person(login: str, environment: str = "default") -> None:
    user = get_user_model().objects.create_user(login)
    RoleGrant.objects.create(user=user, role=Role.VIEWER.value, environment=environment)


def listed(api: Caller, assignee: str) -> int:
    return len(api.get(f"incidents?assignee={assignee}").json["results"])


def test_incident__assigned__is_listed_for_whom_it_is_assigned_to(api: Caller, incident: str) -> None:
    person("mia")

    assert (listed(api, "nobody"), listed(api, "person:mia")) == (1, 0)
    found = api.post(f"incidents/{incident}/assign", {"person": "mia"}).json
    assert (found["assignee"], found["assigned"]) == ("mia", {"kind": "person", "name": "mia", "gone": False})
    assert found["state"] == "open"
    assert (listed(api, "nobody"), listed(api, "person:mia"), listed(api, "team:mia"), listed(api, "me")) == (
        0,
        1,
        0,
        0,
    )
    found = api.post(f"incidents/{incident}/assign", {"team": "payments"}).json
    assert found["assigned"] == {"kind": "team", "name": "payments", "gone": False}
    assert (listed(api, "person:mia"), listed(api, "team:payments")) == (0, 1)
    assert api.post(f"incidents/{incident}/assign", {"person": None}).json["assigned"] is None
    assert api.patch(f"incidents/{incident}", {"state": "acknowledged"}).json["assigned"]["kind"] == "person"
    assert listed(api, "me") == 1
    assert_problem(api.get("incidents?assignee=mia"), 422)


def test_incident__assigned_to_somebody_who_may_not_see_it__one_text_whether_or_not_they_exist(
    api: Caller, incident: str
) -> None:
    person("far", environment="prod")
    get_user_model().objects.create_user("off", is_active=False)

    said = {who: api.post(f"incidents/{incident}/assign", {"person": who}) for who in ("far", "off", "never")}

    for who, answer in said.items():
        assert_problem(answer, 422)
        assert answer.json["detail"] == f"Nobody with the login '{who}' may see 'default'. Nothing was changed."
    assert_problem(api.post(f"incidents/{incident}/assign", {"team": "nobody's"}), 422)
    for body in ({}, {"person": "mia", "team": "payments"}, {"person": ""}, {"person": 1}, {"who": "mia"}):
        assert_problem(api.post(f"incidents/{incident}/assign", body), 422)
    assert api.get(f"incidents/{incident}").json["assigned"] is None


def test_incident__muted_and_unmuted__says_until_when_by_whom_and_why(api: Caller, incident: str) -> None:
    now = datetime.now(UTC)

    muted = api.post(f"incidents/{incident}/mute", {"until": "8h", "reason": "r3 is on its way"}).json["muted"]

    assert (muted["by"].startswith("token:"), muted["reason"]) == (True, "r3 is on its way")
    assert now + timedelta(hours=7) < datetime.fromisoformat(muted["until"]) < now + timedelta(hours=9)
    assert api.post(f"incidents/{incident}/unmute", None).json["muted"] is None
    verbs = [each["verb"] for each in api.get("audit?environment=default").json["results"]][:2]
    assert verbs == ["incident.unmuted", "incident.muted"]


@pytest.mark.parametrize(
    "body",
    [
        {"until": "8h"},
        {"until": "8h", "reason": ""},
        {"until": "soon", "reason": "r"},
        {"until": "0s", "reason": "r"},
        {"until": "31d", "reason": "r"},
        {"until": "999999w", "reason": "r"},
        {"until": "2020-01-01T00:00:00Z", "reason": "r"},
        {"until": "8h", "reason": "x" * 401},
        {"until": "8h", "reason": "a\nb"},
    ],
)
def test_incident__mute_without_sense__422_and_nothing_is_muted(api: Caller, incident: str, body: object) -> None:
    assert_problem(api.post(f"incidents/{incident}/mute", body), 422)

    assert api.get(f"incidents/{incident}").json["muted"] is None


def test_incident__over__cannot_be_muted_or_assigned(api: Caller, incident: str) -> None:
    api.patch(f"incidents/{incident}", {"state": "resolved"})

    assert_problem(api.post(f"incidents/{incident}/mute", {"until": "1h", "reason": "r"}), 409)
    assert_problem(api.post(f"incidents/{incident}/assign", {"team": "payments"}), 409)
    assert_problem(api.patch(f"incidents/{incident}", {"state": "resolved", "in_next_revision": True}), 409)


def test_incident__to_be_resolved_with_the_next_revision__waits_and_is_mine(api: Caller, incident: str) -> None:
    found = api.patch(f"incidents/{incident}", {"state": "resolved", "in_next_revision": True}).json

    assert (found["state"], found["mended_by"]) == ("acknowledged", found["assignee"])
    publish(cluster("pay", connect_timeout="3s"))
    digest()
    assert api.get(f"incidents/{incident}").json["state"] == "resolved"
    assert_problem(api.patch(f"incidents/{incident}", {"state": "open", "in_next_revision": True}), 422)
