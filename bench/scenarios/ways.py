"""The cost of saying where a request goes among 10,000 routes (issue target: at most 50 ms)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.filled import filled, put
from bench.registry import Measurement, Parameters, scenario

_PATH = "/api/v1/environments/default/requests/explain"
_TYPE = "type.googleapis.com/"
_MANAGER = _TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = {"name": "router", "typed_config": {"@type": _TYPE + "envoy.extensions.filters.http.router.v3.Router"}}
_Json = dict[str, object]


@scenario("way", "Where a request goes among 10,000 routes, over REST", parameters={"routes": 10_000, "repeat": 100})
def way(parameters: Parameters) -> Iterator[Measurement]:
    """Measure an answer of Request Explain, of which only the last of so many routes takes the request: the first
    answer, for which the process has to read the routes, and those after it.
    """
    count = parameters["routes"]
    kinds: Mapping[str, Sequence[_Json]] = {
        "prefixes": [_to(prefix=f"/s{number}/") for number in range(count)],
        "patterns": [_to(safe_regex={"regex": f"/s{number}/[0-9]+"}) for number in range(count)],
        "headers": [
            _to(prefix="/", headers=[{"name": "x-shard", "string_match": {"exact": f"s{number}"}}])
            for number in range(count)
        ],
    }
    with filled(0) as token:
        from controlplane.builder.services import build  # noqa: PLC0415  the product is imported where it is installed
        from controlplane.catalog.selectors import environment_get  # noqa: PLC0415

        for number, (what, routes) in enumerate(kinds.items()):
            put([_listener(what, 8000 + number), _configuration(what, routes)])
        build(environment_id=environment_get(key="default").id)
        _asker(token, "nobody")()  # what is loaded and compiled once
        for what in kinds:
            ask = _asker(token, what)
            took = [_milliseconds(ask) for _ in range(parameters["repeat"] + 1)]
            yield Measurement(f"{count:,} {what}, the first answer", "ms", tuple(took[:1]))
            yield Measurement(f"{count:,} {what}", "ms", tuple(took[1:]), at_most=50)


def _asker(token: str, listener: str) -> Callable[[], None]:
    """A function that asks within this process, without a network. It raises RuntimeError unless there is an answer."""
    from django.test import Client  # noqa: PLC0415

    client = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})
    body = {"authority": "shop.example", "path": "/pay?x=1", "listener": listener}

    def ask() -> None:
        answer = client.post(_PATH, body, content_type="application/json")
        if answer.status_code != 200:
            raise RuntimeError(f"{_PATH} was answered {answer.status_code}: {answer.content[:500]!r}")

    return ask


def _milliseconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def _to(**match: object) -> _Json:
    return {"match": match, "direct_response": {"status": 200}}


def _configuration(name: str, routes: Sequence[_Json]) -> _Json:
    host = {"name": "shop", "domains": ["shop.example"], "routes": [*routes, _to(prefix="/")]}
    return {"@type": _TYPE + "envoy.config.route.v3.RouteConfiguration", "name": name, "virtual_hosts": [host]}


def _listener(name: str, port: int) -> _Json:
    rds = {"route_config_name": name, "config_source": {"ads": {}, "resource_api_version": "V3"}}
    manager = {"@type": _MANAGER, "stat_prefix": name, "rds": rds, "http_filters": [_ROUTER]}
    return {
        "@type": _TYPE + "envoy.config.listener.v3.Listener",
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
