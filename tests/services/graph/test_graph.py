"""The graph of an environment: what it holds, how each node stands, and that its numbers are those of other pages."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from adsserver.engine.events import NamedContent
from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.catalog.models import Revision
from controlplane.catalog.selectors import resource_list
from controlplane.clients.coverage import Coverage, coverage_of
from controlplane.clients.holdings import resource_holders
from controlplane.common.errors import NotFound
from controlplane.database.aliases import READER
from controlplane.graph import selectors
from controlplane.graph.model import Graph, Node, NodeState, Sight
from controlplane.graph.selectors import Scope, client_meant, graph_read
from controlplane.incidents.services import digest
from controlplane.status.selectors import standings_of
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild
from tests.support.facts import acknowledged, subscribed
from tests.support.manifests import cluster, endpoints, listener, route
from xdscore.access import Effect
from xdscore.holdings import HoldingState
from xdscore.resource_types import CLUSTER, LISTENER, ROUTE, SECRET
from xdscore.snapshot import Content

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]
HERE = "default"
CHAIN = [("listener", "web"), ("route", "edge"), ("cluster", "pay"), ("endpoint", "pay")]


def chain() -> None:
    """A listener that leads to endpoints, a cluster beside it, and a route to a cluster that is not there."""
    publish(
        listener("web", "edge", 8080),
        route("edge", "pay"),
        cluster("pay", eds=True),
        endpoints("pay", 8080),
        cluster("alone"),
        route("broken", "gone"),
    )


def nodes(graph: Graph) -> Mapping[tuple[str, str], Node]:
    return {node.key: node for node in graph.nodes}


def edges(graph: Graph) -> list[tuple[str, str]]:
    return [("/".join(edge.source), "/".join(edge.target)) for edge in graph.edges]


def test_graph__of_an_environment__has_every_resource_and_what_is_missing() -> None:
    chain()

    graph = graph_read(scope=Scope(HERE))

    assert edges(graph) == [
        ("cluster/pay", "endpoint/pay"),
        ("listener/web", "route/edge"),
        ("route/broken", "cluster/gone"),
        ("route/edge", "cluster/pay"),
    ]
    found = nodes(graph)
    assert found.keys() == {*CHAIN, ("cluster", "alone"), ("route", "broken"), ("cluster", "gone")}
    assert found["cluster", "gone"].state is NodeState.MISSING
    assert found["cluster", "gone"].revision is None
    assert found["route", "broken"].state is NodeState.STALLED
    assert found["cluster", "alone"].state is NodeState.UNUSED
    assert found["cluster", "pay"].state is NodeState.PUBLISHED
    assert (found["cluster", "pay"].uses, found["cluster", "pay"].used_by, found["cluster", "pay"].more) == (1, 1, 0)


@pytest.mark.parametrize(("kind", "name"), [(LISTENER, "web"), (ROUTE, "edge"), (CLUSTER, "pay")])
def test_graph__around_any_resource_of_a_chain__is_the_whole_chain(kind: object, name: str) -> None:
    chain()

    graph = graph_read(scope=Scope(HERE, kind, name))  # type: ignore[arg-type]

    assert nodes(graph).keys() == set(CHAIN)
    assert len(graph.focus) == 1


def test_graph__one_step_around_a_resource__says_what_lies_beyond() -> None:
    chain()

    graph = graph_read(scope=Scope(HERE, ROUTE, "edge", depth=1))

    assert nodes(graph).keys() == set(CHAIN[:3])
    assert nodes(graph)["cluster", "pay"].more == 1


def test_graph__around_a_name_that_does_not_exist__shows_who_refers_to_it() -> None:
    chain()

    assert edges(graph_read(scope=Scope(HERE, CLUSTER, "gone"))) == [("route/broken", "cluster/gone")]
    with pytest.raises(NotFound, match="no resource refers to one"):
        graph_read(scope=Scope(HERE, CLUSTER, "nothing"))


def test_graph__searched__begins_with_what_fits() -> None:
    chain()

    assert nodes(graph_read(scope=Scope(HERE, text="broke"))).keys() == {("route", "broken"), ("cluster", "gone")}
    assert graph_read(scope=Scope(HERE, text="nothing is called so")).nodes == ()


def test_graph__too_large__counts_what_is_left_out_and_keeps_what_is_in_trouble() -> None:
    publish(*(cluster(f"c{number}") for number in range(8)), route("z-broken", "gone"), endpoints("e", 1))

    graph = graph_read(scope=Scope(HERE), limit=4)

    assert graph.left_out == 7  # six clusters, and the one that is missing
    assert nodes(graph)["route", "z-broken"].state is NodeState.STALLED
    assert {"cluster", "endpoint"} <= {node.type for node in graph.nodes}


def test_graph__around_a_resource_that_many_need__counts_what_is_left_out() -> None:
    publish(cluster("pay"), *(route(f"r{number}", "pay", domain=f"{number}.example") for number in range(6)))

    graph = graph_read(scope=Scope(HERE, CLUSTER, "pay"), limit=3)

    assert (len(graph.nodes), graph.left_out, graph.more_left_out) == (3, 4, True)
    assert nodes(graph)["cluster", "pay"].more == 4
    assert nodes(graph)["cluster", "pay"].used_by == 6


@pytest.mark.parametrize("asked_one_by_one", [True, False])
def test_states__of_every_node__are_those_of_the_resources_pages(
    monkeypatch: pytest.MonkeyPatch, *, asked_one_by_one: bool
) -> None:
    # Of a large graph those in trouble are read, of a small one each.
    monkeypatch.setattr(selectors, "_MAX_NAMED", 1_000 if asked_one_by_one else 0)
    chain()
    fleet = Fleet(2)
    fleet.accept(held("alone", 1))
    digest()
    publish(cluster("alone", connect_timeout="2s"))
    fleet.refuse(fleet.send(held("alone", 2)), "cluster(s) alone: no", suspects=(held("alone", 2),), who=slice(1))
    digest()
    publish(cluster("later"), built=False)

    graph = graph_read(scope=Scope(HERE))

    keys = [node.key for node in graph.nodes if node.exists]
    told = {
        key: standing.status.status.value for key, standing in standings_of(environment_key=HERE, keys=keys).items()
    }
    shown = {node.key: node.state.value for node in graph.nodes if node.exists}
    assert {key: "published" if state == "unused" else state for key, state in shown.items()} == told
    assert set(told.values()) >= {"refused", "stalled", "waiting", "published"}


def test_asked_by__of_every_node__is_the_number_on_the_resources_pages() -> None:
    chain()
    rule_create(environment_key=HERE, draft=RuleDraft(Effect.DENY, "alone"), actor=DANA)
    rebuild()
    three = Fleet(3)
    three.accept(pay(1))
    publish(cluster("pay", eds=True, connect_timeout="2s"))
    sent = three.send(pay(2))
    three.refuse(sent, "cluster(s) pay: no", suspects=(pay(2),), who=slice(1))
    # The second client took it and has another stream that did not answer; the third took it.
    again = replace(three.streams[1], id="ab" * 16)
    three.buffer.opened(again)
    three.buffer.learnt(again, subscribed(wildcard=True))
    three.send(pay(2), to=[again])
    for stream in three.streams[1:]:
        three.buffer.learnt(stream, acknowledged(sent))
    three.write()
    Fleet(1, first=20).learn(subscribed("pay", "alone", "gone"))
    Fleet(2, first=10, kind=ROUTE).learn(subscribed("edge", kind=ROUTE))

    graph = graph_read(scope=Scope(HERE))

    asked = {node.key: node.asked_by for node in graph.nodes}
    rows = resource_list(environment_key=HERE)
    versions = {(row.type, row.name): revision_version(row.type, row.name) for row in rows}
    covered = coverage_of(environment_key=HERE, versions=versions)
    assert {key: asked[key] for key in versions} == {key: each.asking for key, each in covered.items()}
    for key, asking in asked.items():
        counts, _ = resource_holders(environment_key=HERE, key=key)
        assert asking == sum(sum(each.values()) for each in counts.values()), key
        if key in covered:
            assert covered[key].running == counts.get(HoldingState.ACKED, {}).get("r2" if key[1] == "pay" else "r1", 0)
            assert covered[key].nacked == sum(counts.get(HoldingState.NACKED, {}).values())
            assert covered[key].denied == counts.get(HoldingState.ERROR_SENT, {}).get("XDS2103", 0)
    assert covered["cluster", "pay"] == Coverage(asking=4, running=1, nacked=1)
    assert covered["cluster", "alone"] == Coverage(asking=1, denied=1)
    assert (asked["cluster", "gone"], asked["route", "edge"]) == (1, 2)


def pay(number: int) -> NamedContent:
    """What a response holds of a revision of the cluster `pay`; endpoints have the same name."""
    row = Revision.objects.get(resource__type="cluster", resource__name="pay", number=number)
    return NamedContent("pay", Content(bytes(16), row.version, 1))


def revision_version(word: str, name: str) -> str:
    """The version on the wire of the newest revision."""
    return Revision.objects.filter(resource__type=word, resource__name=name).latest("number").version


def test_graph__of_a_client__is_what_it_asks_for_and_what_that_needs() -> None:
    chain()
    publish(cluster("private"))
    rule_create(environment_key=HERE, draft=RuleDraft(Effect.DENY, "private"), actor=DANA)
    rebuild()
    Fleet(1)

    graph = graph_read(scope=Scope(HERE, client=client_meant(environment_key=HERE, text="node-1")))

    found = {key: node.sight for key, node in nodes(graph).items()}
    assert found == {
        ("cluster", "alone"): Sight.SERVED,
        ("cluster", "pay"): Sight.SERVED,
        ("endpoint", "pay"): Sight.NOT_ASKED,
    }


def test_graph__of_a_client_that_stopped_halfway__shows_what_it_did_not_ask_for() -> None:
    chain()
    Fleet(1, kind=ROUTE).learn(subscribed("edge", kind=ROUTE))

    found = nodes(graph_read(scope=Scope(HERE, client=client_meant(environment_key=HERE, text="node-1"))))

    assert {key: node.sight for key, node in found.items()} == {
        ("route", "edge"): Sight.SERVED,
        ("cluster", "pay"): Sight.NOT_ASKED,
    }
    assert (found["cluster", "pay"].uses, found["cluster", "pay"].more) == (1, 1)


def test_graph__around_a_resource_as_a_client_sees_it__leaves_out_what_it_does_not_see() -> None:
    chain()
    Fleet(1)

    client = client_meant(environment_key=HERE, text="node-1")
    graph = graph_read(scope=Scope(HERE, CLUSTER, "pay", client=client))

    # It asks for clusters alone: the route and the listener that lead there are none of its.
    assert nodes(graph).keys() == {("cluster", "pay"), ("endpoint", "pay")}


def test_graph__of_an_environment__asks_no_more_queries_for_more_resources() -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            graph_read(scope=Scope(HERE))
        return len(queries)

    chain()
    Fleet(2)
    graph_read(scope=Scope(HERE))
    few = asked()
    publish(*(cluster(f"c{number}") for number in range(40)))

    assert asked() <= few <= 15
    assert SECRET.word not in {node.type for node in graph_read(scope=Scope(HERE)).nodes}


@pytest.mark.parametrize("every_link", [True, False])
@pytest.mark.parametrize("limit", [1, 100])
def test_graph__of_many_names__is_the_same_whether_some_or_all_references_are_read(
    monkeypatch: pytest.MonkeyPatch, *, every_link: bool, limit: int
) -> None:
    chain()
    publish(*(cluster(f"c{number}") for number in range(3)), route("z-broken", "absent", domain="z.example"))
    Fleet(1, kind=ROUTE).learn(subscribed("edge", kind=ROUTE))
    scopes = [Scope(HERE), Scope(HERE, client=client_meant(environment_key=HERE, text="node-1"))]
    expected = [graph_read(scope=scope, limit=limit) for scope in scopes]

    monkeypatch.setattr(selectors, "_MAX_NAMED", 0 if every_link else 1_000)

    assert [graph_read(scope=scope, limit=limit) for scope in scopes] == expected
