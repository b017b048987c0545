"""Exposing a service: what facts come to, and what is said of those that cannot be."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.manifests import api_listener, cluster, endpoints, listener, route, tls_secret
from tests.support.routing import answer, held
from xdscore.exposing import Clients, Exposed, Facts, exposed
from xdscore.resource_types import ResourceType, by_url
from xdscore.routing.values import Answer, Request
from xdscore.schema import Media, ParsedResource, parse, read_manifests

FACTS = Facts("pay", domains=("pay.example.org",), addresses=("10.0.0.7:8080", "[2001:db8::1]:81"), port="8080")
GRPC = Facts("pay", Clients.GRPC, domains=("pay.demo", "pay.demo:443"), addresses=("10.0.0.7:8080",))


def of(facts: Facts, *stored: Mapping[str, Any]) -> Exposed:
    there = {(kind := by_url[tree["@type"]], tree[kind.name_field]): tree for tree in stored}

    def read(kind: ResourceType, name: str) -> Mapping[str, object] | None:
        return there.get((kind, name))

    return exposed(facts, read)


def named(found: Exposed) -> list[str]:
    """The resources that are made, each of them sound."""
    assert found.problems == {}
    manifests, findings = read_manifests(json.dumps(found.manifests).encode(), Media.JSON)
    assert findings == ()
    results = [parse(each) for each in manifests]
    assert all(isinstance(each, ParsedResource) and not each.findings for each in results), results
    return [f"{each.type.word} {each.name}" for each in results if isinstance(each, ParsedResource)]


@pytest.mark.parametrize(
    ("facts", "stored", "made"),
    [
        (FACTS, (), ["cluster pay", "endpoint pay", "route pay", "listener pay"]),
        (replace(FACTS, http2=True, timeout="250ms", secret="tls", labels={"team": "pay"}), (tls_secret("tls", "x"),),
         ["cluster pay", "endpoint pay", "route pay", "listener pay"]),
        (replace(FACTS, addresses=("pay.internal:80", "10.0.0.7:1")), (), ["cluster pay", "route pay", "listener pay"]),
        (replace(FACTS, addresses=(), cluster="old"), (cluster("old"),), ["route pay", "listener pay"]),
        (replace(FACTS, port="", listener="edge"), (listener("edge", "routes", 80), route("routes", "x", domain="a")),
         ["cluster pay", "endpoint pay", "route routes"]),
        (replace(FACTS, port="", listener="edge"), (listener("edge", "routes", 80),),
         ["cluster pay", "endpoint pay", "route routes"]),
        (GRPC, (), ["cluster pay", "endpoint pay", "route pay", "listener pay.demo", "listener pay.demo:443"]),
        (replace(GRPC, addresses=("pay.internal:80",), timeout="15s"), (),
         ["cluster pay", "route pay", "listener pay.demo", "listener pay.demo:443"]),
    ],
)  # fmt: skip
def test_exposed__of_facts__is_sound_manifests(facts: Facts, stored: tuple[Any, ...], made: list[str]) -> None:
    assert named(of(facts, *stored)) == made


def test_exposed__behind_a_listener__adds_a_virtual_host_and_changes_nothing_else() -> None:
    edge, routes = listener("edge", "routes", 80), route("routes", "shop", domain="shop.example.org")
    found = of(replace(FACTS, port="", listener="edge", labels={"team": "pay"}), edge, routes)

    assert found.changed == ("route", "routes")
    changed = found.manifests[-1]
    assert changed == {**routes, "virtual_hosts": [*routes["virtual_hosts"], changed["virtual_hosts"][-1]]}  # type: ignore[misc]  # a list
    assert ["@labels" in each for each in found.manifests] == [True, True, False]


@pytest.mark.parametrize(("path", "answered"), [("/pay/1", Answer.ROUTED), ("/other", Answer.REFUSED)])
def test_exposed__by_host_and_prefix__routes_what_it_says(path: str, answered: Answer) -> None:
    found = of(replace(FACTS, prefix="/pay", addresses=(), cluster="old"), cluster("old"))
    asked = Request("pay.example.org:8080", path)

    assert answer(asked, held(*found.manifests, cluster("old")), "pay").answer is answered


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("name", "", "The name is empty."),
        ("name", "*", "The name is '*'"),
        ("name", "a\nb", "control character"),
        ("name", "x" * 201, "at most 200"),
        ("domains", (), "at least one host"),
        ("domains", ("https://a",), "leave out scheme and path"),
        ("domains", ("a/b",), "leave out scheme and path"),
        ("domains", ("a", "A"), "'A' stands there twice."),
        ("domains", ("a.*.b",), "has a star where none may be"),
        ("domains", ("*a*",), "has a star where none may be"),
        ("domains", tuple(f"h{number}" for number in range(51)), "51 hosts; at most 50"),
        ("prefix", "pay", "begins with /"),
        ("prefix", "/a?b", "without blanks"),
        ("addresses", (), "Say where it runs"),
        ("addresses", ("10.0.0.1",), "is no HOST:PORT"),
        ("addresses", ("::1:80",), "is no HOST:PORT"),
        ("addresses", ("[x]:80",), "is no HOST:PORT"),
        ("addresses", ("a:0",), "is no HOST:PORT"),
        ("addresses", ("a:65536",), "is no HOST:PORT"),
        ("addresses", ("a b:80",), "is no HOST:PORT"),
        ("addresses", ("a:80", "a:80"), "stands there twice"),
        ("addresses", tuple(f"h:{number + 1}" for number in range(101)), "101 addresses"),
        ("cluster", "old", "There is no cluster 'old' here."),
        ("port", "", "Type a port from 1 to 65535"),
        ("port", "0", "Type a port"),
        ("port", "٨٠", "Type a port"),
        ("listener", "edge", "There is no listener 'edge' here."),
        ("secret", "tls", "There is no secret 'tls' here."),
        ("timeout", "soon", "A timeout is such as"),
        ("timeout", "0s", "A timeout is such as"),
        ("timeout", "86401s", "A timeout is such as"),
    ],
)
def test_facts__that_cannot_be__are_said_at_the_fact(fact: str, value: Any, said: str) -> None:
    found = of(replace(FACTS, **{fact: value}))

    assert said in found.problems[fact]
    assert found.manifests == ()


@pytest.mark.parametrize(("fact", "value"), [("port", "80"), ("listener", "edge"), ("secret", "tls")])
def test_facts__of_proxies__are_not_for_grpc(fact: str, value: Any) -> None:
    assert list(of(replace(GRPC, **{fact: value})).problems) == [fact]


def test_facts__of_grpc__take_no_star_and_one_host_name_alone() -> None:
    assert "one target each" in of(replace(GRPC, domains=("*",))).problems["domains"]
    assert "one host name alone" in of(replace(GRPC, addresses=("a:1", "b:1"))).problems["addresses"]


def test_facts__all_wrong__are_all_said_at_once() -> None:
    found = of(Facts(timeout="x", prefix="x", port="x"))

    assert set(found.problems) == {"name", "domains", "prefix", "addresses", "port", "timeout"}


@pytest.mark.parametrize(
    "stored", [cluster("pay"), endpoints("pay", 80), route("pay", "x"), listener("pay", "x", 80)], ids=str
)
def test_exposed__name_that_is_there__is_written_over_by_nothing(stored: Mapping[str, Any]) -> None:
    word = by_url[stored["@type"]].word

    assert of(FACTS, stored).problems == {"name": f"The {word} 'pay' is there already."}
    # Also where something else is wrong.
    wrong = of(replace(FACTS, addresses=("x",), port="x"), stored)
    assert (set(wrong.problems), wrong.problems["name"]) == (
        {"name", "addresses", "port"},
        f"The {word} 'pay' is there already.",
    )


def test_exposed__all_names_are_there__are_all_said() -> None:
    said = of(GRPC, cluster("pay"), route("pay", "x"), api_listener("pay.demo", "x")).problems

    assert said == {
        "name": "The cluster 'pay', the route 'pay' are there already.",
        "domains": "The listener 'pay.demo' is there already.",
    }


def test_exposed__behind_a_listener_that_has_it__says_where() -> None:
    facts = replace(FACTS, port="", listener="edge")
    edge = listener("edge", "routes", 80)
    taken = route("routes", "x", domain="PAY.example.org")
    called = route("routes", "x")
    called["virtual_hosts"][0]["name"] = "pay"  # type: ignore[index]  # a list

    assert "belongs to the virtual host 'all' of the route 'routes'" in of(facts, edge, taken).problems["domains"]
    assert "has a virtual host 'pay' already" in of(facts, edge, called).problems["name"]
    assert "is one of gRPC programs" in of(facts, api_listener("edge", "routes")).problems["listener"]
    assert "from no route configuration" in of(facts, {**edge, "filter_chains": []}).problems["listener"]
    two = {**edge, "default_filter_chain": listener("edge", "others", 80)["filter_chains"][0]}  # type: ignore[index]  # a list
    assert "from several route configurations" in of(facts, two).problems["listener"]


def test_exposed__two_ways_at_once__are_turned_down() -> None:
    found = of(replace(FACTS, cluster="old", listener="edge", secret="tls"), cluster("old"), listener("edge", "r", 80))

    assert set(found.problems) == {"addresses", "port", "secret"}
