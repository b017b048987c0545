"""What is dropped at a glance is what would have been judged not to take the request, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.manifests import cluster, endpoints, listener
from tests.support.routing import answer, held, message_of
from tests.support.routing_cases import ANY, Generator
from xdscore.routing import routes
from xdscore.routing.matching import matched_path, route_miss
from xdscore.routing.seen import seen_of
from xdscore.routing.sieve import Sieve
from xdscore.routing.values import Request
from xdscore.schema.walk import AnyMessage, unpack

LISTENER = ANY + "envoy.config.listener.v3.Listener"
ROUTE = ANY + "envoy.config.route.v3.RouteConfiguration"


@given(st.integers(0, 100_000), st.booleans())
def test_sieve__routes_that_it_drops__certainly_do_not_take_the_request(seed: int, grpc: bool) -> None:
    generator = Generator(seed)
    made = generator.listener("l", 8080)
    manager: AnyMessage = unpack(message_of({"@type": LISTENER, **made}).filter_chains[0].filters[0].typed_config)
    for _ in range(5):
        seen = seen_of(generator.request(made), grpc=grpc)
        path = matched_path(seen, manager.route_config)
        for host in manager.route_config.virtual_hosts:
            left = set(Sieve(host.routes).left(0, seen, path))
            for index in set(range(len(host.routes))) - left:
                missed = route_miss(host.routes[index].match, seen, path)
                assert missed is not None
                assert missed.judged
                assert missed.path[0] != "runtime_fraction"


MATCHES: list[dict[str, Any]] = [
    {"prefix": "/pay"},
    {"path": "/PAY/1", "case_sensitive": False},
    {"safe_regex": {"regex": "/pay/[0-9]+"}},
    {"prefix": "/", "headers": [{"name": "x-a", "string_match": {"exact": "1"}}]},
    {"prefix": "/", "runtime_fraction": {"default_value": {"numerator": 50}}},
    {
        "prefix": "/",
        "headers": [{"name": "x-a", "string_match": {"exact": "2"}}],
        "runtime_fraction": {"default_value": {"numerator": 0}, "runtime_key": "a"},
    },
    {"prefix": "/other"},
]


@given(
    st.lists(st.sampled_from(MATCHES), max_size=12),
    st.sampled_from(["/pay", "/pay/1", "/x"]),
    st.sampled_from([{}, {"x-a": "1"}]),
)
def test_way__with_few_losers_told__is_the_way_with_all_of_them_told(
    matches: list[dict[str, Any]], path: str, headers: dict[str, str]
) -> None:
    routed = [{"match": match, "route": {"cluster": "pay"}} for match in matches]
    hosts = [{"name": "all", "domains": ["*"], "routes": routed}]
    has = held(
        listener("edge", "r", 80),
        {"@type": ROUTE, "name": "r", "virtual_hosts": hosts},
        *(cluster("pay", eds=True), endpoints("pay", 9000)),
    )
    request = Request("shop.example", path, headers=headers)
    whole = answer(request, has)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "MAX_LOST", 1)

        short = answer(request, has)

    assert (short.answer, short.route_index, short.shares) == (whole.answer, whole.route_index, whole.shares)
    assert short.unsupported == whole.unsupported
    for one, other in zip(short.rungs, whole.rungs, strict=True):
        assert (one.text, one.place, one.lost) == (other.text, other.place, other.lost[:1])
        assert len(one.lost) + one.more == len(other.lost) + other.more
