"""Streams of a running server while a rollout is open: who is told what, and what its judge hears (rollouts.md R3)."""

from dataclasses import replace

import pytest
from envoy.config.core.v3 import base_pb2
from google.rpc import status_pb2
from pytest_django.fixtures import Settings

from adsserver.ports import StreamInfo
from controlplane.broker import hints
from controlplane.broker.client import redis_client
from controlplane.broker.hints import JUDGE_CHANNEL, hint_judge
from tests.support.ads import Running, running
from tests.support.ads_client import ADS, Client, cluster, connect, until
from tests.support.valkey import valkey
from tests.support.waiting import eventually
from xdscore.environment_choice import ClientFacts
from xdscore.resource_types import CLUSTER
from xdscore.sides import RolloutTable, client_digest

PICKED = RolloutTable(
    "rollout-1", 0, frozenset({client_digest("default", ClientFacts(node_id="picked"))}), (), 0, "seed"
)


async def asks(run: Running, node_id: str) -> Client:
    """A client that asked for all clusters and acknowledged them."""
    client = connect(run, ADS + "StreamAggregatedResources")
    await client.ask(node=base_pb2.Node(id=node_id), type_url=CLUSTER.url)
    await acknowledges(client)
    return client


async def acknowledges(client: Client) -> None:
    answer = await client.answer()
    await client.ask(type_url=CLUSTER.url, version_info=answer.version_info, response_nonce=answer.nonce)


def of(streams: list[StreamInfo]) -> set[str]:
    return {stream.node_id for stream in streams}


async def test_rollout__opens__only_who_is_picked_is_sent_it_and_its_word_is_awaited() -> None:
    async with running() as run:
        run.publish(cluster("a", 1))
        picked, other = await asks(run, "picked"), await asks(run, "other")
        await until(lambda: len(run.facts.learnt_facts) >= 4)
        assert run.facts.awaited_streams == []

        run.server.directory_changed(run.catalogue.roll(PICKED, cluster("a", 2)))
        await acknowledges(picked)

        await until(lambda: of(run.facts.awaited_streams) == {"picked"})
        assert await other.silent()


async def test_rollout__who_is_picked_refuses_or_goes__is_awaited_too() -> None:
    async with running() as run:
        run.publish(cluster("a", 1))
        picked, other = await asks(run, "picked"), await asks(run, "other")
        run.server.directory_changed(run.catalogue.roll(PICKED, cluster("a", 2)))
        answer = await picked.answer()
        await until(lambda: len(run.facts.learnt_facts) >= 4)

        no = status_pb2.Status(code=3, message="no")
        await picked.ask(type_url=CLUSTER.url, response_nonce=answer.nonce, error_detail=no)
        await until(lambda: len(run.facts.awaited_streams) == 1)
        await picked.channel.close(None)
        await until(lambda: len(run.facts.awaited_streams) == 2)
        await other.channel.close(None)
        await until(lambda: len(run.facts.closed_streams) == 2)

        assert of(run.facts.awaited_streams) == {"picked"}


async def test_rollout__newcomer_of_the_candidate_side__is_sent_the_candidate_at_once() -> None:
    async with running() as run:
        run.publish(cluster("a", 1))
        run.server.directory_changed(run.catalogue.roll(PICKED, cluster("a", 2), cluster("b", 1)))
        answers = {}
        for node_id in ("picked", "other"):
            client = connect(run, ADS + "StreamAggregatedResources")
            await client.ask(node=base_pb2.Node(id=node_id), type_url=CLUSTER.url)
            answers[node_id] = await client.answer()

        assert len(answers["picked"].resources) == 2
        assert [each.value for each in answers["other"].resources] == [cluster("a", 1).SerializeToString()]


def test_hint_judge__is_heard_on_the_channel_of_judges_with_the_environment(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of its own: the one of the process says nothing for a while after another test had no broker.
    monkeypatch.setattr(hints, "_sender", hints.HintSender(hints._deliver))
    with valkey() as server:
        settings.PARLEY = replace(settings.PARLEY, redis_url=server.url)
        redis_client.cache_clear()
        with server.client().pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
            subscription.subscribe(JUDGE_CHANNEL)
            eventually(lambda: server.client().pubsub_numsub(JUDGE_CHANNEL)[0][1] == 1, within_s=10)
            heard: list[bytes] = []

            hint_judge("shop")

            def hear() -> bool:
                if (message := subscription.get_message(timeout=1)) is not None:
                    heard.append(message["data"])
                return bool(heard)

            eventually(hear, within_s=10)
        redis_client.cache_clear()
    assert heard == [b"shop"]
