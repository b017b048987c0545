"""What the editor suggests where somebody types: of half-written YAML and JSON, by the descriptors that validate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.resource_types import CLUSTER as CLUSTERS
from xdscore.resource_types import ENDPOINT, EXTENSION, SECRET, ResourceType
from xdscore.resource_types import ROUTE as ROUTES
from xdscore.schema.completion import MAX_SUGGESTIONS, completion_of, names_written
from xdscore.schema.cursor import place_of

JSON = '{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", '
CLUSTER = '"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster\n'
ROUTE = '"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n'
HTTP = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
OPTIONS = f"typed_extension_protocol_options:\n  any.name:\n    '@type': {HTTP}\n"


def suggested(before: str, type_url: str = "") -> list[str]:
    found = completion_of(before, type_url=type_url)
    return [each.label for each in found.suggestions] if found is not None else []


@pytest.mark.parametrize(
    ("before", "first"),
    [
        (CLUSTER + "conn", "connect_timeout"),
        (CLUSTER + "outlier_detection:\n  consecutive_5", "consecutive_5xx"),
        (CLUSTER + "load_assignment:\n  endpoints:\n  - lb_endp", "lb_endpoints"),
        (CLUSTER + "load_assignment:\n  endpoints:\n    - lb_endpoints:\n      - endpoint:\n          addr", "address"),
        (ROUTE + "virtual_hosts:\n- name: a\n  domains:\n  - '*'\n  rout", "routes"),
        (ROUTE + "virtual_hosts:\n- name: a\n  routes:\n  - match:\n      prefix: /\n    rou", "route"),
        (ROUTE + "virtual_hosts:\n  - name: a\n    routes:\n      - match:\n          pref", "prefix"),
        (ROUTE + "virtual_hosts:\n- routes: []\n- nam", "name"),
        ("# a comment\n---\n" + CLUSTER + "\n\n# another\nlb_pol", "lb_policy"),
        (CLUSTER + OPTIONS + "    explicit_h", "explicit_http_config"),
        (JSON + '"conn', "connect_timeout"),
        (JSON + '"loadAssignment": {"endpoints": [{"lb_e', "lb_endpoints"),
        ('{"resources": [1, {"a": "b"}], "@ty', "@type"),
    ],
)  # fmt: skip
def test_key__half_written__is_completed_by_the_message_it_is_in(before: str, first: str) -> None:
    assert suggested(before)[0] == first


@pytest.mark.parametrize(
    ("before", "values"),
    [
        (CLUSTER + "lb_policy: LEAST", ["LEAST_REQUEST"]),
        (CLUSTER + "respect_dns_ttl: t", ["true"]),
        (CLUSTER + "outlier_detection:\n  always_eject_one_host: ", ["true", "false"]),
        ('"@type": type.googleapis.com/envoy.config.clu', [CLUSTER.split()[1]]),
        (JSON + '"lb_policy": "MAG', ["MAGLEV"]),
    ],
)  # fmt: skip
def test_value__of_an_enum_bool_or_type__is_completed(before: str, values: list[str]) -> None:
    assert suggested(before) == values


def asked_for(before: str) -> tuple[ResourceType, str] | None:
    """For which names a completion asks: of which type, with which part."""
    asked: list[tuple[ResourceType, str]] = []

    def names_of(kind: ResourceType, part: str) -> dict[str, str]:
        asked.append((kind, part))
        return {}

    completion_of(before, names_of=names_of)
    return asked[0] if asked else None


LISTENER = '"@type": type.googleapis.com/envoy.config.listener.v3.Listener\nfilter_chains:\n'
HCM = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
AGGREGATE = "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig"
ROUTES_OF_A = ROUTE + "virtual_hosts:\n- name: a\n  routes:\n  - match: {prefix: /}\n    route:\n      "


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        (ROUTES_OF_A + "cluster: pa", (CLUSTERS, "pa")),
        (ROUTES_OF_A + "cluster: 'outbound|80||pa", (CLUSTERS, "outbound|80||pa")),
        (ROUTES_OF_A + "weighted_clusters:\n        clusters:\n        - name: ", (CLUSTERS, "")),
        (LISTENER + f"- filters:\n  - name: hcm\n    typed_config:\n      '@type': {HCM}\n      rds:\n"
         "        route_config_name: e", (ROUTES, "e")),
        (CLUSTER + f"transport_socket:\n  name: tls\n  typed_config:\n    '@type': {TLS}\n    common_tls_context:\n"
         "      tls_certificate_sds_secret_configs:\n      - name: ", (SECRET, "")),
        (CLUSTER + "eds_cluster_config:\n  service_name: xdstp://a/b", (ENDPOINT, "xdstp://a/b")),
        (CLUSTER + f"cluster_type:\n  name: any\n  typed_config:\n    '@type': {AGGREGATE}\n    clusters:\n"
         "    - one\n    - tw", (CLUSTERS, "tw")),
        (LISTENER + "- filters:\n  - name: x", (EXTENSION, "x")),
        (JSON + '"edsClusterConfig": {"serviceName": "pa', (ENDPOINT, "pa")),
        (JSON + '"name": "pa', None),
        (ROUTES_OF_A + "clus", None),
    ],
)  # fmt: skip
def test_name__where_a_field_refers_to_a_resource__is_asked_for_by_its_type(
    before: str, wanted: tuple[ResourceType, str] | None
) -> None:
    assert asked_for(before) == wanted


def test_name__that_yaml_would_read_otherwise__is_written_with_quotes() -> None:
    found = completion_of(ROUTES_OF_A + "cluster: ", names_of=lambda *_: {"pay": "", "on: off": "", "80": "here"})

    assert found is not None
    assert [(each.label, each.plain, each.detail) for each in found.suggestions] == [
        ("pay", "pay", "Cluster"),
        ("on: off", "'on: off'", "Cluster"),
        ("80", "'80'", "here"),
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (CLUSTER + "name: pay  # the old one\n---\n" + ROUTE + "name: edge\n---\n" + CLUSTER + 'name: "refund"',
         ("pay", "refund")),
        ("- " + CLUSTER + "  name: pay\n  load_assignment:\n    name: x\n- name: refund\n  " + ROUTE, ("pay",)),
        ("- " + CLUSTER.replace("\n", "\n  ") + "name: pay\n- " + CLUSTER.replace("\n", "\n  ") + "name: pay-2\n  conn",
         ("pay", "pay-2")),
        ("[" + JSON + '"name": "pay", "metadata": {"name": "x"}}, ' + JSON + '"name": "pay-2", "conn',
         ("pay", "pay-2")),
        ("", ()),
    ],
)  # fmt: skip
def test_names_written__in_a_half_written_text__are_those_of_its_outermost_mappings(
    text: str, names: tuple[str, ...]
) -> None:
    assert names_written(text, CLUSTERS) == names


def test_key__nothing_said_yet__begins_with_the_type() -> None:
    assert suggested("") == ["@type"]
    assert "connect_timeout" in suggested("conn", "type.googleapis.com/envoy.config.cluster.v3.Cluster")


def test_key__written_already__is_not_suggested_again() -> None:
    assert "name" not in suggested(CLUSTER + "name: pay\nna")


def test_key__of_a_list_beside__is_suggested_again() -> None:
    assert "name" in suggested(ROUTE + "virtual_hosts:\n- name: a\n- na")


@pytest.mark.parametrize(
    "before",
    [
        CLUSTER + "no_such_field:\n  x",
        CLUSTER + "connect_timeout:\n  s",
        CLUSTER + "load_assignment: {endp",
        CLUSTER + "metadata:\n  filter_metadata:\n    envoy.lb:\n      any",
        '"@type": type.googleapis.com/no.such.Type\nna',
        '{"a": 1, b',
        '{"@type": "x", "a": {"b',
    ],
)
def test_key__where_nobody_knows__nothing_is_suggested(before: str) -> None:
    assert suggested(before) == []


def test_fields__of_cluster__each_says_what_it_holds_and_there_are_not_too_many() -> None:
    found = completion_of(CLUSTER)

    assert found is not None
    details = {each.label: each.detail for each in found.suggestions}
    assert details["connect_timeout"] == "duration, as 5s"
    assert details["lb_policy"] == "LbPolicy"
    assert details["health_checks"] == "list of HealthCheck"
    assert details["typed_extension_protocol_options"] == "map to Any"
    assert len(details) <= MAX_SUGGESTIONS


@given(text=st.text(alphabet="ab:- \n{}[]\",'@#|>\\", max_size=200))
def test_place__any_text__is_a_place_or_none_and_never_a_crash(text: str) -> None:
    place = place_of(text)

    assert place is None or text.endswith(place.word)
    completion_of(text)
    names_written(text, CLUSTERS)


def test_place__deeper_than_any_manifest__is_none() -> None:
    assert place_of("".join(f"{' ' * depth}a:\n" for depth in range(200)) + " " * 200 + "b") is None
    assert place_of('{"a":' * 200 + '{"b') is None


@pytest.mark.parametrize(("start", "repeated"), [("a", " "), ('"a"', " "), ("", "- "), ("", "a ")])
def test_place__of_a_very_long_line__is_told_in_one_reading(start: str, repeated: str) -> None:
    # Anybody who may edit can send such a text (threat 13). Read anew from each of its blanks it would take hours.
    line = start + repeated * 500_000

    place_of(line)
    place_of(line + "\nname: ")
