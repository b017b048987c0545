"""Where a request goes, over HTTP: by what is published, by what a client has, and who may ask."""

from collections.abc import Callable
from typing import Any

import pytest

from adsserver.engine.body import EMPTY_BODY
from adsserver.engine.holdings import BodyGround, Holdings
from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.guarding import Consent
from controlplane.catalog.manifests import manifest_of
from controlplane.catalog.models import Revision
from controlplane.catalog.selectors import resource_get
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.snapshots.models import SnapshotRow
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import Fleet, publish, rebuild
from tests.support.facts import subscribed
from tests.support.manifests import Tree, api_listener, cluster, endpoints, listener
from xdscore.access import Effect
from xdscore.holdings import Holding, HoldingState
from xdscore.resource_types import LISTENER, by_word
from xdscore.schema.yaml_out import yaml_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
WAY = "environments/default/requests/explain"
PAY = {"authority": "shop.example", "path": "/pay"}


def shop(*routes: dict[str, object]) -> Tree:
    """A route configuration with a virtual host for the shop, and one for everything else."""
    hosts = [
        {"name": "other", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "direct_response": {"status": 404}}]},
        {"name": "shop", "domains": ["shop.example"], "routes": list(routes)},
    ]
    return {
        "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        "name": "shop",
        "virtual_hosts": hosts,
    }


def to(name: str, **match: object) -> dict[str, object]:
    return {"match": match or {"prefix": "/"}, "route": {"cluster": name}}


CANARY = to("canary", path="/pay", headers=[{"name": "x-canary", "string_match": {"exact": "1"}}])


@pytest.fixture
def api() -> Caller:
    """An HTTP listener and a gRPC target, whose routes lead to two clusters."""
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    publish(
        *(listener("edge", "shop", 8080), api_listener("shop.internal", "shop"), shop(CANARY, to("pay"))),
        *(cluster("pay", eds=True), cluster("canary", eds=True)),
        *(endpoints("pay", 9000, 9001), endpoints("canary", 9002)),
    )
    return caller(*ADMIN_SCOPES)


def lines_of(word: str, name: str) -> dict[str, int]:
    """The number of each line of a resource's YAML; of equal ones the last."""
    content = resource_get(environment_key="default", kind=by_word[word], name=name)
    lines = yaml_of(manifest_of(content)).splitlines()
    return {line.strip(): number for number, line in enumerate(lines, 1)}


def asked(api: Caller, **body: object) -> Any:
    answer = api.post(WAY, PAY | body)
    assert answer.status == 200, answer.content
    return answer.json


def texts(found: Any) -> dict[str, str]:
    return {rung["title"]: rung["text"] for rung in found["rungs"]}


def test_way__of_what_is_published__is_told_to_the_letter_with_who_lost_and_where(api: Caller) -> None:
    found = asked(api)

    rungs = found.pop("rungs")
    assert found == {
        "answer": "routed",
        "listener": "edge",
        "filter_chain": "filter_chains[0]",
        "route": "shop",
        "virtual_host": "shop",
        "route_index": 1,
        "cluster": "pay",
        "endpoints": [
            {
                "address": f"127.0.0.1:{9000 + index}",
                "health": "UNKNOWN",
                "locality": "local",
                "type": "endpoint",
                "resource": "pay",
                "pointer": f"/endpoints/0/lb_endpoints/{index}",
                "line": lines_of("endpoint", "pay")[f"port_value: {9000 + index}"] - 4,
            }
            for index in range(2)
        ],
        "unsupported": [],
    }
    [lost] = next(rung for rung in rungs if rung["title"] == "route")["lost"]
    assert lost == {
        "name": "0",
        "text": "wants the header 'x-canary', which the request does not have",
        "type": "route",
        "resource": "shop",
        "pointer": "/virtual_hosts/1/routes/0/match/headers/0/string_match",
        "line": lines_of("route", "shop")["string_match:"],
    }


def test_way__each_choice__has_the_line_of_its_place_in_the_yaml_that_is_shown(api: Caller) -> None:
    rungs = {rung["title"]: rung for rung in asked(api)["rungs"]}

    route = lines_of("route", "shop")
    assert rungs["view"]["line"] is None
    assert rungs["listener"]["line"] == 1
    assert rungs["filter chain"]["line"] == lines_of("listener", "edge")["- filters:"]
    assert rungs["virtual host"]["line"] == route["- shop.example"]
    assert rungs["route"]["line"] == route["path: /pay"] + 7
    assert rungs["cluster"]["line"] == route["cluster: pay"]


def test_way__of_a_resource_in_a_wrapper__leads_from_the_root_of_its_manifest(api: Caller) -> None:
    wrapper = {"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "name": "shop"}
    wrapped = wrapper | {"resource": shop(CANARY) | {"name": "of its own"}}
    assert api.put("environments/default/resources/route/shop", wrapped).status == 202
    rebuild()

    last = asked(api)["rungs"][-1]

    pointer = "/resource/virtual_hosts/1/routes/0/match/headers/0/string_match"
    assert [(each["pointer"], each["line"]) for each in last["lost"]] == [
        (pointer, lines_of("route", "shop")["string_match:"])
    ]


def test_way__with_the_header_that_a_route_wants__goes_there(api: Caller) -> None:
    found = asked(api, headers={"X-Canary": "1"})

    assert (found["cluster"], found["route_index"]) == ("canary", 0)


def test_way__nothing_takes_it__is_refused_with_each_reason(api: Caller) -> None:
    publish(shop(CANARY, to("pay", prefix="/cart")))

    found = asked(api)

    assert (found["answer"], found["route_index"], "cluster" in found) == ("refused", None, False)
    last = found["rungs"][-1]
    assert last["text"] == "None of the 2 routes of virtual host 'shop' takes it, so that the answer is 404."
    assert [each["text"] for each in last["lost"]] == [
        "wants the header 'x-canary', which the request does not have",
        "wants a path that begins with '/cart'",
    ]


def test_way__of_a_weighted_route__has_the_share_of_each_cluster(api: Caller) -> None:
    weights = [{"name": "pay", "weight": 3}, {"name": "canary", "weight": 1}]
    publish(shop({"match": {"prefix": "/"}, "route": {"weighted_clusters": {"clusters": weights}}}))

    found = asked(api)

    there = "/virtual_hosts/1/routes/0/route/weighted_clusters/clusters"
    assert [(each["cluster"], each["percent"], each["pointer"], each["line"]) for each in found["weighted"]] == [
        (name, percent, f"{there}/{index}/name", lines_of("route", "shop")[f"- name: {name}"])
        for index, (name, percent) in enumerate((("pay", 75.0), ("canary", 25.0)))
    ]
    assert "cluster" not in found
    assert len(found["endpoints"]) == 3


def test_way__of_a_grpc_target__is_chosen_as_grpc_does(api: Caller) -> None:
    found = asked(api, authority="shop.internal", path="/pay.Pay/Charge")

    assert (found["listener"], found["virtual_host"], found["answer"]) == ("shop.internal", "other", "refused")
    assert texts(found)["action"] == "The route sends to no cluster, so that gRPC fails the call (UNAVAILABLE)."


def test_way__at_an_earlier_epoch__is_that_of_then(api: Caller) -> None:
    before = SnapshotRow.objects.latest("epoch").epoch
    publish(shop(to("canary")))

    assert asked(api)["cluster"] == "canary"
    assert asked(api, at=before)["cluster"] == "pay"
    assert texts(asked(api, at=before))["view"] == f"By what is published in epoch {before}, whoever may read it."
    assert_problem(api.post(WAY, PAY | {"at": 99}), 404)


def test_way__of_a_client__goes_by_what_it_acknowledged_and_not_by_what_is_published(api: Caller) -> None:
    fleet = Fleet(1, kind=LISTENER)
    first = Revision.objects.get(resource__name="shop", resource__type="route")
    publish(shop(to("canary")))
    second = Revision.objects.filter(resource__name="shop", resource__type="route").latest("number")
    holds(fleet, "listener", edge=acked("listener", "edge"))
    holds(fleet, "route", shop=Holding(HoldingState.NACKED, second.version, first.version))
    holds(fleet, "cluster", pay=acked("cluster", "pay"))
    holds(fleet, "endpoint", pay=acked("endpoint", "pay"))

    found = asked(api, client="node-1")

    assert (found["cluster"], len(found["endpoints"])) == ("pay", 2)
    assert texts(found)["view"] == (
        "By what the client 'node-1' has acknowledged. It goes on with an earlier revision of route 'shop' (NACKED)."
    )
    assert asked(api)["cluster"] == "canary"


def test_way__of_a_client_that_was_told_an_error__is_refused_with_it(api: Caller) -> None:
    fleet = Fleet(1, kind=LISTENER)
    holds(fleet, "listener", edge=acked("listener", "edge"))
    holds(fleet, "route", shop=Holding(HoldingState.ERROR_SENT, "", "", "XDS2103", "denied"))

    found = asked(api, client="node-1")

    assert found["answer"] == "refused"
    assert "XDS2103" in texts(found)["route configuration"]


def test_way__of_a_client_that_did_not_answer_yet__is_unknown(api: Caller) -> None:
    fleet = Fleet(1, kind=LISTENER)
    holds(fleet, "listener", edge=acked("listener", "edge"))
    version = acked("route", "shop").version
    holds(fleet, "route", shop=Holding(HoldingState.SENT, version))

    assert asked(api, client="node-1")["answer"] == "unknown"


def test_way__of_a_client_that_left__is_what_it_would_be_sent_by_the_access_rules(api: Caller) -> None:
    fleet = Fleet(1, kind=LISTENER)
    for each in fleet.streams:
        fleet.buffer.closed(each, "it went")
    fleet.write()
    assert asked(api, client="node-1")["cluster"] == "pay"

    draft = RuleDraft(Effect.DENY, "shop", types=("route",))
    rule_create(environment_key="default", draft=draft, actor=SYSTEM, consent=Consent(accept_loss=9))
    rebuild()

    found = asked(api, client="node-1")
    assert found["answer"] == "refused"
    assert "denies RouteConfiguration 'shop'" in texts(found)["route configuration"]
    # Without a client it is what is published, whoever may read it.
    assert asked(api)["cluster"] == "pay"


def test_way__of_another_environment__is_not_told(api: Caller, as_viewer: Callable[[str], Caller]) -> None:
    Fleet(1, kind=LISTENER)

    assert as_viewer("default").post(WAY, PAY | {"client": "node-1"}).status == 200
    assert_problem(as_viewer("prod").post(WAY, PAY), 404)
    there = as_viewer("prod").post("environments/prod/requests/explain", PAY | {"client": "node-1"})
    assert_problem(there, 404)
    assert_problem(api.post("environments/prod/requests/explain", PAY | {"client": "node-1"}), 404)


@pytest.fixture
def as_viewer() -> Callable[[str], Caller]:
    return lambda environment: caller(Scope(Role.VIEWER, environment))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"path": "pay"}, {"path": ""}, {"authority": ""}, {"authority": "shop/x"}, {"scheme": "ftp"}, {"at": 0}),
        *({"headers": {":path": "/"}}, {"headers": {"x": 1}}, {"headers": ["x"]}, {"headers": {"x": "a\nb"}}),
        *({"headers": {"a": "1", "A": "2"}}, {"method": "GET /"}, {"cookies": "x"}, {"headers": {"x": "y" * 9000}}),
    ],
)
def test_request__that_nobody_can_make__422(api: Caller, wrong: dict[str, object]) -> None:
    assert_problem(api.post(WAY, PAY | wrong), 422)


def holds(fleet: Fleet, word: str, **has: Holding) -> None:
    """What everybody in the fleet says that it has of a type."""
    kind = by_word[word]
    for each in fleet.streams:
        fleet.buffer.learnt(each, subscribed(*has, kind=kind))
        fleet.buffer.holds(each, kind, Holdings(BodyGround(EMPTY_BODY, tells=True), has))
    fleet.write()


def acked(word: str, name: str) -> Holding:
    """What a client has that acknowledged the newest revision."""
    version = Revision.objects.filter(resource__type=word, resource__name=name).latest("number").version
    return Holding(HoldingState.ACKED, version, version)
