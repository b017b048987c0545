"""A server heals a client that may have dropped what it had (F17a), and keeps the bytes for it."""

import pytest
from envoy.config.core.v3 import base_pb2
from google.rpc import status_pb2

from adsserver.engine.events import Acknowledged
from adsserver.running import server
from adsserver.store import snapshot_reading
from tests.support.ads import running
from tests.support.ads_client import ADS, cluster, connect, until
from xdscore.resource_types import CLUSTER

GRPC = base_pb2.Node(
    id="client-1", cluster="fleet", user_agent_name="gRPC C-core linux Python", user_agent_version="C-core 1.85.1"
)


async def test_nack__of_a_grpc_client__is_healed_from_bytes_that_no_snapshot_has_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_HOLD_PERIOD_S", 0.05)
    async with running() as run:
        run.publish(cluster("a", 1))
        client = connect(run, ADS + "StreamAggregatedResources")
        await client.ask(node=GRPC, type_url=CLUSTER.url, resource_names=["a"])
        first = await client.answer()
        ask = {"type_url": CLUSTER.url, "resource_names": ["a"]}
        await client.ask(**ask, version_info=first.version_info, response_nonce=first.nonce)
        run.publish(cluster("a", 2))
        refused = await client.answer()
        had = run.catalogue.contents.add(cluster("a", 1)).blob
        await until(lambda: run.catalogue.contents.held == {had})

        no = status_pb2.Status(code=3, message="no")
        await client.ask(**ask, response_nonce=refused.nonce, error_detail=no)
        healed = await client.answer()
        await client.ask(**ask, version_info=healed.version_info, response_nonce=healed.nonce)

        assert (list(healed.resources), healed.version_info) == (list(first.resources), first.version_info)
        assert await client.silent()
        assert [fact.heal for _, fact in run.facts.learnt_facts if isinstance(fact, Acknowledged)] == [False, True]
        assert run.sample("parley_ads_heals_total", type="cluster") == 1


async def test_nack__of_an_envoy__is_not_answered() -> None:
    async with running() as run:
        run.publish(cluster("a", 1))
        client = connect(run, ADS + "StreamAggregatedResources")
        node = base_pb2.Node(id="proxy", user_agent_name="envoy")
        node.user_agent_build_version.version.major_number = 1
        await client.ask(node=node, type_url=CLUSTER.url)
        first = await client.answer()
        await client.ask(type_url=CLUSTER.url, version_info=first.version_info, response_nonce=first.nonce)
        run.publish(cluster("a", 2))
        refused = await client.answer()

        no = status_pb2.Status(code=13, message="no")
        await client.ask(type_url=CLUSTER.url, response_nonce=refused.nonce, error_detail=no)

        assert await client.silent()
        assert run.sample("parley_ads_heals_total", type="cluster") == 0


def test_held__is_told_well_before_the_loader_forgets() -> None:
    assert 3 * server._HOLD_PERIOD_S < snapshot_reading._SWEEP_S
