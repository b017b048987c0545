"""A real proxyless gRPC client says where generated calls go, and the routing core says the same."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import pytest
from envoy.config.route.v3.route_pb2 import RouteConfiguration
from google.protobuf import json_format

from tests.support.ads_thread import serving_ads
from tests.support.backends import ECHO_METHOD, grpc_backend
from tests.support.grpc_client import Outcome, grpc_client, simple_bootstrap
from tests.support.routing import answer
from tests.support.routing_cases import Json
from tests.support.xds_resources import api_listener, assignment, eds_cluster
from xdscore.resource_types import by_message
from xdscore.routing.values import Answer, Given, Key, Request, Traced

CONFIGURATIONS = 60
CLUSTERS = ("red", "green", "blue")
METADATA: tuple[dict[str, str], ...] = (
    {},
    {"x-a": "alpha", "x-num": "5"},
    {"x-a": "Alphabet"},
    {"x-num": "-1", "trace-bin": "\x00"},
)
SUFFIXES = ("*.shop.example", "*.example", "*")
_PATHS: tuple[Json, ...] = (
    *({"prefix": ""}, {"prefix": "/"}, {"prefix": "/demo.Echo/"}, {"prefix": "/DEMO"}, {"prefix": "/other"}),
    *({"path": ECHO_METHOD}, {"path": ECHO_METHOD.lower()}, {"path": "/demo.Echo/Do"}),
    *({"safe_regex": {"regex": each}} for each in ("/demo.*", ".*Say", "/demo", "(?i)/DEMO.ECHO/say")),
)
_VALUES: tuple[Json, ...] = (
    *({"present_match": True}, {"present_match": False}, {"exact_match": "alpha"}, {"prefix_match": "al"}),
    *({"suffix_match": "et"}, {"contains_match": "pha"}, {"safe_regex_match": {"regex": "al.*"}}),
    *({"range_match": {"start": 1, "end": 6}}, {"range_match": {"start": -3, "end": 0}}),
    *({"string_match": {"exact": "ALPHA", "ignore_case": True}}, {"string_match": {"prefix": "Al"}}),
    *({"string_match": {"contains": "BET", "ignore_case": True}}, {"string_match": {"safe_regex": {"regex": "a.+"}}}),
    {"exact_match": "application/grpc"},
)
_ACTIONS: tuple[Json, ...] = (
    *({"route": {"cluster": each}} for each in CLUSTERS),
    {"route": {"weighted_clusters": {"clusters": [{"name": "red", "weight": 100}, {"name": "blue", "weight": 0}]}}},
    {"direct_response": {"status": 200}},
)


class Generator:
    """Generated route configurations as gRPC takes them; equal seeds give equal ones."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - chance for tests

    def configuration(self, name: str, target: str) -> Json:
        domains = [target, target.upper(), f"{target.partition('.')[0]}.*", *SUFFIXES, "other.example"]
        self.random.shuffle(domains)
        taken = domains[: self.random.randint(2, 5)]
        if {target, target.upper()} <= set(taken):
            taken.remove(target.upper())
        hosts = [
            {"name": f"host-{index}", "domains": [each], "routes": [self._route() for _ in range(4)] + [self._rest()]}
            for index, each in enumerate(taken)
        ]
        return {"name": name, "virtual_hosts": hosts}

    def _rest(self) -> Json:
        return {"match": {"prefix": ""}, **self.random.choice(_ACTIONS)}

    def _route(self) -> Json:
        random = self.random
        match = dict(random.choice(_PATHS))
        if random.random() < 0.3:
            match["case_sensitive"] = random.random() < 0.3
        if random.random() < 0.7:
            name = random.choice(["x-a", "x-a", "x-num", "content-type", "trace-bin"])
            header = {"name": name, **random.choice(_VALUES)}
            header["invert_match"] = random.random() < 0.3
            header["treat_missing_header_as_empty"] = random.random() < 0.2
            match["headers"] = [header]
        if random.random() < 0.1:
            match["query_parameters"] = [{"name": "q", "present_match": True}]
        if random.random() < 0.15:
            match["runtime_fraction"] = {"default_value": {"numerator": random.choice([0, 100])}}
        return {"match": match, **random.choice(_ACTIONS)}


def calls() -> Iterator[tuple[str, Json, dict[str, str], Outcome, Traced]]:
    """Each target with its routes, the metadata of a call to it, and where client and core say that this goes."""
    generator = Generator(3)
    targets = [f"t{number}.shop.example" for number in range(CONFIGURATIONS)]
    made = {target: generator.configuration(f"r-{target}", target) for target in targets}
    with ExitStack() as stack:
        ports = {name: stack.enter_context(grpc_backend(name)) for name in CLUSTERS}
        resources = [each for name, port in ports.items() for each in (eds_cluster(name), assignment(name, port))]
        resources += [api_listener(target, f"r-{target}") for target in targets]
        resources += [json_format.ParseDict(each, RouteConfiguration()) for each in made.values()]
        has = _held(resources)
        ads = stack.enter_context(serving_ads())
        ads.publish("oracle", *resources)
        bootstrap = simple_bootstrap(ads_port=ads.port, node_id="oracle", features=[], cluster="oracle")
        client = stack.enter_context(grpc_client(bootstrap))
        for metadata in METADATA:
            urls = {f"xds:///{target}": target for target in targets}
            client.begin(urls, metadata=metadata)
            for url, outcome in client.finish(urls).items():
                request = Request(urls[url], ECHO_METHOD, headers=metadata)
                yield urls[url], made[urls[url]], metadata, outcome, answer(request, has)


def _held(resources: list[object]) -> dict[Key, Given]:
    found: dict[Key, Given] = {}
    for each in resources:
        kind = by_message[each.DESCRIPTOR.full_name]  # type: ignore[attr-defined]
        found[kind.word, getattr(each, kind.name_field)] = Given(each)
    return found


@pytest.mark.slow
def test_routing__generated_calls__go_where_grpc_sends_them() -> None:
    unlike: list[object] = []
    counts: Counter[str] = Counter()

    for target, made, metadata, outcome, ours in calls():
        theirs = outcome.text.partition(":")[0] if outcome.code == "OK" else outcome.code
        mine = "UNAVAILABLE" if ours.answer is Answer.REFUSED else ours.shares[0].cluster if ours.shares else "?"
        counts[theirs] += 1
        if mine != theirs:
            unlike.append((target, metadata, "gRPC", theirs, outcome.text, "ours", mine, ours.rungs[-1].text, made))

    assert unlike == []
    assert set(counts) == {*CLUSTERS, "UNAVAILABLE"}
    assert counts.total() == CONFIGURATIONS * len(METADATA)
