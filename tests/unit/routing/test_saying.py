"""The answer in one sentence, and its way as it is drawn."""

from typing import Any

import pytest

from tests.support.manifests import Tree, api_listener, cluster, endpoints, listener
from tests.support.routing import answer, held
from xdscore.routing.saying import headline, sentence, stations
from xdscore.routing.values import Request, State, Traced

EDGE = listener("edge", "r", 8080)
PAY = (cluster("pay", eds=True), endpoints("pay", 9000))
REQUEST = Request("shop.example", "/pay")
ALL = ["listener", "filter chain", "route configuration", "virtual host", "route", "cluster", "endpoints"]


def routes(*entries: dict[str, Any], domain: str = "*") -> Tree:
    host = {"name": "shop", "domains": [domain], "routes": list(entries)}
    kind = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
    return {"@type": kind, "name": "r", "virtual_hosts": [host]}


def to(*names: str, prefix: str = "/") -> dict[str, Any]:
    weighted = {"weighted_clusters": {"clusters": [{"name": name, "weight": 1} for name in names]}}
    return {"match": {"prefix": prefix}, "route": weighted if len(names) > 1 else {"cluster": names[0]}}


def traced(*manifests: Tree) -> Traced:
    return answer(REQUEST, held(EDGE, *manifests))


@pytest.mark.parametrize(
    ("manifests", "few_words", "said"),
    [
        (
            (routes(to("pay")), *PAY),
            "It goes to cluster pay",
            "Route 0 of virtual host 'shop' takes it. Endpoints that can take requests: 1 of 1 in priority 0.",
        ),
        (
            (routes(to("pay", "canary")), *PAY, cluster("canary")),
            "It goes to clusters pay, canary",
            "Route 0 of virtual host 'shop' takes it.",
        ),
        (
            (routes(to("pay", prefix="/cart")), *PAY),
            "404: nothing takes it",
            "No route of virtual host 'shop' takes it, so that the answer is 404.",
        ),
        (
            (routes({"match": {"prefix": "/"}, "direct_response": {"status": 403}}),),
            "403: the route answers itself",
            "The route answers 403 itself.",
        ),
        (
            (routes({"match": {"prefix": "/"}, "redirect": {"path_redirect": "/new"}}),),
            "301: it is redirected",
            "The route answers 301: go to 'http://shop.example/new'.",
        ),
        ((), "Nothing takes it", "There is no route configuration 'r' for it: no such resource was published."),
    ],
)
def test_answer__each__is_said_in_a_few_words_and_in_a_sentence(
    manifests: tuple[Tree, ...], few_words: str, said: str
) -> None:
    found = traced(*manifests)

    assert headline(found) == few_words
    assert sentence(found) == said


def test_way__of_a_request_that_arrives__has_every_station() -> None:
    way = stations(traced(routes(to("pay")), *PAY))

    assert [each.title for each in way] == ALL
    assert {each.state for each in way} == {State.OK}
    names = ["edge", "filter_chains[0]", "r", "shop", "route 0", "pay", "1 address"]
    assert [each.name for each in way] == names


def test_way__that_ends__says_where_and_what_is_not_reached() -> None:
    found = traced(routes(to("pay"), domain="other.example"), *PAY)

    way = stations(found)

    assert [each.title for each in way] == ALL
    assert [each.state for each in way] == [State.OK] * 3 + [State.FAIL] + [None] * 3
    assert way[3].rung == len(found.rungs) - 1


def test_way__that_a_route_ends_by_itself__ends_with_the_answer() -> None:
    way = stations(traced(routes({"match": {"prefix": "/"}, "direct_response": {"status": 403}})))

    assert [each.title for each in way] == [*ALL[:5], "answer"]
    assert way[-1].name == "403"


def test_way__of_a_grpc_target__has_the_stations_that_it_has() -> None:
    found = answer(REQUEST, held(api_listener("shop.example", "r"), routes(to("pay")), *PAY))

    assert [each.title for each in stations(found)] == ALL


def test_way__without_a_listener__reaches_nothing() -> None:
    way = stations(answer(REQUEST, held()))

    assert [each.state for each in way] == [State.FAIL] + [None] * 6
