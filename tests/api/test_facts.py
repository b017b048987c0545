"""What became of it: snapshots, clients, incidents and what operators do about them, the audit log."""

from collections.abc import Callable

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import Fleet, held, publish, rebuild
from tests.support.manifests import cluster, route

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"


@pytest.fixture
def environments() -> None:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)


@pytest.fixture
def api(environments: None) -> Caller:
    return caller(*ADMIN_SCOPES)


@pytest.fixture
def stranger(environments: None) -> Caller:
    return caller(Scope(Role.ADMIN, "prod"))


@pytest.fixture
def fleet(environments: None) -> Fleet:
    """Two clients that run r1 of `pay`; the first refused r2."""
    two = Fleet(2)
    publish(cluster("pay"))
    two.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    two.refuse(two.send(held("pay", 2)), BAD, suspects=(held("pay", 2),), who=slice(1))
    digest()
    return two


def test_snapshots__listed_and_read__newest_first_and_for_ever(api: Caller) -> None:
    publish(cluster("a"))
    made = publish(cluster("b"))

    listed = api.get("environments/default/snapshots").json["results"]
    one = api.get("environments/default/snapshots/1")

    assert [(each["epoch"], each["counts"]) for each in listed] == [(2, {"cluster": 2}), (1, {"cluster": 1})]
    [cause] = listed[0]["changes"]
    assert (cause["id"], cause["kind"], cause["author"], cause["message"]) == (made, "resources", "dana", "why")
    assert (listed[0]["change_count"], one.json["change_count"]) == (1, 2)  # the environment's own comes with the first
    assert (one.json["epoch"], one.json["held_back"], one.json["held_back_count"]) == (1, [], 0)
    assert (one.json["held"], one.json["held_count"]) == ([], 0)
    assert "immutable" in one.headers["Cache-Control"]
    assert one.json["stage_ms"]


@pytest.mark.parametrize("epoch", ["0", "99", str(2**70), "x", "-1"])
def test_snapshot__that_is_none__404(api: Caller, epoch: str) -> None:
    assert_problem(api.get(f"environments/default/snapshots/{epoch}"), 404)


def test_clients__listed_filtered_and_read(api: Caller, fleet: Fleet) -> None:
    first = api.get("clients?limit=1").json
    second = api.get(first["next"].partition("/api/v1/")[2]).json
    named = api.get("clients?node_id=node-2&environment=default&connected=true").json["results"]
    one = api.get(f"clients/{named[0]['id']}").json
    asks = api.get(f"clients/{named[0]['id']}/subscriptions").json["results"]

    assert {page["results"][0]["node_id"] for page in (first, second)} == {"node-1", "node-2"}
    assert second["next"] is None
    assert [each["node_id"] for each in named] == ["node-2"]
    assert (one["connected"], len(one["recent_streams"])) == (True, 1)
    assert [(each["type"], each["wildcard"]) for each in asks] == [("cluster", True)]


def test_client__of_another_environment_or_none__404_in_the_same_words(
    api: Caller, stranger: Caller, fleet: Fleet
) -> None:
    identity = api.get("clients").json["results"][0]["id"]
    unknown = "0" * len(identity)

    assert_problem(stranger.patch(f"clients/{identity}", {"labels": {"team": "pay"}}), 404)
    for tail in ("", "/subscriptions"):
        foreign, absent = stranger.get(f"clients/{identity}{tail}"), stranger.get(f"clients/{unknown}{tail}")
        assert_problem(foreign, 404)
        assert foreign.json["detail"].replace(identity, "") == absent.json["detail"].replace(unknown, "")
    assert stranger.get("clients").json["results"] == []


def test_clients__labelled_one_and_many__are_found_by_it(api: Caller, fleet: Fleet) -> None:
    ids = {each["node_id"]: each["id"] for each in api.get("clients").json["results"]}

    one = api.patch(f"clients/{ids['node-1']}", {"labels": {"team": "pay", "old": None}})
    many = api.post(
        "environments/default/clients/bulk",
        {"act": "labels", "clients": sorted(ids.values()), "labels": {"tier": "1"}},
    )
    again = api.post(
        "environments/default/clients/bulk",
        {"act": "labels", "select": {"label": "team=pay"}, "labels": {"tier": "1", "seen": "yes"}},
    )

    assert (one.status, one.json["labels"], len(one.json["recent_streams"])) == (200, {"team": "pay"}, 1)
    assert (many.status, many.json) == (200, {"clients": len(ids), "changed": len(ids)})
    assert again.json == {"clients": 1, "changed": 1}
    [found] = api.get("clients?label=team%3Dpay,tier,seen%3Dyes").json["results"]
    assert found["id"] == ids["node-1"]
    assert api.get("clients?label=!tier").json["results"] == []


def test_clients__labelled_by_a_role__operators_may_and_others_are_told_what_it_takes(
    api: Caller, fleet: Fleet, as_role: Callable[[str, str | None], Caller]
) -> None:
    [first, *_] = api.get("clients").json["results"]
    many = {"act": "labels", "clients": [first["id"]], "labels": {"a": "1"}}

    for role, status in (("viewer", 403), ("editor", 403), ("access-editor", 403), ("operator", 200), ("admin", 200)):
        who = as_role(role, "default")
        assert who.patch(f"clients/{first['id']}", {"labels": {role: "1"}}).status == status, role
        assert who.post("environments/default/clients/bulk", many).status == status, role
    assert as_role("operator", "prod").post("environments/default/clients/bulk", many).status == 404
    assert api.get(f"clients/{first['id']}").json["labels"] == {"a": "1", "admin": "1", "operator": "1"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"act": "labels", "labels": {"a": "1"}}, 422),
        ({"act": "labels", "select": {}, "labels": {"a": "1"}}, 422),
        ({"act": "labels", "select": {"connected": False}, "labels": {"a": "1"}}, 422),
        ({"act": "labels", "select": {"label": "a in (b)"}, "labels": {"a": "1"}}, 422),
        ({"act": "labels", "select": {"label": "a"}, "labels": {"-a": "1"}}, 422),
        ({"act": "labels", "clients": ["x"], "select": {"label": "a"}, "labels": {"a": "1"}}, 422),
        ({"act": "labels", "clients": ["nobody"], "labels": {"a": "1"}}, 404),
        ({"act": "labels", "clients": [f"c{number}" for number in range(1_001)], "labels": {"a": "1"}}, 413),
        ({"act": "delete", "clients": ["x"], "labels": {"a": "1"}}, 422),
    ],
)
def test_clients_bulk__something_is_wrong__says_so(api: Caller, fleet: Fleet, body: object, status: int) -> None:
    assert_problem(api.post("environments/default/clients/bulk", body), status)


@pytest.fixture
def incident(api: Caller, fleet: Fleet) -> str:
    (found,) = api.get("incidents").json["results"]
    return str(found["id"])


def test_incident__listed_and_read__as_the_interface_spells_it(api: Caller, incident: str) -> None:
    (listed,) = api.get("incidents?state=open&environment=default").json["results"]
    detail = api.get(f"incidents/{incident}").json

    assert (listed["type"], listed["name"], listed["clients"]) == ("cluster", "pay", {"nacked": 1, "sent": 2})
    assert listed["message"] == BAD
    assert {key: detail[key] for key in listed} == listed
    assert [each["node_id"] for each in detail["refusing"]] == ["node-1"]
    assert detail["samples"][0]["text"] == BAD
    assert api.get("incidents?state=resolved").json["results"] == []
    assert [each["id"] for each in api.get(f"changes/{listed['change']}").json["incidents"]] == [incident]


def test_incident__of_what_others_need__says_which(api: Caller, incident: str) -> None:
    assert api.get(f"incidents/{incident}").json["used_by"] == []

    publish(cluster("other"), route("edge", "pay"), route("side", "other"))

    (found,) = api.get(f"incidents/{incident}").json["used_by"]
    assert (found["type"], found["name"]) == ("route", "edge")
    assert found["pointer"] == "/virtual_hosts/0/routes/0/route/cluster"


def test_incident__quarantined_and_released__the_builder_follows(api: Caller, incident: str) -> None:
    opened = api.post(f"incidents/{incident}/quarantine", {"reason": "breaks pay"})
    rebuild()
    quarantined = api.get("environments/default/resources").json["results"][0]
    released = api.post(f"incidents/{incident}/release", {"reason": "it was the disk"})
    again = api.post(f"incidents/{incident}/release", {"reason": "it was the disk"})

    assert (opened.status, released.status) == (202, 202)
    assert opened.json["kind"] == "quarantine"
    assert opened.headers["Location"] == f"/api/v1/changes/{opened.json['id']}"
    assert quarantined["quarantined"]
    assert again.json == {"changed": False}
    assert not api.get("environments/default/resources").json["results"][0]["quarantined"]


def test_incident__new_state__is_kept_if_it_may_be(api: Caller, incident: str) -> None:
    assert api.patch(f"incidents/{incident}", {"state": "ignored"}).json["state"] == "ignored"
    assert_problem(api.patch(f"incidents/{incident}", {"state": "resolved"}), 409)
    assert_problem(api.patch(f"incidents/{incident}", {"state": "gone"}), 422, "XDS1015")
    assert_problem(api.patch(f"incidents/{incident}", {}), 422, "XDS1040")


@pytest.mark.parametrize(
    "body", [{}, {"reason": ""}, {"reason": "x" * 501}, {"reason": "a\nb"}, {"reason": "x", "force": True}]
)
@pytest.mark.parametrize("action", ["quarantine", "release"])
def test_incident__action_without_a_sound_reason__422_and_nothing_done(
    api: Caller, incident: str, action: str, body: object
) -> None:
    assert_problem(api.post(f"incidents/{incident}/{action}", body), 422)
    assert not api.get(f"incidents/{incident}").json["quarantined"]


ACTIONS: list[Callable[[Caller, str], object]] = [
    lambda who, incident: who.patch(f"incidents/{incident}", {"state": "ignored"}),
    lambda who, incident: who.post(f"incidents/{incident}/quarantine", {"reason": "r"}),
    lambda who, incident: who.post(f"incidents/{incident}/release", {"reason": "r"}),
    lambda who, incident: who.post(f"incidents/{incident}/assign", {"person": None}),
    lambda who, incident: who.post(f"incidents/{incident}/mute", {"until": "1h", "reason": "r"}),
    lambda who, incident: who.post(f"incidents/{incident}/unmute", None),
]


@pytest.mark.parametrize("act", ACTIONS)
@pytest.mark.parametrize("role", [role for role in Role if role not in (Role.OPERATOR, Role.ADMIN)])
def test_incident__action_without_the_role__403(
    incident: str, act: Callable[[Caller, str], object], role: Role
) -> None:
    assert_problem(act(caller(Scope(role, "default")), incident), 403)  # type: ignore[arg-type]  # an Answer


@pytest.mark.parametrize("act", [*ACTIONS, lambda who, incident: who.get(f"incidents/{incident}")])
def test_incident__of_another_environment_or_none__404(
    api: Caller, stranger: Caller, incident: str, act: Callable[[Caller, str], object]
) -> None:
    assert_problem(act(stranger, incident), 404)  # type: ignore[arg-type]  # an Answer
    assert_problem(act(api, "00000000-0000-0000-0000-000000000000"), 404)  # type: ignore[arg-type]
    assert_problem(act(api, "no-such-id"), 404)  # type: ignore[arg-type]


def test_audit__pages_and_filters__newest_first(api: Caller) -> None:
    for name in "abc":
        api.put(
            f"environments/default/resources/cluster/{name}?message={name}", cluster(name), X_Request_ID=f"r-{name}"
        )

    first = api.get("audit?verb=change.saved&limit=2").json
    second = api.get(first["next"].partition("/api/v1/")[2]).json
    one = api.get("audit?request_id=r-b&environment=default").json["results"]

    assert [event["detail"]["message"] for page in (first, second) for event in page["results"]] == ["c", "b", "a"]
    assert second["next"] is None
    assert [event["request_id"] for event in one] == ["r-b"]
    assert_problem(api.get("audit?after=x"), 422)
    assert_problem(api.get("audit?environment=never-was"), 404)


def test_audit__what_belongs_to_no_environment__is_for_administrators_of_all(api: Caller, stranger: Caller) -> None:
    assert any(event["environment"] is None for event in api.get("audit").json["results"])
    assert all(event["environment"] == "prod" for event in stranger.get("audit").json["results"])
