"""Field rules: every kind the API uses, all violations at once, at the place of each."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given, settings
from hypothesis import strategies as st
from validate import validate_pb2

from xdscore.findings import Severity
from xdscore.schema import Manifest, Refused, parse
from xdscore.schema.rule_checks import duration_nanos, scalar_checks, supported_options
from xdscore.schema.rules import violations_of
from xdscore.schema.types_registry import class_of, descriptors

GOOGLE = "type.googleapis.com/"
CLUSTER = GOOGLE + "envoy.config.cluster.v3.Cluster"
ROUTE = GOOGLE + "envoy.config.route.v3.RouteConfiguration"
LISTENER = GOOGLE + "envoy.config.listener.v3.Listener"
HCM = GOOGLE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


def violations(tree: dict[str, Any]) -> list[tuple[str, str]]:
    outcome = parse(Manifest({"name": "x", **tree}))
    return [(found.code, found.pointer) for found in outcome.findings if found.severity is Severity.ERROR]


def cluster(**fields: Any) -> dict[str, Any]:
    return {"@type": CLUSTER, **fields}


def route(match: dict[str, Any], **fields: Any) -> dict[str, Any]:
    fields = fields or {"route": {"cluster": "c"}}
    return {"@type": ROUTE, "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": match, **fields}]}]}


def http_filter(type_name: str, **fields: Any) -> dict[str, Any]:
    config = {"@type": GOOGLE + type_name, **fields}
    last = [] if config["@type"] == ROUTER["typed_config"]["@type"] else [ROUTER]
    filters = [{"name": "f", "typed_config": config}, *last]
    return listener({"@type": HCM, "stat_prefix": "s", "rds": RDS, "http_filters": filters})


def listener(config: dict[str, Any]) -> dict[str, Any]:
    chains = [{"filters": [{"name": "n", "typed_config": config}]}]
    return {"@type": LISTENER, "address": {"pipe": {"path": "@l"}}, "filter_chains": chains}


RAW = GOOGLE + "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"
CHECK = {"timeout": "1s", "interval": "1s", "unhealthy_threshold": 1, "healthy_threshold": 1}
ROUTER: dict[str, Any] = {
    "name": "r",
    "typed_config": {"@type": GOOGLE + "envoy.extensions.filters.http.router.v3.Router"},
}
RDS = {"route_config_name": "r", "config_source": {"ads": {}}}
ROUTES = "/virtual_hosts/0/routes/0"
CONFIG = "/filter_chains/0/filters/0/typed_config"
FILTER = CONFIG + "/http_filters/0/typed_config"


@pytest.mark.parametrize(
    ("tree", "code", "pointer"),
    [
        (cluster(connect_timeout="0s"), "XDS1043", "/connect_timeout"),
        (cluster(connect_timeout="-1s"), "XDS1043", "/connect_timeout"),
        (
            cluster(health_checks=[{**CHECK, "tcp_health_check": {}, "timeout": None}]),
            "XDS1040",
            "/health_checks/0/timeout",
        ),
        (cluster(health_checks=[CHECK]), "XDS1041", "/health_checks/0"),
        (
            cluster(health_checks=[{**CHECK, "http_health_check": {"path": ""}}]),
            "XDS1042",
            "/health_checks/0/http_health_check/path",
        ),
        (
            cluster(health_checks=[{**CHECK, "http_health_check": {"path": "/", "method": "CONNECT"}}]),
            "XDS1046",
            "/health_checks/0/http_health_check/method",
        ),
        (
            cluster(outlier_detection={"max_ejection_percent": 101}),
            "XDS1043",
            "/outlier_detection/max_ejection_percent",
        ),
        (cluster(dns_refresh_rate="0.001s"), "XDS1043", "/dns_refresh_rate"),
        (
            cluster(ring_hash_lb_config={"minimum_ring_size": 8388609}),
            "XDS1043",
            "/ring_hash_lb_config/minimum_ring_size",
        ),
        (cluster(least_request_lb_config={"choice_count": 1}), "XDS1043", "/least_request_lb_config/choice_count"),
        (
            cluster(track_timeout_budgets=True, preconnect_policy={"per_upstream_preconnect_ratio": 0.5}),
            "XDS1043",
            "/preconnect_policy/per_upstream_preconnect_ratio",
        ),
        (cluster(metadata={"filter_metadata": {"": {}}}), "XDS1042", "/metadata/filter_metadata/"),
        (cluster(transport_socket={"name": "", "typed_config": {"@type": RAW}}), "XDS1042", "/transport_socket/name"),
        ({"@type": ROUTE, "virtual_hosts": [{"name": "v", "domains": []}]}, "XDS1044", "/virtual_hosts/0/domains"),
        (
            {"@type": ROUTE, "virtual_hosts": [{"name": "v", "domains": ["a\nb"]}]},
            "XDS1045",
            "/virtual_hosts/0/domains/0",
        ),
        ({"@type": ROUTE, "request_headers_to_remove": ["a b\n"]}, "XDS1045", "/request_headers_to_remove/0"),
        (route({}), "XDS1041", ROUTES + "/match"),
        (route({"path_separated_prefix": "/a/"}), "XDS1045", ROUTES + "/match/path_separated_prefix"),
        (route({"safe_regex": {"regex": "a)("}}), "XDS1049", ROUTES + "/match/safe_regex/regex"),
        (route({"safe_regex": {"regex": ""}}), "XDS1042", ROUTES + "/match/safe_regex/regex"),
        (route({"prefix": "/"}, route={}), "XDS1041", ROUTES + "/route"),
        (route({"prefix": "/"}, route={"cluster": ""}), "XDS1042", ROUTES + "/route/cluster"),
        (route({"prefix": "/"}, direct_response={"status": 700}), "XDS1043", ROUTES + "/direct_response/status"),
        (
            route({"prefix": "/"}, redirect={"scheme_redirect": "x", "path_redirect": "\r"}),
            "XDS1045",
            ROUTES + "/redirect/path_redirect",
        ),
        (
            route({"prefix": "/", "query_parameters": [{"name": ""}]}),
            "XDS1042",
            ROUTES + "/match/query_parameters/0/name",
        ),
        (listener({"@type": HCM, "stat_prefix": "", "rds": RDS}), "XDS1042", CONFIG + "/stat_prefix"),
        (listener({"@type": HCM, "stat_prefix": "s"}), "XDS1041", CONFIG),
        (
            http_filter("envoy.extensions.filters.http.router.v3.Router", strict_check_headers=["x"]),
            "XDS1048",
            FILTER + "/strict_check_headers/0",
        ),
        (
            http_filter(
                "envoy.extensions.filters.http.compressor.v3.Compressor",
                compressor_library={"name": "g", "typed_config": {"@type": GOOGLE + "google.protobuf.Empty"}},
                response_direction_config={"uncompressible_response_codes": [200, 206, 200]},
            ),
            "XDS1047",
            FILTER + "/response_direction_config/uncompressible_response_codes",
        ),
        (
            http_filter(
                "envoy.extensions.filters.http.rbac.v3.RBAC",
                rules={"policies": {"p": {"permissions": [{"any": False}], "principals": [{"any": True}]}}},
            ),
            "XDS1048",
            FILTER + "/rules/policies/p/permissions/0/any",
        ),
        (
            http_filter(
                "envoy.extensions.filters.http.ratelimit.v3.RateLimit",
                domain="d",
                request_type="x",
                rate_limit_service={
                    "transport_api_version": "V3",
                    "grpc_service": {"envoy_grpc": {"cluster_name": "c"}},
                },
            ),
            "XDS1048",
            FILTER + "/request_type",
        ),
    ],
)
def test_rules__one_violation__is_found_at_its_place(tree: dict[str, Any], code: str, pointer: str) -> None:
    assert violations(tree) == [(code, pointer)]


@pytest.mark.parametrize(
    "tree",
    [
        cluster(connect_timeout="0.000000001s"),
        cluster(outlier_detection={"max_ejection_percent": 100}),
        cluster(dns_refresh_rate="0.002s"),
        cluster(outlier_detection={}),
        route({"prefix": ""}),
        route({"safe_regex": {"regex": "^/(?P<a>x)+$"}}),
        route({"prefix": "/"}, direct_response={"status": 200}),
        {"@type": ROUTE},
        {"@type": ROUTE, "request_headers_to_remove": ["x-a"]},
    ],
)
def test_rules__at_the_bound_or_absent__nothing_is_found(tree: dict[str, Any]) -> None:
    assert violations(tree) == []


def test_rules__many_violations__come_all_at_once_with_errors_of_shape() -> None:
    tree = cluster(
        bogus=1, connect_timeout="0s", health_checks=[CHECK, {**CHECK, "tcp_health_check": {}, "interval": "0s"}]
    )

    assert violations(tree) == [
        ("XDS1013", "/bogus"),
        ("XDS1043", "/connect_timeout"),
        ("XDS1041", "/health_checks/0"),
        ("XDS1043", "/health_checks/1/interval"),
    ]


def test_rules__an_error_of_shape_explains_the_absence__it_is_said_once() -> None:
    wrong = {**CHECK, "tcp_health_check": {}, "timeout": 5}
    misspelt = {
        "timeot": "1s",
        "interval": "1s",
        "unhealthy_threshold": 1,
        "healthy_threshold": 1,
        "tcp_health_check": {},
    }

    assert violations(cluster(health_checks=[wrong])) == [("XDS1014", "/health_checks/0/timeout")]
    assert violations(cluster(health_checks=["x"])) == [("XDS1014", "/health_checks/0")]
    assert violations(cluster(health_checks=[misspelt])) == [("XDS1013", "/health_checks/0/timeot")]


def test_rules__camel_case__points_to_what_was_written() -> None:
    tree = cluster(healthChecks=[{**CHECK, "httpHealthCheck": {"path": ""}}])

    assert violations(tree) == [("XDS1042", "/healthChecks/0/httpHealthCheck/path")]


def test_rules__several_bad_map_entries__come_in_the_order_of_their_keys() -> None:
    names = [f"k{number}" for number in range(40)]
    bad = {name: {"permissions": [], "principals": [{"any": True}]} for name in reversed(names)}
    tree = http_filter("envoy.extensions.filters.http.rbac.v3.RBAC", rules={"policies": bad})

    found = [pointer.split("/")[-2] for _, pointer in violations(tree)]

    assert found == sorted(names)


def test_rules__every_option_of_every_descriptor__is_one_the_interpreter_knows() -> None:
    unknown: set[str] = set()
    for descriptor in descriptors().values():
        for option in ("disabled", "ignored"):
            if descriptor.GetOptions().HasExtension(getattr(validate_pb2, option)):
                unknown.add(f"{descriptor.full_name}: {option}")
        for field in descriptor.fields:
            collect_unknown(field.GetOptions().Extensions[validate_pb2.rules], unknown)

    assert unknown == set()


def collect_unknown(rules: Any, unknown: set[str]) -> None:
    for kind, value in rules.ListFields():
        for option, inner in value.ListFields():
            if option.name not in supported_options(kind.name):
                unknown.add(f"{kind.name}.{option.name}")
            if option.name in ("items", "keys", "values"):
                collect_unknown(inner, unknown)


def test_rules__every_type_left_empty__the_walk_ends_and_says_what_is_required() -> None:
    found = {name: list(violations_of(class_of(descriptor)())) for name, descriptor in descriptors().items()}

    assert [finding.code for _, finding in found["envoy.config.core.v3.HealthCheck"]] == ["XDS1041"] + ["XDS1040"] * 4
    assert found["envoy.config.core.v3.Metadata"] == []


@settings(deadline=None)
@given(st.integers(-10, 10), st.integers(0, 999_999_999))
def test_rules__duration_bounds__compare_whole_nanoseconds(seconds: int, nanos: int) -> None:
    duration = Duration(seconds=seconds, nanos=nanos if seconds >= 0 else -nanos)
    tree = cluster(connect_timeout=duration.ToJsonString())

    outcome = parse(Manifest({"name": "x", **tree}))

    assert isinstance(outcome, Refused) == (duration_nanos(duration) <= 0)


@pytest.mark.parametrize(("value", "fits"), [(4, True), (5, False), (7, False), (10, False), (11, True)])
def test_rules__lower_bound_above_the_upper__means_outside(value: int, fits: bool) -> None:
    """No rule of today's API is of this kind; protoc-gen-validate defines it, so tomorrow's may be."""
    field = descriptors()["google.protobuf.UInt32Value"].fields_by_name["value"]

    (check,) = scalar_checks(field, "uint32", validate_pb2.UInt32Rules(gt=10, lt=5))

    assert (check(value) is None) == fits
