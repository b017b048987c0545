"""What proxies take and can never use: said with both places, and never of what a request or connection can reach."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.routing import message_of
from tests.support.routing_cases import Generator
from xdscore.findings import Finding, Severity
from xdscore.routing.chains import chosen_chain
from xdscore.routing.matching import matched_path, route_miss
from xdscore.routing.seen import seen_of
from xdscore.routing.values import Place, Request
from xdscore.schema import Media, ParsedResource, parse, read_manifests
from xdscore.schema.fixed_texts import fixed_start
from xdscore.schema.never_used import never_used_in
from xdscore.schema.shadowing import shadowed_in
from xdscore.schema.walk import AnyMessage, unpack

ANY = "type.googleapis.com/"
ROUTE = ANY + "envoy.config.route.v3.RouteConfiguration"
LISTENER = ANY + "envoy.config.listener.v3.Listener"
INSPECTOR = {"@type": ANY + "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}
Json = dict[str, Any]


def exact(name: str, value: str) -> Json:
    return {"name": name, "string_match": {"exact": value}}


def configuration(*matches: Json, **more: Any) -> Json:
    routes = [{"match": match, "direct_response": {"status": 200}} for match in matches]
    return {
        "@type": ROUTE,
        "name": "r",
        "virtual_hosts": [{"name": "v", "domains": ["shop.example"], "routes": routes}],
        **more,
    }


def found(manifest: Json) -> tuple[Finding, ...]:
    (read,), _ = read_manifests(yaml.safe_dump(manifest, sort_keys=False).encode(), Media.YAML)
    result = parse(read)
    assert isinstance(result, ParsedResource), result.findings
    return result.findings


def pairs(*matches: Json) -> list[tuple[int, int]]:
    return list(shadowed_in(message_of(configuration(*matches)).virtual_hosts[0]))


A, B = exact("x-a", "1"), exact("x-b", "1")
HALF = {"runtime_fraction": {"default_value": {"numerator": 50}}}
SHADOWED: list[tuple[str, Json, Json]] = [
    ("the same", {"path": "/pay"}, {"path": "/pay"}),
    ("prefix before path", {"prefix": "/"}, {"path": "/pay"}),
    ("prefix before longer prefix", {"prefix": "/p"}, {"prefix": "/pay"}),
    ("prefix before segments", {"prefix": "/pay"}, {"path_separated_prefix": "/pay"}),
    ("prefix before pattern", {"prefix": "/pay/"}, {"safe_regex": {"regex": "/pay/[0-9]+"}}),
    ("segments before path", {"path_separated_prefix": "/pay"}, {"path": "/pay/now"}),
    ("segments before prefix with slash", {"path_separated_prefix": "/pay"}, {"prefix": "/pay/"}),
    ("any pattern", {"safe_regex": {"regex": ".*"}}, {"prefix": "/pay"}),
    ("same pattern", {"safe_regex": {"regex": "/a[0-9]"}}, {"safe_regex": {"regex": "/a[0-9]"}}),
    ("pattern of a text", {"safe_regex": {"regex": r"/a\.b"}}, {"path": "/a.b"}),
    ("fewer conditions", {"prefix": "/", "headers": [A]}, {"prefix": "/", "headers": [B, A]}),
    ("in any case", {"prefix": "/PAY", "case_sensitive": False}, {"path": "/Pay/now"}),
    ("no letters", {"prefix": "/"}, {"prefix": "/PAY", "case_sensitive": False}),
    ("a share after all", {"prefix": "/"}, {"prefix": "/pay", **HALF}),
    ("connect", {"connect_matcher": {}}, {"connect_matcher": {}, "headers": [A]}),
    (
        "query",
        {"prefix": "/", "query_parameters": [{"name": "q"}]},
        {"path": "/a", "query_parameters": [{"name": "q"}]},
    ),
]
REACHED: list[tuple[str, Json, Json]] = [
    ("longer first", {"prefix": "/pay"}, {"prefix": "/p"}),
    ("segments leave the rest", {"path_separated_prefix": "/pay"}, {"prefix": "/pay"}),
    ("segments leave other words", {"path_separated_prefix": "/pay"}, {"path": "/payment"}),
    ("only some requests", {"prefix": "/", "headers": [A]}, {"prefix": "/"}),
    ("other conditions", {"prefix": "/", "headers": [A]}, {"prefix": "/", "headers": [B]}),
    ("a share", {"prefix": "/", **HALF}, {"prefix": "/"}),
    ("case", {"prefix": "/pay"}, {"prefix": "/pay", "case_sensitive": False}),
    ("a pattern that is not total", {"safe_regex": {"regex": "/a.+"}}, {"prefix": "/a"}),
    ("patterns that may begin otherwise", {"prefix": "/a"}, {"safe_regex": {"regex": "/ab*|/c"}}),
    ("what may be left out", {"prefix": "/ab"}, {"safe_regex": {"regex": "/ab?"}}),
    ("connect has no path", {"prefix": ""}, {"connect_matcher": {}}),
    ("grpc only", {"prefix": "/", "grpc": {}}, {"prefix": "/"}),
]


@pytest.mark.parametrize(("earlier", "later"), [each[1:] for each in SHADOWED], ids=[each[0] for each in SHADOWED])
def test_route__all_of_which_an_earlier_one_takes__is_said_to_never_match(earlier: Json, later: Json) -> None:
    assert pairs({"path": "/other"}, earlier, later) == [(2, 1)]


@pytest.mark.parametrize(("earlier", "later"), [each[1:] for each in REACHED], ids=[each[0] for each in REACHED])
def test_route__of_which_something_is_left__is_not_said_to_never_match(earlier: Json, later: Json) -> None:
    assert pairs(earlier, later) == []


def test_route__that_never_matches__is_a_warning_with_both_lines() -> None:
    (said,) = found(configuration({"prefix": "/"}, {"path": "/pay"}))

    assert (said.code, said.severity, said.line) == ("XDS1095", Severity.WARNING, 12)
    assert said.pointer == "/virtual_hosts/0/routes/1/match"
    assert said.detail == (
        "Route 1 of virtual host 'v' never matches: "
        "route 0 (line 8), which comes before it, takes all that it could take."
    )


def test_route__that_never_matches__in_a_body_without_lines__has_pointers() -> None:
    wrapped = {
        "@type": ANY + "envoy.service.discovery.v3.Resource",
        "resource": configuration({"prefix": "/"}, {"path": "/pay"}),
    }
    (read,), _ = read_manifests(json.dumps({"resources": [wrapped]}["resources"]).encode(), Media.JSON)

    result = parse(read)

    assert [each.pointer for each in result.findings] == ["/0/resource/virtual_hosts/0/routes/1/match"]


def test_route__more_than_can_be_corrected_at_once__are_counted_and_hide_no_error() -> None:
    manifest = configuration(*({"prefix": "/"} for _ in range(80)))
    codes = [each.code for each in found(manifest)]
    assert codes == ["XDS1095"] * 50 + ["XDS1099"]

    manifest["virtual_hosts"].append({"name": "w", "domains": ["shop.example"]})
    (read,), _ = read_manifests(json.dumps(manifest).encode(), Media.JSON)
    assert "XDS2005" in {each.code for each in parse(read).findings}


@pytest.mark.parametrize(
    ("match", "codes"),
    [
        ({"prefix": "api"}, ["XDS1096"]),
        ({"path": "/a?b=c"}, ["XDS1096"]),
        ({"path": "*"}, []),
        ({"prefix": ""}, []),
        ({"safe_regex": {"regex": "api"}}, []),
    ],
)
def test_path__that_no_request_has__is_a_warning(match: Json, codes: list[str]) -> None:
    assert [each.code for each in found(configuration(match))] == codes


@pytest.mark.parametrize(
    ("domain", "codes"),
    [("shop.example:8080", ["XDS1097"]), ("[::1]:80", ["XDS1097"]), ("*:80", ["XDS1097"]), ("[::1]", []), ("*", [])],
)
def test_domain__with_a_port_that_is_not_compared__is_a_warning(domain: str, codes: list[str]) -> None:
    manifest = configuration({"prefix": "/"}, ignore_port_in_host_matching=True)
    manifest["virtual_hosts"][0]["domains"] = [domain]

    assert [each.code for each in found(manifest)] == codes
    assert found(manifest | {"ignore_port_in_host_matching": False}) == ()


def listener(*matches: Json, inspects: bool = False, default: bool = False, **more: Any) -> Json:
    chains = [{"name": f"c{index}", "filter_chain_match": match} for index, match in enumerate(matches)]
    return {
        "@type": LISTENER,
        "name": "l",
        "address": {"socket_address": {"address": "0.0.0.0", "port_value": 443}},  # noqa: S104 - nothing listens
        "filter_chains": chains,
        **({"listener_filters": [{"name": "tls", "typed_config": INSPECTOR}]} if inspects else {}),
        **({"default_filter_chain": {"name": "rest"}} if default else {}),
        **more,
    }


NAMED = {"server_names": ["shop.example"]}


@pytest.mark.parametrize(
    ("manifest", "places"),
    [
        (listener(NAMED, {}), ["filter_chains/0/filter_chain_match/server_names"]),
        (listener({"transport_protocol": "tls"}, {}), ["filter_chains/0/filter_chain_match/transport_protocol"]),
        (listener(NAMED, {}, inspects=True), []),
        (listener({"destination_port": 80}, {}), ["filter_chains/0/filter_chain_match/destination_port"]),
        (listener({"destination_port": 443}, {}), []),
        (listener({"destination_port": 80}, {}, use_original_dst=True), []),
        (listener(NAMED, {}, inspects=True, default=True), ["default_filter_chain"]),
        (listener(NAMED | {"application_protocols": ["h2"]}, {}, inspects=True, default=True), []),
        (listener(NAMED, inspects=True, default=True), []),
    ],
)
def test_chain__that_no_connection_has__is_a_warning_at_what_keeps_it(manifest: Json, places: list[str]) -> None:
    message = message_of(manifest)

    said = list(never_used_in(message, ()))

    assert ["/".join(map(str, each.place)) for each in said] == places
    assert {each.code.code for each in said} <= {"XDS1098"}


MATCHES = st.fixed_dictionaries(
    {},
    optional={
        "headers": st.lists(st.sampled_from([A, B, {"name": "x-a", "present_match": True}]), max_size=2),
        "query_parameters": st.lists(st.sampled_from([{"name": "q"}, {"name": "w"}]), max_size=2),
        "case_sensitive": st.booleans(),
        "grpc": st.just({}),
        "runtime_fraction": st.sampled_from([{"default_value": {"numerator": each}} for each in (0, 50, 100)]),
    },
)
WORDS = st.lists(st.sampled_from(["a", "A", "ab", ".", "1"]), max_size=3).map(lambda words: "/" + "/".join(words))
PATHS = st.one_of(
    WORDS.map(lambda text: {"path": text}),
    WORDS.map(lambda text: {"prefix": text}),
    st.just({"prefix": ""}),
    WORDS.filter(lambda text: not text.endswith("/")).map(lambda text: {"path_separated_prefix": text}),
    st.text(st.sampled_from("/aA1.*+?\\|[]()b"), max_size=6).map(lambda text: {"safe_regex": {"regex": text}}),
    st.just({"connect_matcher": {}}),
)
ROUTES = st.lists(st.builds(lambda path, match: match | path, PATHS, MATCHES), min_size=2, max_size=8)
MORE = ("", "b", "/", "/b", "1")
HEADERS: list[dict[str, str]] = [{}, {"x-a": "1"}, {"x-a": "1", "x-b": "1"}, {"content-type": "application/grpc"}]


def aimed(matches: list[Json]) -> list[Request]:
    """Requests for the very paths of these routes, and for paths beside them."""
    texts = {each[kind] for each in matches for kind in ("path", "prefix", "path_separated_prefix") if kind in each}
    paths = {text + more for text in texts for more in MORE if (text + more).startswith("/")} | {"/", "/a?q=1"}
    cased = {each for path in paths for each in (path, path.lower(), path.upper())}
    return [Request("shop.example", "/", method="CONNECT")] + [
        Request("shop.example", path + query, headers=headers)
        for path in sorted(cased)
        for query in ("", "?q=1&w")
        for headers in HEADERS
    ]


@given(ROUTES)
def test_route__said_to_never_match__takes_no_request_that_the_other_one_leaves(matches: list[Json]) -> None:
    message = message_of(configuration(*matches))
    assert_sound(message, message.virtual_hosts[0], aimed(matches))


@given(st.integers(0, 100_000))
def test_route__of_configurations_as_the_oracle_has_them__said_to_never_match__takes_none(seed: int) -> None:
    generator = Generator(seed)
    made = generator.listener("l", 8080)
    chain = message_of({"@type": LISTENER, **made}).filter_chains[0]
    manager: AnyMessage = unpack(chain.filters[0].typed_config)
    configured = manager.route_config
    requests = [generator.request(made) for _ in range(5)]
    for host in configured.virtual_hosts:
        assert_sound(configured, host, requests)


def assert_sound(configured: AnyMessage, host: AnyMessage, requests: list[Request]) -> None:
    never: Mapping[int, int] = dict(shadowed_in(host))
    for request in requests if never else ():
        for grpc in (False, True):
            seen = seen_of(request, grpc=grpc)
            path = matched_path(seen, configured)
            for later, earlier in never.items():
                if route_miss(host.routes[later].match, seen, path) is not None:
                    continue
                first = route_miss(host.routes[earlier].match, seen, path)
                known = first is None or first.judged
                share = host.routes[earlier].match.HasField("runtime_fraction")
                assert not known or (first is None and not share), (request, host.routes[earlier], host.routes[later])


CRITERIA = st.fixed_dictionaries(
    {},
    optional={
        "server_names": st.sampled_from([["shop.example"], ["*.example"], ["other.example"]]),
        "transport_protocol": st.sampled_from(["tls", "raw_buffer"]),
        "destination_port": st.sampled_from([80, 443]),
    },
)


@given(
    st.lists(CRITERIA, min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["shop.example", "a.example", "x"]),
    st.sampled_from([80, 443, 8443]),
)
def test_chain__said_to_be_never_chosen__is_chosen_for_no_connection(
    matches: list[Json], inspects: bool, original: bool, scheme: str, host: str, port: int
) -> None:
    made = listener(*matches, inspects=inspects, default=True, use_original_dst=original)
    message = message_of(made)

    said = list(never_used_in(message, ()))

    dialled = port if original else 443
    choice = chosen_chain(message, seen_of(Request(host, "/", scheme=scheme)), dialled, Place(("listener", "l")))
    chosen = ("default_filter_chain",) if choice.index is None else ("filter_chains", choice.index)
    assert chosen not in {each.place[: len(chosen)] for each in said}


@pytest.mark.parametrize(
    ("pattern", "start", "rest"),
    [
        ("/a/.*", "/a/", ".*"),
        (r"/a\.b", "/a.b", ""),
        ("/ab?c", "/a", "b?c"),
        ("/ab+", "/ab", "+"),
        ("/a{2}", "/", "a{2}"),
        (r"/\d", "/", r"\d"),
        ("(?i)/a", "", "(?i)/a"),
        ("/a|/b", "", "/a|/b"),
        (r"/a\.?", "/a", r"\.?"),
        ("", "", ""),
    ],
)
def test_fixed_start__of_a_pattern__is_what_all_its_matches_begin_with(pattern: str, start: str, rest: str) -> None:
    assert fixed_start(pattern) == (start, rest)
