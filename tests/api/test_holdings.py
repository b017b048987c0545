"""What each client has of each resource, by REST: of clients in miniature, with contents of real revisions."""

from datetime import timedelta
from urllib.parse import quote

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.api.answers import moment
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.clients.clock import database_now
from controlplane.clients.models import HoldingMove, Stream, Subscription
from controlplane.database.aliases import READER
from tests.api.conftest import Caller, assert_problem, caller
from tests.protocol.engine.world import World
from tests.services.incidents.fleet import publish, revision
from tests.support.held_fleet import Fleet, Member
from tests.support.manifests import cluster
from xdscore.resource_types import CLUSTER

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HOLDERS = "environments/default/resources/cluster/pay/clients"


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


def fleet_at_r1(*names: str) -> Fleet:
    """A fleet without members, which serves r1 of each of these clusters."""
    publish(*(cluster(name) for name in names))
    world = World()
    for name in names:
        world.serve(CLUSTER, name, revision(name, 1).version)
    return Fleet(world)


def moved_to_r2(fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="2s"))
    fleet.world.serve(CLUSTER, "pay", revision("pay", 2).version)
    fleet.publish()


@pytest.fixture
def three(environments: None) -> tuple[Member, Member, Member]:
    """One runs r2 of `pay`, one refuses it and goes on with r1, one was not sent anything of the `lost` it wants."""
    fleet = fleet_at_r1("cart", "pay")
    good, bad = fleet.join("pay", "cart", node_id="good"), fleet.join("pay", "cart", node_id="bad")
    other = fleet.join("lost", node_id="other")
    fleet.ack()
    moved_to_r2(fleet)
    fleet.ack(good)
    fleet.nack(bad, "pay: <no> such thing")
    fleet.write()
    return good, bad, other


def path_of(member: Member, **parameters: str) -> str:
    query = "&".join(f"{key}={quote(value)}" for key, value in parameters.items())
    return f"clients/{member.client}/resources?{query}"


def names(api: Caller, path: str) -> list[str]:
    return [each["name"] for each in api.get(path).json["results"]]


def test_client_resources__refused_acknowledged_and_told_an_error__rows_to_the_letter(
    api: Caller, three: tuple[Member, Member, Member]
) -> None:
    _, bad, other = three

    cart, pay = api.get(path_of(bad)).json["results"]
    (lost,) = api.get(path_of(other)).json["results"]

    r1, r2 = revision("pay", 1).version, revision("pay", 2).version
    assert pay.pop("since").endswith("Z")
    assert pay == {
        "type": "cluster",
        "name": "pay",
        "state": "NACKED",
        "revision": 2,
        "version": r2,
        "acked_revision": 1,
        "acked_version": r1,
        "code": None,
        "message": "pay: <no> such thing",
    }
    assert (cart["state"], cart["revision"], cart["acked_revision"], cart["message"]) == ("ACKED", 1, 1, None)
    assert (lost["state"], lost["code"]) == ("ERROR_SENT", "XDS2101")
    assert [lost[key] for key in ("revision", "version", "acked_revision", "acked_version")] == [None] * 4
    assert "XDS2101" in lost["message"]


def test_client_resources__filters__leave_what_was_asked_for(api: Caller, three: tuple[Member, Member, Member]) -> None:
    bad = three[1]

    assert names(api, path_of(bad, state="NACKED")) == ["pay"]
    assert names(api, path_of(bad, state="NACKED,ACKED")) == ["cart", "pay"]
    assert names(api, path_of(bad, name="AR")) == ["cart"]
    assert names(api, path_of(bad, type="listener")) == []
    assert names(api, path_of(bad, type=CLUSTER.url)) == ["cart", "pay"]


def test_client_resources__pages__keep_every_value_of_a_repeated_filter(
    api: Caller, three: tuple[Member, Member, Member]
) -> None:
    first = api.get(f"{path_of(three[1])}&state=ACKED&state=NACKED&limit=1").json
    second = api.get(first["next"].partition("/api/v1/")[2]).json

    assert [each["name"] for page in (first, second) for each in page["results"]] == ["cart", "pay"]
    assert second["next"] is None


def test_client_resources__name_of_a_client_with_a_character_that_cannot_be_printed__pages_go_on(
    api: Caller, environments: None
) -> None:
    fleet = Fleet(World())
    one = fleet.join("a\u00a0b", "c")
    fleet.write()

    first = api.get(f"{path_of(one)}&limit=1").json
    second = api.get(first["next"].partition("/api/v1/")[2])

    assert [each["name"] for each in second.json["results"]] == ["c"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("state=ACKED,acked,WELL", "'acked', 'WELL'"),
        ("type=cluster,clutser", "'clutser'"),
        ("at=yesterday", "must be a time"),
        ("at=24h", "must be a time"),
        ("at=2026-07-01T12:00:00", "offset from UTC"),
        ("at=9999-07-01T12:00:00Z", "is in the future"),
        ("at=2001-07-01T12:00:00Z", "kept for 24 h"),
        ("state=SENT&sate=SENT", "Did you mean 'state'"),
        (f"after={'x' * 5_000}", "at most 4096 characters"),
    ],
)
def test_client_resources__a_parameter_that_cannot_be__422_in_its_own_words(
    api: Caller, three: tuple[Member, Member, Member], query: str, words: str
) -> None:
    answer = api.get(f"clients/{three[0].client}/resources?{query}")

    assert_problem(answer, 422)
    assert words in answer.content.decode()


def test_client_resources__at_a_time__has_what_it_had_then(api: Caller, environments: None) -> None:
    fleet = fleet_at_r1("pay")
    one = fleet.join("pay")
    fleet.ack()
    fleet.write()
    an_hour_ago = database_now() - timedelta(hours=1)
    Stream.objects.update(opened_at=an_hour_ago)
    Subscription.objects.update(held_at=an_hour_ago)
    HoldingMove.objects.update(at=an_hour_ago)
    moved_to_r2(fleet)
    fleet.ack()
    fleet.write()

    now = api.get(path_of(one)).json["results"]
    then = api.get(path_of(one, at=moment(an_hour_ago + timedelta(minutes=1)))).json["results"]

    assert [each["revision"] for each in (*now, *then)] == [2, 1]


def test_client_resources__of_another_environment_or_none__404_in_the_same_words(
    stranger: Caller, three: tuple[Member, Member, Member]
) -> None:
    known, unknown = three[0].client, "0" * 32

    foreign, absent = (stranger.get(f"clients/{each}/resources") for each in (known, unknown))

    assert_problem(foreign, 404)
    assert foreign.json["detail"].replace(known, "") == absent.json["detail"].replace(unknown, "")


def test_resource_clients__in_several_states__are_counted_by_revision_and_listed(
    api: Caller, three: tuple[Member, Member, Member]
) -> None:
    found = api.get(HOLDERS).json

    assert found["counts"] == {"ACKED": {"r2": 1}, "NACKED": {"r2": 1}}
    assert {(each["node_id"], each["state"], each["acked_revision"]) for each in found["results"]} == {
        ("good", "ACKED", 2),
        ("bad", "NACKED", 1),
    }
    assert {each["client"] for each in found["results"]} == {three[0].client, three[1].client}
    assert found["next"] is None


def test_resource_clients__filters__narrow_the_rows_and_not_the_counts(
    api: Caller, three: tuple[Member, Member, Member]
) -> None:
    refusing, spelt, plain, first = (
        api.get(f"{HOLDERS}?{query}").json for query in ("state=NACKED", "revision=r2", "revision=2", "revision=1")
    )

    assert [each["node_id"] for each in refusing["results"]] == ["bad"]
    assert [len(each["results"]) for each in (spelt, plain, first)] == [2, 2, 0]
    assert first["counts"] == refusing["counts"] == {"ACKED": {"r2": 1}, "NACKED": {"r2": 1}}
    assert_problem(api.get(f"{HOLDERS}?revision=newest"), 422)
    assert_problem(api.get(f"{HOLDERS}?state=refused"), 422)


def test_resource_clients__pages__cover_everybody_once(api: Caller, three: tuple[Member, Member, Member]) -> None:
    first = api.get(f"{HOLDERS}?limit=1").json
    second = api.get(first["next"].partition("/api/v1/")[2]).json

    assert {each["node_id"] for page in (first, second) for each in page["results"]} == {"good", "bad"}
    assert first["counts"] == second["counts"]
    assert second["next"] is None


def test_resource_clients__name_that_nobody_published__says_what_they_were_told(
    api: Caller, three: tuple[Member, Member, Member]
) -> None:
    found = api.get("environments/default/resources/cluster/lost/clients").json
    nobody = api.get("environments/default/resources/cluster/never/clients").json

    assert found["counts"] == {"ERROR_SENT": {"XDS2101": 1}}
    assert (nobody["counts"], nobody["results"]) == ({}, [])


@pytest.mark.parametrize(
    "spelt",
    ["xdstp://a/envoy.config.cluster.v3.Cluster/x/y", "xdstp:%2F%2Fa%2Fenvoy.config.cluster.v3.Cluster%2Fx%2Fy"],
)
def test_resource_clients__name_with_slashes__encoded_or_not__is_that_resource(
    api: Caller, environments: None, spelt: str
) -> None:
    fleet = Fleet(World())
    fleet.join("xdstp://a/envoy.config.cluster.v3.Cluster/x/y", node_id="me")
    fleet.write()

    found = api.get(f"environments/default/resources/cluster/{spelt}/clients").json

    assert [each["node_id"] for each in found["results"]] == ["me"]


def test_resource_clients__of_another_environment__shows_nobody_of_this_one(
    stranger: Caller, three: tuple[Member, Member, Member]
) -> None:
    own = stranger.get(HOLDERS.replace("default", "prod")).json

    assert (own["counts"], own["results"]) == ({}, [])
    assert_problem(stranger.get(HOLDERS), 404)
