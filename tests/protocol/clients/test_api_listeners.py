"""What real clients demand of an API listener, and so what we do (`xdscore.schema.rules`)."""

import json
from pathlib import Path

from google.protobuf import json_format

from tests.support.ads_thread import serving_ads
from tests.support.backends import grpc_backend
from tests.support.bootstraps import envoy_says
from tests.support.grpc_client import grpc_client, simple_bootstrap
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route
from xdscore.resource_types import LISTENER
from xdscore.schema import Manifest, ParsedResource, parse

WITHOUT = api_listener("web", "r", stat_prefix="")
MANIFEST = json_format.MessageToDict(WITHOUT, preserving_proto_field_name=True)


def test_api_listener__without_stat_prefix__is_taken_by_us_and_by_grpc() -> None:
    ours = parse(Manifest({"@type": LISTENER.url, **MANIFEST}))
    with serving_ads() as ads, grpc_backend("parley") as port:
        ads.publish("demo", WITHOUT, route("r", "a"), eds_cluster("a"), assignment("a", port))
        with grpc_client(simple_bootstrap(ads_port=ads.port, node_id="pay-1", cluster="demo", features=[])) as client:
            called = client.call("xds:///web")

    assert isinstance(ours, ParsedResource)
    assert called.code == "OK", called


def test_api_listener__in_stock_envoy__is_refused_whatever_it_says(tmp_path: Path) -> None:
    for number, stat_prefix in enumerate(("", "web")):
        tree = json_format.MessageToDict(api_listener("web", "r", stat_prefix), preserving_proto_field_name=True)
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps({"static_resources": {"listeners": [tree]}}))

        assert "missing the API listener extension" in envoy_says(file, tmp_path)
