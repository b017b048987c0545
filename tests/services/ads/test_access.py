"""Names that a client may not read, on the wire: refused at once, whether or not they exist, and given back."""

import asyncio
import statistics
import time
from dataclasses import replace

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ads import Running, config, running
from tests.support.ads_client import ADS, NODE, Client, cluster, connect
from xdscore.access import AccessTable, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.environment_choice import Selector
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, RUNTIME

SOTW, DELTA = ADS + "StreamAggregatedResources", ADS + "DeltaAggregatedResources"
FLEET = ClientGroup("fleet", (Selector(node_cluster=NODE.cluster),))
OTHERS = ClientGroup("others", (Selector(node_cluster="others"),))


def table(effect: Effect, *, group: ClientGroup = FLEET) -> AccessTable:
    """Names that begin with a p are not for this group."""
    rule = Rule(7, effect, "p*", frozenset({group.key}), message="ask payments")
    return AccessTable(Effect.ALLOW, (group,), (rule,))


def publish(run: Running, names: dict[str, int], access: AccessTable) -> None:
    made = [cluster(name, connect_timeout_s=value) for name, value in sorted(names.items())]
    run.server.directory_changed(run.catalogue.publish(*made, access=access))


def errors(answer: discovery_pb2.DiscoveryResponse) -> dict[str, str]:
    return {entry.resource_name.name: entry.error_detail.message for entry in answer.resource_errors}


def names(answer: discovery_pb2.DiscoveryResponse, *, delta: bool) -> list[str]:
    if delta:
        return [resource.name for resource in answer.resources]
    return [cluster_pb2.Cluster.FromString(resource.value).name for resource in answer.resources]


async def subscribe(client: Client, *wanted: str) -> None:
    field = "resource_names_subscribe" if client.delta else "resource_names"
    await client.ask(node=NODE, type_url=CLUSTER.url, **{field: wanted})


async def acknowledge(client: Client, answer: discovery_pb2.DiscoveryResponse, *wanted: str) -> None:
    more = {} if client.delta else {"resource_names": wanted, "version_info": answer.version_info}
    await client.ask(type_url=answer.type_url, response_nonce=answer.nonce, **more)


@pytest.mark.parametrize("method", [SOTW, DELTA], ids=["sotw", "delta"])
async def test_rule__denies_and_allows_again__an_open_stream_is_told_both_and_given_what_did_not_change(
    method: str,
) -> None:
    async with running() as run:
        publish(run, {"pay": 1, "web": 1}, table(Effect.DENY))
        client = connect(run, method)
        delta = client.delta
        await subscribe(client, "pay", "web")
        refused = await client.answer()
        if delta and not names(refused, delta=True):
            await acknowledge(client, refused)
            served = await client.answer()
        else:
            served = refused
        assert names(served, delta=delta) == ["web"]
        while not errors(refused):
            await acknowledge(client, refused, "pay", "web")
            refused = await client.answer()
        text = errors(refused)["pay"]
        assert text.startswith("PERMISSION_DENIED [XDS2103] This client may not read Cluster 'pay': ask payments.")
        assert text.endswith("Explain: http://parley.example/x?e=default&t=cluster&n=pay")
        await acknowledge(client, refused, "pay", "web")

        # F11: the content is what it always was; only the rule changed.
        publish(run, {"pay": 1, "web": 1}, table(Effect.DENY, group=OTHERS))
        given_back = await client.answer()
        assert "pay" in names(given_back, delta=delta)
        assert not errors(given_back)
        await acknowledge(client, given_back, "pay", "web")

        publish(run, {"pay": 1, "web": 1}, table(Effect.DENY))
        taken = await client.answer()
        assert "pay" not in names(taken, delta=delta)
        assert list(errors(taken)) == ["pay"]


async def test_group__takes_a_client_in__its_open_stream_counts_as_a_member_at_once() -> None:
    async with running() as run:
        grows = [ClientGroup("g", (Selector(node_cluster=name),)) for name in ("nobody", NODE.cluster)]
        publish(run, {"pay": 1}, table(Effect.DENY, group=grows[0]))
        client = connect(run, SOTW)
        await subscribe(client, "pay")
        before = await client.answer()
        await acknowledge(client, before, "pay")

        publish(run, {"pay": 1}, table(Effect.DENY, group=grows[1]))
        after = await client.answer()

    assert (names(before, delta=False), list(errors(before))) == (["pay"], [])
    assert (names(after, delta=False), list(errors(after))) == ([], ["pay"])


@pytest.mark.parametrize("method", [SOTW, DELTA], ids=["sotw", "delta"])
async def test_wildcard__holds_what_the_rules_allow__and_says_nothing_of_the_rest(method: str) -> None:
    async with running() as run:
        publish(run, {"pay": 1, "web": 1}, table(Effect.DENY))
        client = connect(run, method)
        await subscribe(client, "*")

        answer = await client.answer()
        assert names(answer, delta=client.delta) == ["web"]
        assert not errors(answer)
        await acknowledge(client, answer, "*")

        publish(run, {"pay": 2, "web": 1}, table(Effect.DENY))
        assert await client.silent()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(["a", "b"]), st.integers(0, 2)),
        st.tuples(st.just("secret"), st.sampled_from(["p1", "p2"]), st.integers(0, 2)),
        st.tuples(st.just("want"), st.sampled_from(["a", "b", "p1", "p2", "p3", "*"]), st.just(0)),
    ),
    min_size=3,
    max_size=8,
)


class Watched:
    """One client, and every byte that was written to it, with the step at which it was."""

    def __init__(self, run: Running, method: str, effect: Effect, *, with_secrets: bool) -> None:
        self.run, self.effect, self.with_secrets = run, effect, with_secrets
        self.client = connect(run, method)
        self.published: dict[str, int] = {}
        self.wanted: list[str] = []
        self.transcript: list[tuple[int, bytes]] = []

    async def take(self, at: int, what: str, name: str, value: int) -> None:
        if what == "want" and name not in self.wanted:
            self.wanted.append(name)
            await subscribe(self.client, *([name] if self.client.delta else self.wanted))
        if what == "publish" or (what == "secret" and self.with_secrets):
            self.published.pop(name, None)
            if value:
                self.published[name] = value
        publish(self.run, self.published, table(self.effect))
        await asyncio.sleep(0.01)
        await self.read_up_to(at, f"fence-{at}")

    async def read_up_to(self, at: int, fence: str) -> None:
        """Everything that was to be written before the answer to one more question, whose type is written last."""
        field = "resource_names_subscribe" if self.client.delta else "resource_names"
        await self.client.ask(node=NODE, type_url=RUNTIME.url, **{field: [fence]})
        while True:
            data = await self.client._read(5)
            assert isinstance(data, bytes), data
            self.transcript.append((at, data))
            kind = discovery_pb2.DeltaDiscoveryResponse if self.client.delta else discovery_pb2.DiscoveryResponse
            answer = kind.FromString(data)
            if answer.type_url == RUNTIME.url:
                return
            await acknowledge(self.client, answer, *self.wanted)


@settings(max_examples=10, deadline=None)
@given(method=st.sampled_from([SOTW, DELTA]), effect=st.sampled_from([Effect.DENY, Effect.HIDE]), script=steps)
def test_stream__names_it_may_not_read__bytes_order_and_traffic_are_as_if_they_did_not_exist(
    method: str, effect: Effect, script: list[tuple[str, str, int]]
) -> None:
    async def play() -> list[list[tuple[int, bytes]]]:
        async with running() as one, running() as other:
            worlds = [
                Watched(run, method, effect, with_secrets=with_secrets)
                for run, with_secrets in ((one, True), (other, False))
            ]
            for at, step in enumerate(script):
                for world in worlds:
                    await world.take(at, *step)
            return [world.transcript for world in worlds]

    existing, absent = asyncio.run(play())

    assert existing == absent


async def test_denied_name__exists_or_not__is_answered_in_the_same_time() -> None:
    """Reliability threat 6: medians within 10 %.

    A difference that tells something is there in every round; one that a busy machine makes is not. Every name is asked
    for once, because an answer that is known is quicker.
    """
    rounds, probes = 4, 1_000
    limits = Limits(requests_per_s=100_000, request_burst=1_000_000)
    rules = tuple(Rule(number, Effect.HIDE, f"*team{number}*", frozenset({"fleet"})) for number in range(1, 500))
    access = AccessTable(Effect.ALLOW, (FLEET,), (*rules, Rule(999, Effect.DENY, "p*", message="ask payments")))
    differences = []
    async with running(replace(config(), limits=limits)) as run:
        publish(run, {f"pay{number:05}": 1 for number in range(0, rounds * probes, 2)}, access)
        for first in range(0, rounds * probes, probes):
            existing, absent = await answer_times(run, range(first, first + probes))
            differences.append(abs(existing - absent) / max(existing, absent))
            if differences[-1] < 0.1:
                break

    assert differences[-1] < 0.1, differences


async def answer_times(run: Running, numbers: range) -> tuple[float, float]:
    """Medians of the time to the answer, of names with even numbers and of those with odd ones."""
    client = connect(run, DELTA)
    took: tuple[list[float], list[float]] = ([], [])
    for number in numbers:
        began = time.perf_counter()
        await subscribe(client, f"pay{number:05}")
        answer = await client.answer()
        took[number % 2].append(time.perf_counter() - began)
        assert list(errors(answer)) == [f"pay{number:05}"]
        await acknowledge(client, answer)
    return statistics.median(took[0]), statistics.median(took[1])
