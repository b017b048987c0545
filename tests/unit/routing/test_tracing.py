"""The way of a request through listener, routes and clusters, where a real Envoy is not asked."""

from typing import Any

import pytest

from tests.support.manifests import Tree, api_listener, cluster, endpoints, listener, route
from tests.support.routing import answer, held
from xdscore.routing.values import Answer, Request, State, Traced

TYPE = "type.googleapis.com/"


def routes(*entries: dict[str, Any], **more: object) -> Tree:
    host = {"name": "all", "domains": ["*"], "routes": list(entries), **more}
    return {"@type": TYPE + "envoy.config.route.v3.RouteConfiguration", "name": "r", "virtual_hosts": [host]}


def to(name: str, **match: object) -> dict[str, Any]:
    return {"match": match or {"prefix": "/"}, "route": {"cluster": name}}


def traced(*manifests: Tree, listener_name: str = "", request: Request | None = None) -> Traced:
    return answer(request or Request("shop.example"), held(*manifests), listener_name)


EDGE = listener("edge", "r", 8080)
GRPC = api_listener("shop.example", "r")
CALL = Request("shop.example", "/pay.Pay/Charge", headers={"x-user": "7", "trace-bin": "AAA="})
PAY = (cluster("pay", eds=True), endpoints("pay", 9000))


def last(found: Traced) -> str:
    return found.rungs[-1].text


def test_way__whole__has_a_rung_for_each_choice() -> None:
    found = traced(EDGE, routes(to("pay")), *PAY)

    assert [rung.title for rung in found.rungs] == [
        *("listener", "filter chain", "route configuration", "virtual host", "route", "cluster", "endpoints of pay"),
    ]
    assert {rung.state for rung in found.rungs} == {State.OK}
    assert (found.answer, [each.address for each in found.endpoints]) == (Answer.ROUTED, ["127.0.0.1:9000"])


@pytest.mark.parametrize(
    ("manifests", "where", "said"),
    [
        ((), "listener", "There is no listener for it, and no gRPC target 'shop.example'."),
        ((EDGE,), "route configuration", "There is no route configuration 'r' for it: no such resource was published."),
        ((EDGE, routes(to("pay"))), "cluster", "It goes to cluster 'pay', of which there is none: no such resource"),
        ((EDGE, routes(to("pay")), PAY[0]), "endpoints of pay", "There are no endpoints 'pay'"),
    ],
)
def test_way__something_is_missing__ends_there_with_what(manifests: tuple[Tree, ...], where: str, said: str) -> None:
    found = traced(*manifests)

    assert found.answer is Answer.REFUSED
    assert (found.rungs[-1].title, found.rungs[-1].state) == (where, State.FAIL)
    assert last(found).startswith(said)


def test_listener__of_several__the_one_with_the_port_else_it_has_to_be_said() -> None:
    both = (EDGE, listener("other", "r", 9090), routes(to("pay")), *PAY)

    assert traced(*both, request=Request("shop.example:9090")).listener == "other"
    assert traced(*both).answer is Answer.UNKNOWN
    assert traced(*both, listener_name="other").listener == "other"


def test_fraction__of_a_route__is_a_share_and_the_rest_goes_on() -> None:
    share = {"prefix": "/", "runtime_fraction": {"default_value": {"numerator": 30}, "runtime_key": "canary"}}
    found = traced(EDGE, routes(to("canary", **share), to("pay")), *PAY, cluster("canary"))

    assert {each.cluster: each.percent for each in found.shares} == {"pay": 70, "canary": 30}
    assert (found.route_index, found.answer) == (1, Answer.ROUTED)
    assert found.unsupported == ("route r /virtual_hosts/0/routes/0/match/runtime_fraction/runtime_key",)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (to("pay", prefix="/", filter_state=[{"key": "k", "string_match": {"exact": "v"}}]), "match/filter_state"),
        (to("pay", path_match_policy={"name": "t"}), "match/path_match_policy"),
        (to("pay", prefix="/", headers=[{"name": "x-request-id", "present_match": True}]), "match/headers/0/name"),
        ({"match": {"prefix": "/"}, "route": {"cluster_specifier_plugin": "p"}}, "route/cluster_specifier_plugin"),
        ({"match": {"prefix": "/"}, "filter_action": {}}, "filter_action"),
    ],
)
def test_field__that_is_not_judged__is_named_and_the_answer_is_unknown(entry: dict[str, Any], field: str) -> None:
    found = traced(EDGE, routes(entry, to("pay")), *PAY)

    assert found.answer is Answer.UNKNOWN
    assert found.unsupported == (f"route r /virtual_hosts/0/routes/0/{field}",)
    assert found.rungs[-1].state is State.UNKNOWN


def test_field__that_is_not_judged_of_a_route_that_loses_anyway__does_not_matter() -> None:
    entry = to("pay", path="/other", filter_state=[{"key": "k", "string_match": {"exact": "v"}}])

    assert traced(EDGE, routes(entry, to("pay")), *PAY).answer is Answer.ROUTED


def test_filters__that_may_change_the_request__are_named_in_their_order() -> None:
    edge: Any = listener("edge", "r", 8080)
    manager = edge["filter_chains"][0]["filters"][0]["typed_config"]
    kinds = {"lua": "lua.v3.Lua", "authz": "ext_authz.v3.ExtAuthz", "stats": "grpc_stats.v3.FilterConfig"}
    before = [
        {"name": name, "typed_config": {"@type": f"{TYPE}envoy.extensions.filters.http.{kind}"}}
        for name, kind in kinds.items()
    ]
    manager["http_filters"] = before + manager["http_filters"]

    found = traced(edge, routes(to("pay")), *PAY)

    [rung] = [each for each in found.rungs if each.title == "filters"]
    assert rung.text.endswith("in this order: 'lua', 'authz'.")


def test_winner__says_time_limit_retries_copies_and_rewritten_path() -> None:
    action = {
        "cluster": "pay",
        "prefix_rewrite": "/v2",
        "timeout": "0.25s",
        "retry_policy": {"retry_on": "5xx", "num_retries": 3},
        "request_mirror_policies": [{"cluster": "copy"}],
    }
    found = traced(EDGE, routes({"match": {"prefix": "/v1"}, "route": action}), *PAY, request=Request("x", "/v1/a?b"))

    [rung] = [each for each in found.rungs if each.title == "cluster"]
    assert rung.text == (
        "It goes to 'pay' (100 %). The path goes on as '/v2/a?b'. The time limit for an answer is 0.25 s. "
        "It is tried again up to 3 times on 5xx. Copies go to 'copy'."
    )


def test_virtual_host__on_demand__is_taken_by_its_own_name_else_it_is_not_judged() -> None:
    source = {"config_source": {"ads": {}, "resource_api_version": "V3"}}
    there = routes(to("pay")) | {"vhds": source, "virtual_hosts": []}
    host = {"@type": TYPE + "envoy.config.route.v3.VirtualHost", "name": "r/shop.example", "domains": ["shop.example"]}

    assert traced(EDGE, there, host | {"routes": [to("pay")]}, *PAY).answer is Answer.ROUTED
    assert traced(EDGE, there, *PAY).unsupported == ("route r /vhds",)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([to("pay", prefix="/pay.Pay/")], "pay"),
        ([to("pay", path="/PAY.Pay/charge", case_sensitive=False)], "pay"),
        ([to("pay", safe_regex={"regex": "/pay.*"})], "pay"),
        ([to("no", prefix="", query_parameters=[{"name": "q"}]), to("pay", prefix="")], "pay"),
        ([to("pay", prefix="", headers=[{"name": "x-user", "range_match": {"start": 1, "end": 9}}])], "pay"),
        ([to("pay", prefix="", headers=[{"name": "content-type", "exact_match": "application/grpc"}])], "pay"),
        ([to("no", prefix="", headers=[{"name": "trace-bin", "present_match": True}]), to("pay", prefix="")], "pay"),
        (
            [
                to("no", prefix="", headers=[{"name": "y", "exact_match": "", "treat_missing_header_as_empty": True}]),
                to("pay", prefix=""),
            ],
            "pay",
        ),
    ],
)
def test_grpc__matches_by_its_own_rules(entries: list[dict[str, Any]], expected: str) -> None:
    found = traced(GRPC, routes(*entries), *PAY, request=CALL)

    assert (found.answer, [each.cluster for each in found.shares]) == (Answer.ROUTED, [expected])


@pytest.mark.parametrize("entry", [to("pay", path="/other"), {"match": {"prefix": ""}, "redirect": {}}])
def test_grpc__no_cluster_for_the_call__fails_it(entry: dict[str, Any]) -> None:
    found = traced(GRPC, routes(entry), *PAY, request=CALL)

    assert found.answer is Answer.REFUSED
    assert "UNAVAILABLE" in last(found)


def test_endpoints__by_priority_and_health__are_said() -> None:
    def group(priority: int, *states: str) -> dict[str, Any]:
        address = {"socket_address": {"address": "10.0.0.1", "port_value": 80}}
        hosts = [{"endpoint": {"address": address}, "health_status": state} for state in states]
        return {"priority": priority, "lb_endpoints": hosts, "locality": {"region": "eu", "zone": f"z{priority}"}}

    assignment = endpoints("pay") | {"endpoints": [group(1, "HEALTHY"), group(0, "UNHEALTHY", "DRAINING")]}
    found = traced(EDGE, route("r", "pay"), PAY[0], assignment)

    assert last(found) == (
        "Endpoints that can take requests: 0 of 2 in priority 0, 1 of 1 in priority 1. "
        "Those of priority 1 are the first that can."
    )
    assert [(each.health, each.locality) for each in found.endpoints] == [
        *(("UNHEALTHY", "eu/z0"), ("DRAINING", "eu/z0"), ("HEALTHY", "eu/z1")),
    ]
