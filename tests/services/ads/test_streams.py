"""Streams over real gRPC: how they begin, are served, refused and ended. The store behind them is in memory."""

import asyncio
import gc
from collections import Counter

import grpc
import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.core.v3 import base_pb2
from google.rpc import status_pb2
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # grpc-stubs do not know it

from adsserver.engine.events import Acknowledged, Rejected, Subscribed, Variant
from adsserver.engine.session import Session
from adsserver.servicers.stream import Stream
from tests.support.ads import Running, config, running
from tests.support.ads_client import ADS, NODE, cluster, connect, endpoints, until
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER
from xdscore.version import VERSION

CDS = "/envoy.service.cluster.v3.ClusterDiscoveryService/"
UNKNOWN = "type.googleapis.com/example.Unknown"


async def test_stream__wildcard_sotw__is_served_and_acknowledged(run: Running) -> None:
    run.publish(cluster("a"), cluster("b"))
    client = connect(run)

    await client.ask(node=NODE, type_url=CLUSTER.url)
    answer = await client.answer()
    await client.ask(type_url=CLUSTER.url, version_info=answer.version_info, response_nonce=answer.nonce)
    assert await client.silent()

    served = [cluster_pb2.Cluster.FromString(each.value).name for each in answer.resources]
    assert sorted(served) == ["a", "b"]
    assert answer.control_plane.identifier.startswith(f"parley/{VERSION}/")
    stream = run.facts.opened_streams[0]
    assert (stream.environment, stream.node_id, stream.variant) == ("default", "client-1", Variant.SOTW)
    assert [type(fact) for _, fact in run.facts.learnt_facts] == [Subscribed, Acknowledged]
    assert run.sample("parley_ads_acks_total", type="cluster") == 1


async def test_stream__named_delta__is_served_with_names_errors_and_removals(run: Running) -> None:
    run.publish(endpoints("a"))
    client = connect(run, ADS + "DeltaAggregatedResources")

    await client.ask(node=NODE, type_url=ENDPOINT.url, resource_names_subscribe=["a", "gone"])
    answer = await client.answer()

    assert [each.name for each in answer.resources] == ["a"]
    assert list(answer.removed_resources) == ["gone"]
    assert [(each.resource_name.name, each.error_detail.code) for each in answer.resource_errors] == [("gone", 5)]
    assert run.sample("parley_ads_resource_errors_total", type="endpoint", code="NOT_FOUND") == 1


async def test_stream__later_ones__have_later_ids(run: Running) -> None:
    run.publish(cluster("a"))

    for number in range(8):
        client = connect(run)
        await client.ask(node=base_pb2.Node(id=f"client-{number}"), type_url=CLUSTER.url)
        await client.answer()
        await asyncio.sleep(0.002)  # within a millisecond they have no order

    ids = [stream.id for stream in run.facts.opened_streams]
    assert ids == sorted(set(ids))
    assert {len(each) for each in ids} == {32}


async def test_stream__over__is_gone_without_the_collector(run: Running) -> None:
    run.publish(cluster("a"))
    gc.collect()
    gc.disable()
    gc.freeze()  # to look through all that a long test run has made takes longer than the streams take to end
    try:
        for number in range(3):
            client = connect(run)
            await client.ask(node=base_pb2.Node(id=f"client-{number}"), type_url=CLUSTER.url)
            await client.answer()
            assert _kept_of_streams()
            client.call.cancel()
            await client.channel.close(None)
        await until(lambda: not _kept_of_streams(), longest_s=2)
    finally:
        gc.unfreeze()
        gc.enable()


def _kept_of_streams() -> Counter[type]:
    """What there is of ours and of grpc's that belongs to one stream."""
    kinds = {Stream, Session, cygrpc._ServicerContext}
    return Counter(type(each) for each in gc.get_objects() if type(each) in kinds)


async def test_stream__publish__reaches_every_stream_of_the_environment(run: Running) -> None:
    run.publish(cluster("a"))
    clients = [connect(run) for _ in range(20)]
    for number, client in enumerate(clients):
        await client.ask(node=base_pb2.Node(id=f"client-{number}"), type_url=CLUSTER.url)
        answer = await client.answer()
        await client.ask(type_url=CLUSTER.url, version_info=answer.version_info, response_nonce=answer.nonce)

    run.publish(cluster("a", 2), cluster("b"))
    answers = [await client.answer() for client in clients]

    assert {len(answer.resources) for answer in answers} == {2}
    assert len({answer.version_info for answer in answers}) == 1
    # Two publications, two contents of "a" and one of "b": each was asked for once, whatever the number of streams.
    assert set(run.catalogue.contents.asked.values()) == {1}


async def test_stream__nack__is_a_fact_and_nothing_is_sent_again(run: Running) -> None:
    run.publish(cluster("a"))
    client = connect(run)
    await client.ask(node=NODE, type_url=CLUSTER.url)
    answer = await client.answer()

    await client.ask(
        type_url=CLUSTER.url, response_nonce=answer.nonce, error_detail=status_pb2.Status(code=13, message="bad a")
    )

    assert await client.silent()
    rejected = [fact for _, fact in run.facts.learnt_facts if isinstance(fact, Rejected)]
    assert [fact.nack.message for fact in rejected] == ["bad a"]
    assert run.sample("parley_ads_nacks_total", type="cluster") == 1
    assert run.sample("parley_ads_nacks_without_content_total", type="cluster") == 0


@pytest.mark.parametrize("method", [ADS + "StreamAggregatedResources", ADS + "DeltaAggregatedResources"])
async def test_stream__errors_alone_are_refused__is_counted_as_ours(run: Running, method: str) -> None:
    run.publish()
    client = connect(run, method)
    field = "resource_names_subscribe" if client.delta else "resource_names"
    await client.ask(node=NODE, type_url=ENDPOINT.url, **{field: ["x"]})
    answer = await client.answer()
    assert (len(answer.resources), len(answer.resource_errors)) == (0, 1)

    names = {} if client.delta else {field: ["x"]}
    refusal = status_pb2.Status(code=3, message="resource_errors index 0")
    await client.ask(type_url=ENDPOINT.url, response_nonce=answer.nonce, error_detail=refusal, **names)

    await until(lambda: run.sample("parley_ads_nacks_without_content_total", type="endpoint") == 1)  # reliability T7
    assert await client.silent()


@pytest.mark.parametrize("method", [ADS + "StreamAggregatedResources", ADS + "DeltaAggregatedResources"])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"type_url": CLUSTER.url}, "must have a node with an id"),
        ({"type_url": CLUSTER.url, "node": base_pb2.Node(cluster="fleet")}, "must have a node with an id"),
        ({"type_url": CLUSTER.url, "node": base_pb2.Node(id="a\x00b")}, "cannot be printed"),
        ({"type_url": CLUSTER.url, "node": base_pb2.Node(id="a" * 1025)}, "more than 1024 bytes"),
        ({"node": NODE}, "must have a type_url"),
    ],
)
async def test_stream__unusable_first_request__invalid_argument_before_any_response(
    run: Running, method: str, fields: dict[str, object], text: str
) -> None:
    run.publish(cluster("a"))
    client = connect(run, method)

    await client.ask(**fields)
    code, details, responses = await client.ended()

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text in details
    assert responses == 0
    assert run.facts.opened_streams == []


@pytest.mark.parametrize("method", [ADS + "StreamAggregatedResources", ADS + "DeltaAggregatedResources"])
@pytest.mark.parametrize(
    "later", [base_pb2.Node(id="other", cluster="fleet"), base_pb2.Node(id="client-1", cluster="other")]
)
async def test_stream__another_node_later__ends_it(run: Running, method: str, later: base_pb2.Node) -> None:
    run.publish(cluster("a"))
    client = connect(run, method)
    await client.ask(node=NODE, type_url=CLUSTER.url)
    await client.answer()

    await client.ask(node=later, type_url=ENDPOINT.url)
    code, details, _ = await client.ended()

    assert (code, details) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "The node's id and cluster cannot change during a stream.",
    )
    assert [cause for _, cause in run.facts.closed_streams] == [details]


async def test_stream__same_node_with_other_details_later__goes_on(run: Running) -> None:
    run.publish(cluster("a"), endpoints("a"))
    client = connect(run)
    await client.ask(node=NODE, type_url=CLUSTER.url)
    await client.answer()

    repeated = base_pb2.Node(id="client-1", cluster="fleet", user_agent_name="changed")
    await client.ask(node=repeated, type_url=ENDPOINT.url, resource_names=["a"])

    assert (await client.answer()).type_url == ENDPOINT.url


async def test_stream__garbage__ends_it_and_no_other(run: Running) -> None:
    run.publish(cluster("a"))
    bystander, client = connect(run), connect(run)
    await bystander.ask(node=NODE, type_url=CLUSTER.url)
    await bystander.answer()

    await client.call.write(b"\xff\xff\xff")
    code, _, _ = await client.ended()
    run.publish(cluster("b"))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert len((await bystander.answer()).resources) == 1


async def test_stream__unknown_type__each_name_is_told_and_the_stream_goes_on(run: Running) -> None:
    run.publish(cluster("a"))
    client = connect(run)
    await client.ask(node=NODE, type_url=UNKNOWN, resource_names=["x", "y", ""])

    told = await client.answer()
    await client.ask(
        type_url=UNKNOWN, resource_names=["x", "y"], response_nonce=told.nonce, version_info=told.version_info
    )
    await client.ask(type_url=CLUSTER.url)
    served = await client.answer()

    assert told.type_url == UNKNOWN
    assert told.version_info
    assert not told.resources
    assert {each.resource_name.name: each.error_detail.code for each in told.resource_errors} == {"x": 5, "y": 5}
    assert told.resource_errors[0].error_detail.message == (
        f"NOT_FOUND [XDS2107] 'x' cannot be served: this server does not know the type '{UNKNOWN}'."
    )
    assert served.type_url == CLUSTER.url


async def test_stream__unknown_type_in_delta__each_subscription_is_told_again(run: Running) -> None:
    run.publish(cluster("a"))
    client = connect(run, ADS + "DeltaAggregatedResources")

    await client.ask(node=NODE, type_url=UNKNOWN, resource_names_subscribe=["x"])
    first = await client.answer()
    await client.ask(type_url=UNKNOWN, resource_names_subscribe=["x"], response_nonce=first.nonce)
    second = await client.answer()

    assert [each.resource_name.name for each in second.resource_errors] == ["x"]
    assert first.nonce != second.nonce


async def test_stream__unknown_type_without_names__silence(run: Running) -> None:
    run.publish(cluster("a"))
    client = connect(run)

    await client.ask(node=NODE, type_url=UNKNOWN)

    assert await client.silent()


async def test_stream__single_type_service__needs_no_type_and_refuses_others(run: Running) -> None:
    run.publish(cluster("a"))
    client, wrong = connect(run, CDS + "StreamClusters"), connect(run, CDS + "DeltaClusters")

    await client.ask(node=NODE)
    await wrong.ask(node=NODE, type_url=LISTENER.url)

    assert (await client.answer()).type_url == CLUSTER.url
    assert (await wrong.ended())[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_stream__no_directory__silence_then_unavailable_before_any_response() -> None:
    async with running(config(limits=Limits(first_snapshot_wait_ms=200))) as run:
        client = connect(run)

        await client.ask(node=NODE, type_url=CLUSTER.url)
        assert await client.silent(0.1)
        code, details, responses = await client.ended()

    assert (code, responses) == (grpc.StatusCode.UNAVAILABLE, 0)
    assert details == "This server has nothing to serve yet; reconnect."


async def test_stream__environment_without_snapshot__silence_then_unavailable() -> None:
    async with running(config(limits=Limits(first_snapshot_wait_ms=200))) as run:
        run.server.directory_changed(run.catalogue.directory())
        client = connect(run)

        await client.ask(node=NODE, type_url=CLUSTER.url)
        code, _, responses = await client.ended()

    assert (code, responses) == (grpc.StatusCode.UNAVAILABLE, 0)


async def test_stream__first_directory_while_it_waits__is_served(run: Running) -> None:
    client = connect(run)
    await client.ask(node=NODE, type_url=CLUSTER.url)
    await asyncio.sleep(0.05)

    run.publish(cluster("a"))

    assert len((await client.answer()).resources) == 1


async def test_stream__first_snapshot_while_it_waits__is_served_and_stays(run: Running) -> None:
    async with running(config(limits=Limits(first_snapshot_wait_ms=200))) as quick:
        quick.server.directory_changed(quick.catalogue.directory())
        client = connect(quick)
        await client.ask(node=NODE, type_url=CLUSTER.url)
        await asyncio.sleep(0.05)

        quick.publish(cluster("a"))
        answer = await client.answer()

        assert len(answer.resources) == 1
        assert await client.silent(0.3)


async def test_stream__selectors__choose_the_environment(run: Running) -> None:
    run.catalogue.environments = (
        EnvironmentChoice("prod", (Selector(node_cluster="fleet*"),)),
        EnvironmentChoice("default", ()),
    )
    run.publish(cluster("in-default"))
    run.publish(cluster("in-prod"), environment="prod")
    client = connect(run)

    await client.ask(node=NODE, type_url=CLUSTER.url)
    answer = await client.answer()

    assert cluster_pb2.Cluster.FromString(answer.resources[0].value).name == "in-prod"


async def test_stream__selectors_change__the_stream_ends_so_that_it_moves(
    run: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adsserver.servicers.stream._MOVE_SPREAD_S", 0.05)
    run.publish(cluster("a"))
    run.publish(cluster("b"), environment="prod")
    staying, moving = connect(run), connect(run)
    await staying.ask(node=base_pb2.Node(id="stays"), type_url=CLUSTER.url)
    await moving.ask(node=base_pb2.Node(id="moves"), type_url=CLUSTER.url)
    # Both streams are where they belong before anything moves.
    await staying.answer()
    await moving.answer()

    run.catalogue.environments = (
        EnvironmentChoice("prod", (Selector(node_id="moves"),)),
        EnvironmentChoice("default", ()),
    )
    run.server.directory_changed(run.catalogue.directory())
    code, details, responses = await moving.ended()

    assert (code, responses) == (grpc.StatusCode.UNAVAILABLE, 0)
    assert "another environment" in details
    assert await staying.silent()


async def test_stream__client_closes_its_side__ends_well(run: Running) -> None:
    run.publish(cluster("a"))
    client = connect(run)
    await client.ask(node=NODE, type_url=CLUSTER.url)
    await client.answer()

    await client.call.done_writing()
    code, _, _ = await client.ended()

    assert code is grpc.StatusCode.OK
    assert [cause for _, cause in run.facts.closed_streams] == ["the client ended the stream"]


async def test_stream__client_goes_away__everything_is_given_back(run: Running) -> None:
    run.publish(cluster("a"))
    client = connect(run)
    await client.ask(node=NODE, type_url=CLUSTER.url)
    await client.answer()

    client.call.cancel()
    await until(lambda: run.server.idle)

    assert [cause for _, cause in run.facts.closed_streams] == ["the client ended the stream"]
    assert run.sample("parley_ads_streams") == 0
    assert run.sample("parley_ads_streams_ended_total", code="OK") == 1
