"""The cost of saying where a request goes among 10,000 routes (issue target: at most 50 ms)."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.filled import filled, put
from bench.registry import Measurement, Parameters, scenario
from bench.web_process import web_process

_PATH = "/api/v1/environments/default/requests/explain"
_TYPE = "type.googleapis.com/"
_MANAGER = _TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = {"name": "router", "typed_config": {"@type": _TYPE + "envoy.extensions.filters.http.router.v3.Router"}}
_Json = dict[str, object]


@scenario(
    "way",
    "Where a request goes among 10,000 routes, over REST",
    parameters={"routes": 10_000, "repeat": 100, "changes": 5, "starts": 3},
)
def way(parameters: Parameters) -> Iterator[Measurement]:
    """Measure an answer of Request Explain, of which only the last of so many routes takes the request: those that a
    process gives again and again; the first one after each publication, for which it has to read the routes; and the
    first one that a process gives at all, as soon as it is ready.
    """
    count = parameters["routes"]
    with filled(0) as token:
        from controlplane.ops.process import collector_tune  # noqa: PLC0415  the product is imported where it is installed

        for number, what in enumerate(_KINDS):
            put([_listener(what, 8000 + number)])
            _publish(what, count)
        asks = {what: _asker(token, what) for what in _KINDS}
        _asker(token, "nobody")()  # what is loaded and compiled once
        collector_tune()  # as a web process does
        for what, ask in asks.items():
            first, worked = [], []
            for change in range(parameters["changes"]):
                _publish(what, count, change)
                began = time.thread_time()
                first.append(_milliseconds(ask))
                worked.append((time.thread_time() - began) * 1000)
            took = [_milliseconds(ask) for _ in range(parameters["repeat"])]
            yield Measurement(f"{count:,} {what}", "ms", tuple(took), at_most=50)
            yield Measurement(f"{count:,} {what}, the first after a publication", "ms", tuple(first), at_most=50)
            yield Measurement("  of it, processor time", "ms", tuple(worked))
        for what in _KINDS:
            fresh = tuple(_fresh(token, what) for _ in range(parameters["starts"]))
            yield Measurement(f"{count:,} {what}, the first of a process", "ms", fresh, at_most=50)


_KINDS: Mapping[str, Callable[[int], dict[str, object]]] = {
    "prefixes": lambda number: {"prefix": f"/s{number}/"},
    "patterns": lambda number: {"safe_regex": {"regex": f"/s{number}/[0-9]+"}},
    "headers": lambda number: {
        "prefix": "/",
        "headers": [{"name": "x-shard", "string_match": {"exact": f"s{number}"}}],
    },
}


def _publish(what: str, count: int, change: int = 0) -> None:
    """Store the routes of this kind, of which the last answers another status with each change, and publish them."""
    from controlplane.builder.services import build  # noqa: PLC0415  the product is imported where it is installed
    from controlplane.catalog.selectors import environment_get  # noqa: PLC0415

    routes = [_to(_KINDS[what](number)) for number in range(count)]
    put([_configuration(what, [*routes, _to({"prefix": "/"}, status=201 + change)])])
    build(environment_id=environment_get(key="default").id)


def _asker(token: str, listener: str) -> Callable[[], None]:
    """A function that asks within this process, without a network. It raises RuntimeError unless there is an answer."""
    from django.test import Client  # noqa: PLC0415

    client = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})
    body = _question(listener)

    def ask() -> None:
        answer = client.post(_PATH, body, content_type="application/json")
        if answer.status_code != 200:
            raise RuntimeError(f"{_PATH} was answered {answer.status_code}: {answer.content[:500]!r}")

    return ask


def _fresh(token: str, listener: str) -> float:
    """How many milliseconds a process takes that was just started, for the first request that it gets."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with web_process() as url:
        body = json.dumps(_question(listener)).encode()
        request = urllib.request.Request(url + _PATH, body, headers)  # noqa: S310 - our own http:// address
        return _milliseconds(lambda: urllib.request.urlopen(request, timeout=60).close())  # noqa: S310 - as above


def _question(listener: str) -> dict[str, str]:
    return {"authority": "shop.example", "path": "/pay?x=1", "listener": listener}


def _milliseconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def _to(match: Mapping[str, object], *, status: int = 200) -> _Json:
    return {"match": match, "direct_response": {"status": status}}


def _configuration(name: str, routes: Sequence[_Json]) -> _Json:
    host = {"name": "shop", "domains": ["shop.example"], "routes": [*routes]}
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
