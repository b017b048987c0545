"""What a log says beside the answer: agreement is said where it is, and a difference with what it may come from."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.manifests import Tree, cluster, endpoints, listener
from tests.support.routing import answer, held
from xdscore.routing.access_log import LogLine
from xdscore.routing.logged import MEANINGS, Agreement, compared
from xdscore.routing.values import Answer, Request, Traced

TYPE = "type.googleapis.com/"
LINE = LogLine(method="GET", path="/pay", authority="shop.example")
EDGE = listener("edge", "r", 8080)
PAY = (cluster("pay", eds=True), endpoints("pay", 9000))


def routes(*entries: dict[str, Any]) -> Tree:
    host = {"name": "shop", "domains": ["shop.example"], "routes": list(entries)}
    return {"@type": TYPE + "envoy.config.route.v3.RouteConfiguration", "name": "r", "virtual_hosts": [host]}


TO_PAY = {"match": {"prefix": "/pay"}, "route": {"cluster": "pay"}}
ROUTED = answer(Request("shop.example", "/pay"), held(EDGE, routes(TO_PAY), *PAY))
NO_ROUTE = answer(Request("shop.example", "/cart"), held(EDGE, routes(TO_PAY), *PAY))
NO_HOST = answer(Request("other.example", "/pay"), held(EDGE, routes(TO_PAY), *PAY))
NO_CLUSTER = answer(Request("shop.example", "/pay"), held(EDGE, routes(TO_PAY)))
NO_ENDPOINT = answer(Request("shop.example", "/pay"), held(EDGE, routes(TO_PAY), PAY[0], endpoints("pay")))
DIRECT = answer(
    Request("shop.example", "/pay"),
    held(EDGE, routes({"match": {"prefix": "/"}, "direct_response": {"status": 403}})),
)
UNKNOWN = answer(Request("shop.example", "/pay"), held())


@pytest.mark.parametrize(
    ("line", "found", "agreement"),
    [
        (replace(LINE, status=404, flags=("NR",)), NO_ROUTE, Agreement.SAME),
        (replace(LINE, status=404, flags=("NR",)), NO_HOST, Agreement.SAME),
        (replace(LINE, status=404, flags=("NR",)), ROUTED, Agreement.DIFFERS),
        (replace(LINE, status=404, flags=("NR",)), NO_CLUSTER, Agreement.DIFFERS),
        (replace(LINE, status=503, flags=("NC",)), NO_CLUSTER, Agreement.SAME),
        (replace(LINE, status=503, flags=("NC",)), ROUTED, Agreement.DIFFERS),
        (replace(LINE, status=503, flags=("UH",)), NO_ENDPOINT, Agreement.SAME),
        (replace(LINE, status=503, flags=("UH",)), ROUTED, Agreement.OPEN),
        (replace(LINE, status=503, flags=("UH",)), NO_ROUTE, Agreement.DIFFERS),
        (replace(LINE, status=503, flags=("UF",)), ROUTED, Agreement.SAME),
        (replace(LINE, status=503, flags=("UF",)), NO_ROUTE, Agreement.DIFFERS),
        (replace(LINE, status=429, flags=("RL",)), NO_ROUTE, Agreement.OPEN),
        (replace(LINE, status=200, upstream_host="10.0.0.1:80"), NO_ROUTE, Agreement.DIFFERS),
        (replace(LINE, status=403), DIRECT, Agreement.SAME),
        (replace(LINE, status=404), DIRECT, Agreement.DIFFERS),
        (replace(LINE, status=403), ROUTED, Agreement.OPEN),
        (replace(LINE, upstream_cluster="pay"), ROUTED, Agreement.SAME),
        (replace(LINE, upstream_cluster="canary"), ROUTED, Agreement.DIFFERS),
    ],
)
def test_log__one_thing_that_it_says__is_compared(line: LogLine, found: Traced, agreement: Agreement) -> None:
    [only] = compared(line, found)

    assert only.agreement is agreement
    assert only.said.endswith(".")


def test_log__another_cluster__says_both_and_what_it_may_come_from() -> None:
    [only] = compared(replace(LINE, upstream_cluster="canary"), ROUTED)

    assert only.said.startswith(
        "The log says cluster 'canary'. Here it goes to cluster 'pay'. The configuration changed"
    )


@pytest.mark.parametrize(
    ("host", "agreement"),
    [("127.0.0.1:9000", Agreement.SAME), ("tcp://127.0.0.1:9000", Agreement.SAME), ("10.9.9.9:1", Agreement.DIFFERS)],
)
def test_log__an_endpoint__is_one_of_those_or_none(host: str, agreement: Agreement) -> None:
    routed, endpoint = compared(replace(LINE, status=200, upstream_host=host), ROUTED)

    assert (routed.agreement, endpoint.agreement) == (Agreement.SAME, agreement)


def test_log__an_endpoint_of_a_cluster_whose_names_the_proxy_resolves__is_not_compared() -> None:
    named = replace(ROUTED, endpoints=(replace(ROUTED.endpoints[0], address="pay.internal:9000"),))

    assert len(compared(replace(LINE, status=200, upstream_host="10.9.9.9:1"), named)) == 1


def test_log__an_answer_that_is_not_known__compares_nothing() -> None:
    unknown = replace(UNKNOWN, answer=Answer.UNKNOWN)

    [only] = compared(replace(LINE, status=404, flags=("NR",), upstream_cluster="pay"), unknown)

    assert only.agreement is Agreement.OPEN


def test_log__that_says_nothing__compares_nothing() -> None:
    assert compared(LINE, ROUTED) == ()
    assert compared(replace(LINE, flags=("XX",)), ROUTED) == ()


@pytest.mark.parametrize("flag", MEANINGS)
@pytest.mark.parametrize("found", [ROUTED, NO_ROUTE, NO_CLUSTER, NO_ENDPOINT, DIRECT])
def test_flag__each_beside_each_answer__is_said_with_its_meaning(flag: str, found: Traced) -> None:
    [only] = compared(replace(LINE, flags=(flag,)), found)

    assert f"The proxy logged {flag}: {MEANINGS[flag]}." in only.said
