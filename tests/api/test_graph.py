"""The graph over HTTP: its three forms, its bounds, and whose it is."""

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster, route

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
GRAPH = "environments/default/graph"


@pytest.fixture
def api() -> Caller:
    """A route to a cluster, one to a cluster that is missing, and two clients that ask for clusters."""
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    publish(cluster("pay"), route("edge", "pay"), route("lost", "gone", domain="lost.example"))
    Fleet(2).accept(held("pay", 1))
    return caller(*ADMIN_SCOPES)


def test_graph__of_an_environment__nodes_edges_and_counts(api: Caller) -> None:
    found = api.get(GRAPH).json

    assert [(node["type"], node["name"], node["state"], node["asked_by"]) for node in found["nodes"]] == [
        ("cluster", "gone", "missing", 0),
        ("cluster", "pay", "published", 2),
        ("route", "edge", "unused", 0),
        ("route", "lost", "stalled", 0),
    ]
    assert found["edges"][0] == {
        "source": {"type": "route", "name": "edge"},
        "target": {"type": "cluster", "name": "pay"},
        "pointer": "/virtual_hosts/0/routes/0/route/cluster",
    }
    assert found["counts"] == {"published": 1, "stalled": 1, "missing": 1, "unused": 1}
    assert (found["left_out"], found["more_left_out"]) == (0, False)


def test_graph__resource_that_was_applied_among_others__its_pointer_leads_into_its_own_manifest(api: Caller) -> None:
    applied = [cluster("new"), route("resources", "new", domain="new.example")]
    api.post("environments/default/apply", {"resources": applied, "message": "two"})

    found = api.get(f"{GRAPH}?type=route&name=resources").json["edges"]

    assert [edge["pointer"] for edge in found] == ["/virtual_hosts/0/routes/0/route/cluster"]


def test_graph__around_a_resource_and_of_a_client__is_the_part(api: Caller) -> None:
    around = api.get(f"{GRAPH}?type=cluster&name=pay&depth=1").json
    seen = api.get(f"{GRAPH}?client=node-1").json

    assert [node["name"] for node in around["nodes"]] == ["pay", "edge"]
    assert [(node["name"], node["sight"]) for node in seen["nodes"]] == [("pay", "served")]
    assert api.get(f"{GRAPH}?limit=2").json["left_out"] == 2


@pytest.mark.parametrize(
    ("form", "media", "begins"), [("dot", "text/vnd.graphviz", "digraph"), ("svg", "image/svg+xml", "<?xml")]
)
def test_graph__as_a_file__is_never_shown_as_a_page_of_ours(api: Caller, form: str, media: str, begins: str) -> None:
    answer = api.get(f"{GRAPH}?format={form}")

    assert answer.headers["Content-Type"].startswith(media)
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.content.decode().startswith(begins)


def test_graph__question_that_cannot_be__is_refused(api: Caller) -> None:
    for question in ("depth=9", "limit=0", "limit=12001", "format=png", "type=nothing", "nmae=pay"):
        assert_problem(api.get(f"{GRAPH}?{question}"), 422)
    assert_problem(api.get(f"{GRAPH}?type=cluster&name=nothing"), 404)
    assert_problem(api.get(f"{GRAPH}?client=nobody"), 404)


def test_graph__client_of_another_environment__is_not_found_there(api: Caller) -> None:
    stranger = caller(Scope(Role.VIEWER, "prod"))

    known = api.get("clients").json["results"][0]["id"]

    assert_problem(stranger.get(f"environments/prod/graph?client={known}"), 404)
    assert_problem(stranger.get("environments/prod/graph?client=node-1"), 404)
    assert_problem(stranger.get(GRAPH), 404)
