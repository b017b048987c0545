"""Requests that break a rule or a limit: the code of protocol.md J2, and a text that says which limit and which value.

Each ends its own stream; that no other stream notices is shown beside it.
"""

import grpc
import pytest
from envoy.config.core.v3 import base_pb2

from tests.support.ads import Running, config, running
from tests.support.ads_client import ADS, NODE, cluster, connect
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER

BOTH = [ADS + "StreamAggregatedResources", ADS + "DeltaAggregatedResources"]
CDS = "/envoy.service.cluster.v3.ClusterDiscoveryService/"
INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED
SMALL = Limits(names_per_request=3, names_per_type=3, request_bytes=64 * 1024)


async def refusal(run: Running, method: str, **fields: object) -> tuple[grpc.StatusCode, str]:
    """How a stream ends that asks this after a sound first request; a bystander's must go on."""
    run.publish(cluster("a"))
    bystander, client = connect(run), connect(run, method)
    await bystander.ask(node=base_pb2.Node(id="bystander"), type_url=CLUSTER.url)
    await bystander.answer()

    await client.ask(**fields)
    code, details, _ = await client.ended()
    run.publish(cluster("a", 2))
    assert len((await bystander.answer()).resources) == 1
    return code, details


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"node": NODE}, INVALID, "A request on an aggregated stream must have a type_url."),
        ({"type_url": CLUSTER.url}, INVALID, "The first request of a stream must have a node with an id."),
        (
            {"node": base_pb2.Node(id="n" * 1025), "type_url": CLUSTER.url},
            INVALID,
            "The node's id has more than 1024 bytes.",
        ),
    ],
)
async def test_request__without_what_it_must_have__invalid_argument(
    run: Running, method: str, fields: dict[str, object], code: grpc.StatusCode, text: str
) -> None:
    assert await refusal(run, method, **fields) == (code, text)


@pytest.mark.parametrize("method", [CDS + "StreamClusters", CDS + "DeltaClusters"])
async def test_request__type_of_another_service__invalid_argument_names_the_service_s_own(
    run: Running, method: str
) -> None:
    code, text = await refusal(run, method, node=NODE, type_url=LISTENER.url)

    assert (code, text) == (INVALID, f"This service serves {CLUSTER.url}; the request asks for another type.")


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n" * 1025], "The request has a name of more than 1024 bytes."),
        (["ü" * 513], "The request has a name of more than 1024 bytes."),
        (["a", "b", "c", "d"], "The request has 4 names; at most 3 are allowed."),
    ],
    ids=["long", "long-in-utf-8", "many"],
)
async def test_request__names_beyond_a_limit__resource_exhausted_says_which(
    method: str, names: list[str], text: str
) -> None:
    async with running(config(limits=SMALL)) as run:
        field = "resource_names_subscribe" if "Delta" in method else "resource_names"

        found = await refusal(run, method, node=NODE, type_url=ENDPOINT.url, **{field: names})

    assert found == (EXHAUSTED, text)


@pytest.mark.parametrize("method", BOTH)
async def test_request__message_beyond_the_limit__resource_exhausted_says_both_sizes(method: str) -> None:
    async with running(config(limits=SMALL)) as run:
        node = base_pb2.Node(id="large", user_agent_name="x" * 70_000)

        code, text = await refusal(run, method, node=node, type_url=CLUSTER.url)

    assert code is EXHAUSTED
    assert "larger than max" in text
    assert "vs. 65536" in text
