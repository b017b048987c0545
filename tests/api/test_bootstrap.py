"""Bootstrap files: what clients are started with. Real clients read them in the end-to-end tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from google.protobuf import json_format
from pytest_django.fixtures import Settings

from controlplane.config.loading import Config, Tls
from controlplane.config.values import Address
from tests.api.conftest import Caller, assert_problem
from xdscore.auth_modes import AuthMode
from xdscore.schema.types_registry import new_message, schema


def config(settings: Settings, **values: Any) -> None:
    parley: Config = settings.PARLEY
    settings.PARLEY = replace(parley, **values)


def test_grpc__file__has_the_features_of_a88_as_implementations_spell_them(api: Caller) -> None:
    tree = api.get("bootstrap/grpc?node_id=pay-1").json

    (server,) = tree["xds_servers"]
    assert server["server_uri"] == "127.0.0.1:18000"
    assert server["channel_creds"] == [{"type": "insecure"}]
    # Without fail_on_data_errors: a client that refuses a change keeps what it had (A88).
    assert server["server_features"] == ["xds_v3", "resource_timer_is_transient_error"]
    # grpc-js-xds 1.14.1 refuses a node without a locality (validateNode of its xds-bootstrap.js).
    assert tree["node"] == {"id": "pay-1", "cluster": "default", "locality": {}}
    assert "allowed_grpc_services" not in tree
    # A36: what a server of gRPC cannot start without.
    assert tree["server_listener_resource_name_template"] == "grpc/server?xds.resource.listening_address=%s"
    assert "certificate_providers" not in tree


@pytest.mark.parametrize(
    ("query", "features"),
    [
        ("fail_on_data_errors", ["fail_on_data_errors"]),
        ("trusted_xds_server", ["trusted_xds_server"]),
        ("trusted_xds_server,fail_on_data_errors", ["fail_on_data_errors", "trusted_xds_server"]),
        ("trusted_xds_server&server_features=fail_on_data_errors", ["fail_on_data_errors", "trusted_xds_server"]),
        ("fail_on_data_errors,fail_on_data_errors", ["fail_on_data_errors"]),
        ("xds_v3,resource_timer_is_transient_error", []),
    ],
)
def test_grpc__features_that_are_asked_for__stand_once_behind_those_it_always_has(
    api: Caller, query: str, features: list[str]
) -> None:
    tree = api.get(f"bootstrap/grpc?node_id=pay-1&server_features={query}").json

    (server,) = tree["xds_servers"]
    assert server["server_features"] == ["xds_v3", "resource_timer_is_transient_error", *features]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "fail_on_data_errors,",
        "fly",
        "Fail_on_data_errors",
        "resource_timer_is_transient_failure",  # A88 once, and no implementation
        "ignore_resource_deletion",  # deprecated by A88
        "fail_on_data_errors&server_features=fly",
    ],
)
def test_grpc__feature_that_is_none__422_that_lists_those_there_are(api: Caller, query: str) -> None:
    answer = api.get(f"bootstrap/grpc?node_id=pay-1&server_features={query}")

    assert_problem(answer, 422)
    (finding,) = answer.json["errors"]
    assert "'server_features' cannot hold" in finding["detail"]
    choices = "xds_v3, resource_timer_is_transient_error, fail_on_data_errors, trusted_xds_server"
    assert finding["hint"] == f"Choices: {choices}."


def test_grpc__side_channel_services__stand_in_the_form_of_a102(api: Caller) -> None:
    uris = ["dns:///ratelimit.example:443", "ipv4:10.0.0.1:80,10.0.0.2:80"]
    query = "".join(f"&allowed_grpc_services={uri}" for uri in uris)

    tree = api.get(f"bootstrap/grpc?node_id=pay-1{query}").json

    assert tree["allowed_grpc_services"] == {uri: {"channel_creds": [{"type": "tls"}]} for uri in uris}


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "ratelimit.example:443",
        "localhost:443",
        "dns:",
        "dns:///a%20b",
        pytest.param(f"dns:///{'d' * 1_024}", id="long"),
    ],
)
def test_grpc__side_channel_service_that_is_no_target_uri__422(api: Caller, uri: str) -> None:
    answer = api.get(f"bootstrap/grpc?node_id=pay-1&allowed_grpc_services={uri}")

    assert_problem(answer, 422)
    (finding,) = answer.json["errors"]
    assert "dns:///ratelimit.example:443" in finding["hint"]


@pytest.mark.parametrize("query", ["server_features=fail_on_data_errors", "allowed_grpc_services=dns:///a:1"])
def test_envoy__what_only_grpc_has__422_as_any_unknown_parameter(api: Caller, query: str) -> None:
    answer = api.get(f"bootstrap/envoy?node_id=edge-1&{query}")
    unknown = api.get("bootstrap/envoy?node_id=edge-1&nonsense=x")

    assert_problem(answer, 422)
    name = query.partition("=")[0]
    said, of_nonsense = answer.json["errors"][0], unknown.json["errors"][0]
    assert said["detail"] == of_nonsense["detail"].replace("nonsense", name)
    assert said["code"] == of_nonsense["code"]


def test_grpc__several_things_wrong__all_of_them_at_once(api: Caller) -> None:
    answer = api.get("bootstrap/grpc?node_id=&variant=delta&server_features=fly&allowed_grpc_services=a&node_id=b")

    assert_problem(answer, 422)
    named = {finding["detail"].split("'")[1] for finding in answer.json["errors"]}
    assert named == {"node_id", "variant", "server_features", "allowed_grpc_services"}


@pytest.mark.parametrize(("variant", "api_type"), [("sotw", "GRPC"), ("delta", "DELTA_GRPC")])
def test_envoy__file__is_a_bootstrap_that_asks_over_ads(api: Caller, variant: str, api_type: str) -> None:
    answer = api.get(f"bootstrap/envoy?node_id=edge-1&variant={variant}", Accept="application/yaml")

    tree = yaml.safe_load(answer.content)
    bootstrap: Any = new_message("envoy.config.bootstrap.v3.Bootstrap")
    json_format.ParseDict(tree, bootstrap, descriptor_pool=schema().pool)  # raises on a field that Envoy does not have
    assert tree["dynamic_resources"]["ads_config"]["api_type"] == api_type
    assert bootstrap.node.id == "edge-1"


def test_both__tls_with_client_certificates__say_so(api: Caller, settings: Settings) -> None:
    tls = Tls(Path("c"), Path("k"), Path("ca"))
    config(
        settings,
        ads_auth=AuthMode.MTLS,
        ads_tls=tls,
        ads_address=Address("::", 18000),
        public_url="https://cp.example",
    )

    grpc = api.get("bootstrap/grpc?node_id=pay-1&environment=prod").json
    envoy = api.get("bootstrap/envoy?node_id=pay-1&environment=prod").json

    (server,) = grpc["xds_servers"]
    assert server["server_uri"] == "cp.example:18000"
    assert server["channel_creds"][0]["type"] == "tls"
    assert server["channel_creds"][0]["config"]["private_key_file"]
    watched = {"plugin_name": "file_watcher", "config": server["channel_creds"][0]["config"]}
    assert grpc["certificate_providers"] == {"default": watched}
    json_format.ParseDict(envoy, new_message("envoy.config.bootstrap.v3.Bootstrap"), descriptor_pool=schema().pool)
    assert envoy["static_resources"]["clusters"][0]["transport_socket"]["typed_config"]["sni"] == "cp.example"


def test_both__announced_address__is_the_one_they_name(api: Caller, settings: Settings) -> None:
    tls = Tls(Path("c"), Path("k"), Path("ca"))
    announced = Address("ads.example", 443)
    config(settings, ads_auth=AuthMode.MTLS, ads_tls=tls, ads_address=Address("::", 18000), ads_announced=announced)

    grpc = api.get("bootstrap/grpc?node_id=pay-1&environment=prod").json
    envoy = api.get("bootstrap/envoy?node_id=pay-1&environment=prod").json

    assert grpc["xds_servers"][0]["server_uri"] == "ads.example:443"
    (cluster,) = envoy["static_resources"]["clusters"]
    (endpoint,) = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["address"] == {"socket_address": {"address": "ads.example", "port_value": 443}}
    assert cluster["transport_socket"]["typed_config"]["sni"] == "ads.example"


PATHS = {
    "certificate_file": "/run/spiffe/svid.pem",
    "private_key_file": "keys/own key.pem",
    "ca_certificate_file": "C:\\tls\\ca.pem",
}
PATHS_QUERY = urlencode(PATHS)


def paths_in(tree: object) -> set[str]:
    """Every text of a bootstrap that names a file."""
    match tree:
        case dict():
            here = {value for key, value in tree.items() if key in {*PATHS, "filename"}}
            return here.union(*map(paths_in, tree.values()))
        case list():
            return set().union(*map(paths_in, tree))
    return set()


@pytest.mark.parametrize("family", ["grpc", "envoy"])
def test_both__paths_of_the_clients_files__stand_in_place_of_the_usual_ones(
    api: Caller, settings: Settings, family: str
) -> None:
    tls = Tls(Path("c"), Path("k"), Path("ca"))
    config(settings, ads_auth=AuthMode.MTLS, ads_tls=tls)

    usual = api.get(f"bootstrap/{family}?node_id=pay-1&environment=prod").json
    asked = api.get(f"bootstrap/{family}?node_id=pay-1&environment=prod&{PATHS_QUERY}").json

    assert paths_in(usual) == {f"/etc/parley/tls/{name}" for name in ("client.crt", "client.key", "ca.crt")}
    assert paths_in(asked) == set(PATHS.values())
    if family == "envoy":
        json_format.ParseDict(asked, new_message("envoy.config.bootstrap.v3.Bootstrap"), descriptor_pool=schema().pool)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("path", ["", "%0A", "a%00b", "a%E2%80%AEb", "/etc/tls/", pytest.param("a" * 1_025, id="long")])
def test_both__path_that_no_file_can_have__422_that_names_the_parameter(
    api: Caller, settings: Settings, name: str, path: str
) -> None:
    config(settings, ads_auth=AuthMode.MTLS, ads_tls=Tls(Path("c"), Path("k"), Path("ca")))

    for family in ("grpc", "envoy"):
        answer = api.get(f"bootstrap/{family}?node_id=pay-1&environment=prod&{name}={path}")

        assert_problem(answer, 422)
        (finding,) = answer.json["errors"]
        assert f"'{name}'" in finding["detail"]
        assert "is not a parameter" not in finding["detail"]


def test_both__path_that_the_file_would_not_name__422_with_those_it_names(api: Caller, settings: Settings) -> None:
    plain = api.get(f"bootstrap/grpc?node_id=pay-1&{PATHS_QUERY}")
    config(settings, ads_auth=AuthMode.TOKEN, ads_tls=Tls(Path("c"), Path("k"), None))
    by_token = api.get(f"bootstrap/envoy?node_id=pay-1&{PATHS_QUERY}")

    for answer, refused, named in (
        (plain, set(PATHS), "no file"),
        (by_token, {*PATHS} - {"ca_certificate_file"}, "ca_"),
    ):
        assert_problem(answer, 422)
        assert {finding["detail"].split("'")[1] for finding in answer.json["errors"]} == refused
        assert all(f"names here: {named}" in finding["hint"] for finding in answer.json["errors"])


@pytest.mark.parametrize(
    ("host", "kind", "sni"), [("10.0.0.7", "IP_ADDRESS", None), ("cp.example", "DNS", "cp.example")]
)
def test_envoy__tls__knows_the_server_by_its_address_or_name(
    api: Caller, settings: Settings, host: str, kind: str, sni: str | None
) -> None:
    tls = Tls(Path("c"), Path("k"), Path("ca"))
    config(settings, ads_auth=AuthMode.MTLS, ads_tls=tls, ads_address=Address(host, 18000))

    envoy = api.get("bootstrap/envoy?node_id=pay-1&environment=prod").json

    json_format.ParseDict(envoy, new_message("envoy.config.bootstrap.v3.Bootstrap"), descriptor_pool=schema().pool)
    tls_context = envoy["static_resources"]["clusters"][0]["transport_socket"]["typed_config"]
    names = tls_context["common_tls_context"]["validation_context"]["match_typed_subject_alt_names"]
    assert names == [{"san_type": kind, "matcher": {"exact": host}}]
    assert tls_context.get("sni") == sni


def test_node__environment_with_selectors__gets_what_leads_to_it(api: Caller) -> None:
    api.patch(
        "environments/prod", {"selectors": [{"node_id": "p-*", "node_cluster": "web", "metadata": {"zone": "a"}}]}
    )

    node = api.get("bootstrap/envoy?environment=prod&node_id=p-1").json["node"]

    assert node == {"id": "p-1", "cluster": "web", "metadata": {"zone": "a"}}


def test_node__that_another_environment_would_take__409_that_names_it(api: Caller) -> None:
    api.patch("environments/prod", {"selectors": [{"node_id": "p-*"}]})

    for query in ("environment=prod&node_id=x-1", "environment=default&node_id=p-1"):
        answer = api.get(f"bootstrap/grpc?{query}")
        assert_problem(answer, 409)
        assert "belongs to" in answer.json["detail"]


@pytest.mark.parametrize(
    "query", ["", "node_id=", "node_id=%0A", "node_id=a&variant=x", "node_id=a&variant=delta", "node_id=a&env=b"]
)
def test_parameters__that_cannot_be__422(api: Caller, query: str) -> None:
    assert_problem(api.get(f"bootstrap/grpc?{query}"), 422)


def test_family_or_environment__that_is_none__404(api: Caller) -> None:
    assert_problem(api.get("bootstrap/nginx?node_id=a"), 404)
    assert_problem(api.get("bootstrap/grpc?node_id=a&environment=never-was"), 404)


def test_envoy__over_rest__is_a_bootstrap_that_polls(api: Caller, settings: Settings) -> None:
    config(settings, rest_address=Address("::", 18080), ads_address=Address("ads.example", 18000))

    tree = api.get("bootstrap/envoy?node_id=edge-1&transport=rest").json

    json_format.ParseDict(tree, new_message("envoy.config.bootstrap.v3.Bootstrap"))
    (cluster,) = tree["static_resources"]["clusters"]
    (endpoint,) = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["address"] == {"socket_address": {"address": "ads.example", "port_value": 18080}}
    (options,) = cluster["typed_extension_protocol_options"].values()
    assert options["explicit_http_config"] == {"http_protocol_options": {}}
    sources = [tree["dynamic_resources"][each]["api_config_source"] for each in ("cds_config", "lds_config")]
    assert {(each["api_type"], *each["cluster_names"]) for each in sources} == {("REST", cluster["name"])}
    assert "ads_config" not in tree["dynamic_resources"]


def test_envoy__over_rest_with_tls_and_token__shows_both(api: Caller, settings: Settings) -> None:
    tls = Tls(Path("c"), Path("k"), None)
    announced = Address("poll.example", 443)
    config(settings, ads_auth=AuthMode.TOKEN, ads_tls=tls, rest_address=Address("::", 1), rest_announced=announced)

    tree = api.get("bootstrap/envoy?node_id=edge-1&transport=rest").json

    (cluster,) = tree["static_resources"]["clusters"]
    assert cluster["transport_socket"]["typed_config"]["sni"] == "poll.example"
    (options,) = cluster["typed_extension_protocol_options"].values()
    assert options["http_filters"][0]["name"] == "envoy.filters.http.credential_injector"
    assert tree["static_resources"]["secrets"][0]["name"] == "parley_client_token"


def test_envoy__over_rest_that_is_not_served__409_says_which_variable(api: Caller) -> None:
    got = api.get("bootstrap/envoy?node_id=edge-1&transport=rest")

    assert got.status == 409
    assert "PARLEY_ADS_REST_ADDRESS" in got.json["detail"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("grpc?node_id=a&transport=rest", "cannot be 'rest'"),
        ("envoy?node_id=a&transport=rest&variant=delta", "cannot be 'delta' with transport=rest"),
        ("envoy?node_id=a&transport=pigeon", "cannot be 'pigeon'"),
    ],
)
def test_both__transport_that_does_not_go__422(api: Caller, settings: Settings, path: str, words: str) -> None:
    config(settings, rest_address=Address("127.0.0.1", 18080))

    got = api.get(f"bootstrap/{path}")

    assert got.status == 422
    assert words in str(got.json["errors"])
