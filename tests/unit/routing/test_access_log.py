"""Lines of access logs: read back what Envoy wrote, whoever wrote a part of it, and never worse than a sentence."""

import json
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from xdscore.routing.access_log import MAX_TEXT_CHARS, LogLine, UnreadableLine, line_of

# As Envoy 1.40 writes them, with what its documentation says for the default format.
DEFAULT = (
    '[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" '
    '"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"'
)
NO_ROUTE = (
    '[2026-01-31T02:10:00.310Z] "GET /pay?n=1 HTTP/1.1" 404 NR 0 0 0 - "-" "curl/8.5.0" "ab-1" "shop.example:8080" "-"'
)
ISTIO = (
    '[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 503 UF,URX upstream_reset{connection_failure} - '
    '"delayed connect error: 111" 0 135 4 - "-" "curl/7.73.0 (a; b)" "84961386" "httpbin:8000" "[2001:db8::1]:80" '
    "outbound|8000||httpbin 127.0.0.1:41854 10.44.1.27:8443 10.44.1.23:37652 httpbin.example default"
)


def read(text: str) -> LogLine | str:
    """The line, or the sentence that says why there is none."""
    try:
        return line_of(text)
    except UnreadableLine as error:
        return str(error)


def test_line__of_the_default_format__has_the_request_and_what_became_of_it() -> None:
    found = line_of(DEFAULT)

    assert (found.method, found.path, found.authority) == ("POST", "/api/v1/locations", "locations")
    assert (found.status, found.flags, found.upstream_host) == (204, (), "tcp://10.0.2.1:80")
    assert found.request.headers == {"user-agent": "nsq2http"}
    assert (found.unsure, found.others, found.started) == (False, 0, "2016-04-15T20:17:00.310Z")


def test_line__with_nothing_in_some_places__has_nothing_there() -> None:
    found = line_of(NO_ROUTE)

    assert (found.path, found.status, found.flags) == ("/pay?n=1", 404, ("NR",))
    assert (found.upstream_host, found.upstream_cluster, found.details) == ("", "", "")
    assert found.request.scheme == "http"


def test_line__of_istio__has_cluster_and_route_and_speaks_for_tls() -> None:
    found = line_of(ISTIO)

    assert (found.status, found.flags) == (503, ("UF", "URX"))
    assert (found.upstream_cluster, found.upstream_host) == ("outbound|8000||httpbin", "[2001:db8::1]:80")
    assert (found.server_name, found.route_name) == ("httpbin.example", "default")
    assert found.request.scheme == "https"


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("pod/edge-1 ", ""),
        ("2026-01-31T02:10:00Z stdout F ", ""),
        ("", ' "gold" 17'),
        ("", " tenant=7"),
        ("  ", "\r\n"),
    ],
)
def test_line__with_something_before_or_behind__is_read_all_the_same(before: str, behind: str) -> None:
    found = line_of(before + NO_ROUTE + behind)

    assert (found.authority, found.status, found.flags) == ("shop.example:8080", 404, ("NR",))


@pytest.mark.parametrize(
    "keys",
    [
        ("method", "path", "authority", "response_code", "response_flags", "upstream_cluster"),
        ("method", "x-envoy-origin-path", ":authority", "response_code", "response_flags", "upstream_cluster"),
        (":METHOD", ":path", "host", "status", "response_flags", "upstream_cluster"),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("status", [404, 404.0, "404"])
def test_json__with_usual_keys__is_read(keys: tuple[str, ...], indent: int | None, status: object) -> None:
    said = dict(zip(keys, ("GET", "/pay", "[2001:db8::1]:80", status, "NR", "-"), strict=True))

    found = line_of(json.dumps(said | {"duration": None, "more": {"a": [1]}}, indent=indent))

    assert (found.method, found.path, found.authority) == ("GET", "/pay", "[2001:db8::1]:80")
    assert (found.status, found.flags, found.upstream_cluster) == (404, ("NR",), "")


def test_json__of_a_collector__has_the_line_inside() -> None:
    inside = json.dumps({"log": NO_ROUTE + "\n", "stream": "stdout"})

    assert line_of(inside) == line_of(NO_ROUTE)
    assert line_of(NO_ROUTE.replace('"', '\\"')) == line_of(NO_ROUTE)


def test_lines__several__the_first_that_can_be_read_is_taken_and_the_others_are_counted() -> None:
    found = line_of(f"no line\n\n{NO_ROUTE}\n{DEFAULT}\n")

    assert (found.status, found.others) == (404, 2)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "{" * 20_000, "[" * 20_000, '{"a":' * 5_000, "GET / 404", '[x] "GET / HTTP/1.1" 404', "\x00"],
)
def test_text__that_is_no_line__is_said_to_be_none_with_what_would_be_one(text: str) -> None:
    with pytest.raises(UnreadableLine, match="Known are Envoy's default format"):
        line_of(text)


def test_text__too_long__is_not_looked_at() -> None:
    with pytest.raises(UnreadableLine, match="more than 32,768 characters"):
        line_of(DEFAULT + " " * MAX_TEXT_CHARS)


def test_line__of_what_was_no_request__says_so() -> None:
    with pytest.raises(UnreadableLine, match="has no request"):
        line_of('[2026-01-31T02:10:00.310Z] "- - HTTP/1.1" 400 DPE 0 11 0 - "-" "-" "-" "-" "-"')


TOKENS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
HOSTS = st.one_of(TOKENS, TOKENS.map(lambda text: f"{text}:80"), st.just("[2001:db8::1]:443"), st.just("-"))
AGENTS = st.lists(st.sampled_from([*"ab /();-,'é\t\"", '" "', "c.example", "10.0.0.1:80"]), max_size=12).map("".join)
# No blank is in a path, and anything else may be.
PATHS = st.text(st.characters(exclude_categories=["Z", "C"]), max_size=30).map(lambda text: f"/{text}")
FLAGS = st.lists(st.sampled_from(["NR", "UH", "UF", "NC"]), unique=True)


@given(TOKENS, PATHS, HOSTS, AGENTS, FLAGS, st.sampled_from(["-", "200", "0", "503"]), HOSTS)
def test_line__whatever_callers_write_into_it__is_read_back_or_unsure(
    method: str, path: str, authority: str, agent: str, flags: list[str], status: str, host: str
) -> None:
    assume(path != "/-")
    words = ",".join(flags) or "-"
    line = f'[now] "{method} {path} HTTP/1.1" {status} {words} 0 19 0 - "-" "{agent}" "id-1" "{authority}" "{host}"'

    found = read(line)

    if isinstance(found, str):
        assert '"' in agent
        return
    assert (found.method, found.path, found.flags) == (method, path, tuple(flags))
    assert found.status == int(status.replace("-", "0"))
    if not found.unsure:
        said = (found.authority or "-", found.user_agent or "-", found.upstream_host or "-")
        assert said == (authority, agent or "-", host)


def test_line__whose_user_agent_pretends_to_be_the_fields_behind_it__is_unsure() -> None:
    agent = 'curl" "id-9" "evil.example" "10.0.0.1:80'

    assert line_of(NO_ROUTE.replace("curl/8.5.0", agent)).unsure
    assert not line_of(NO_ROUTE.replace("curl/8.5.0", 'a "quoted" agent')).unsure


@given(st.text(max_size=300))
def test_text__any__is_a_line_or_a_sentence(text: str) -> None:
    for each in (text, f'[x] "{text}', DEFAULT + text, text + DEFAULT, json.dumps({"message": text, "path": text})):
        assert isinstance(read(each), LogLine | str)


@pytest.mark.parametrize("part", ['" "', '] "', '"', '\\"', "a ", "[", '{"a":"'])
def test_text__as_long_as_it_may_be__takes_no_time(part: str) -> None:
    text = (DEFAULT[:80] + part * MAX_TEXT_CHARS)[: MAX_TEXT_CHARS - 1]
    began = time.process_time()

    for each in (text, text.replace(" ", '" "')[: MAX_TEXT_CHARS - 1], part * (MAX_TEXT_CHARS // len(part))):
        read(each)

    assert time.process_time() - began < 1
