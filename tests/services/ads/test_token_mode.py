"""Token mode over real gRPC: without a token in force nothing is sent, on any method (reliability S1, S2)."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import grpc
import pytest
from envoy.service.discovery.v3 import discovery_pb2
from envoy.service.status.v3 import csds_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from adsserver.identity import callers
from adsserver.ports import Reader
from tests.services.ads.test_methods import METHODS
from tests.support.ads import Running, config, raw_call, running
from tests.support.ads_client import ADS, Client, cluster, until
from xdscore.access import AccessTable, Effect
from xdscore.auth_modes import AuthMode
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT

Metadata = list[tuple[str, str | bytes]]
STATUS = "/envoy.service.status.v3.ClientStatusDiscoveryService/"
# The status is for operators: another token, which tests/services/ads/test_csds.py is about.
FOR_CLIENTS = [path for path in METHODS if not path.startswith(STATUS)]
STREAMS = [path for path in FOR_CLIENTS if "/Stream" in path or "/Delta" in path]

FORMS: dict[str, Callable[[str, str], Metadata]] = {
    "none": lambda _good, _revoked: [],
    "two values": lambda good, _revoked: [("authorization", f"Bearer {good}"), ("authorization", f"Bearer {good}")],
    "revoked": lambda _good, revoked: [("authorization", f"Bearer {revoked}")],
    "no scheme": lambda good, _revoked: [("authorization", good)],
}


@pytest.fixture
async def run() -> AsyncIterator[Running]:
    async with running(config(auth=AuthMode.TOKEN)) as started:
        yield started


def connect(run: Running, token: str, method: str = ADS + "StreamAggregatedResources") -> Client:
    channel = grpc.aio.insecure_channel(run.address, options=[("grpc.use_local_subchannel_pool", 1)])
    return Client(raw_call(channel, method, metadata=bearer(token)), channel, "/Delta" in method)


def bearer(token: str) -> Metadata:
    return [("authorization", f"Bearer {token}")]


async def outcome(run: Running, path: str, metadata: Metadata) -> tuple[grpc.StatusCode, int]:
    """How a call that asks for everything ends, and how many answers came before."""
    message = discovery_pb2.DeltaDiscoveryRequest if "/Delta" in path else discovery_pb2.DiscoveryRequest
    request = message(type_url=CLUSTER.url, node={"id": "n"}).SerializeToString()
    return await asyncio.to_thread(_call, run.address, path, metadata, request)


def _call(address: str, path: str, metadata: Metadata, request: bytes) -> tuple[grpc.StatusCode, int]:
    # The blocking client: grpc.aio's reports INTERNAL when its write crosses the server's refusal.
    with grpc.insecure_channel(address) as channel:
        untyped: Any = channel
        answers = 0
        call = untyped.stream_stream(path)(iter([request]), metadata=metadata, timeout=5)
        with suppress(grpc.RpcError):
            for _ in call:
                answers += 1
        return call.code(), answers


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("path", FOR_CLIENTS)
async def test_method__without_a_token_in_force__unauthenticated_and_nothing_sent(
    path: str, form: Callable[[str, str], Metadata]
) -> None:
    async with running(config(auth=AuthMode.TOKEN)) as run:
        good, revoked = run.catalogue.issue("pay"), run.catalogue.issue("pay")
        run.catalogue.tokens.popitem()
        run.publish(cluster("a"))

        assert await outcome(run, path, form(good, revoked)) == (grpc.StatusCode.UNAUTHENTICATED, 0)
        assert not run.facts.opened_streams


async def test_method__before_the_tokens_are_loaded__unavailable(run: Running) -> None:
    token = run.catalogue.issue("pay")

    assert await outcome(run, STREAMS[0], bearer(token)) == (grpc.StatusCode.UNAVAILABLE, 0)


@pytest.mark.parametrize("method", ["StreamAggregatedResources", "DeltaAggregatedResources"])
async def test_token__in_force__is_served_as_its_subject(run: Running, method: str) -> None:
    run.catalogue.environments = (EnvironmentChoice("prod", (Selector(identity="pay"),)),)
    token = run.catalogue.issue("pay", environment="prod")
    run.publish(cluster("a"), environment="prod")

    client = connect(run, token, ADS + method)
    await client.ask(type_url=CLUSTER.url, node={"id": "n"})

    assert len((await client.answer()).resources) == 1
    info = run.facts.opened_streams[0]
    assert (info.identity, info.environment) == ("pay", "prod")


@pytest.mark.parametrize("path", STREAMS)
async def test_token__revoked_while_its_stream_is_open__ends_the_stream_only(run: Running, path: str) -> None:
    revoked, other = run.catalogue.issue("pay"), run.catalogue.issue("pay")
    run.publish(cluster("a"))
    first, second = connect(run, revoked, path), connect(run, other, path)
    for client in (first, second):
        await client.ask(type_url=_type_of(path), node={"id": "n"})
    await until(lambda: len(run.facts.opened_streams) == 2)

    run.catalogue.tokens.pop(next(iter(run.catalogue.tokens)))
    run.publish(cluster("a"))

    assert (await first.ended())[:2] == (grpc.StatusCode.UNAUTHENTICATED, callers.REVOKED)
    assert not second.call.done()


async def test_token__expires_while_its_stream_is_open__ends_it(run: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    token = run.catalogue.issue("pay", expires_at=time.time() + 0.5)
    run.publish(cluster("a"))
    client = connect(run, token)
    await client.ask(type_url=CLUSTER.url, node={"id": "n"})
    await client.answer()

    await asyncio.sleep(0.5)
    run.server._callers.sweep()

    assert (await client.ended())[:2] == (grpc.StatusCode.UNAUTHENTICATED, callers.EXPIRED)
    assert run.facts.closed_streams[0][1] == callers.EXPIRED
    assert callers.SWEEP_PERIOD_S < 60  # reliability S2


async def test_token__revoked_while_watching_health__ends_the_watch(run: Running) -> None:
    token = run.catalogue.issue("probe")
    run.publish()
    async with grpc.aio.insecure_channel(run.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), metadata=bearer(token))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING

        run.catalogue.tokens.clear()
        run.publish()

        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await watch.read()
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


NOT_AS_NODE = (
    "The node id: 'pay' may not use 'shop-1' in the environment it belongs to (its node_ids say which it may); use "
    "another, or ask whoever runs this server."
)
NOT_IN = (
    "The environment: this token is good in '{}' only, and selectors do not lead its subject 'pay' there; ask whoever "
    "runs this server."
)


@pytest.mark.parametrize("method", ["StreamAggregatedResources", "DeltaAggregatedResources"])
@pytest.mark.parametrize(
    ("subject", "environment", "node_id", "refusal"),
    [
        ("pay", "", "pay-1", None),
        ("pay", "prod", "pay-1", None),
        ("pay", "prod", "edge", None),
        ("pay", "prod", "shop-1", NOT_AS_NODE),
        ("pay", "", "shop-1", NOT_AS_NODE),
        ("pay", "other", "pay-1", NOT_IN.format("other")),
        # Whose environment the token is not for says nothing of its node ids.
        ("pay", "other", "shop-1", NOT_IN.format("other")),
        ("pay", "default", "pay-1", NOT_IN.format("default")),
        ("pay", "never-was", "pay-1", NOT_IN.format("never-was")),
    ],
)
async def test_node_id__of_another_identity_or_environment__refused_and_nothing_sent(
    run: Running, method: str, subject: str, environment: str, node_id: str, refusal: str | None
) -> None:
    run.catalogue.environments = (EnvironmentChoice("prod", (Selector(identity="p*"),), ("{name}-*", "edge")),)
    token = run.catalogue.issue(subject, environment=environment)
    run.publish(cluster("a"), environment="prod")

    client = connect(run, token, ADS + method)
    await client.ask(type_url=CLUSTER.url, node={"id": node_id})

    if refusal is None:
        assert len((await client.answer()).resources) == 1
    else:
        assert await client.ended() == (grpc.StatusCode.PERMISSION_DENIED, refusal, 0)
        assert not run.facts.opened_streams


async def test_node_id__that_may_not_be_used__is_said_on_one_short_line(run: Running) -> None:
    subject, node_id = "s" * 255, "ü" * 500
    run.catalogue.environments = (EnvironmentChoice("prod", (Selector(identity="s*"),), ("{name}-*",)),)
    token = run.catalogue.issue(subject)
    run.publish(cluster("a"), environment="prod")

    client = connect(run, token)
    await client.ask(type_url=CLUSTER.url, node={"id": node_id})

    code, text, _ = await client.ended()
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert len(text) <= 300  # texts.md section 8
    assert text.isprintable()


async def test_token__not_sent__is_told_which_variable_grpc_needs(run: Running) -> None:
    run.publish(cluster("a"))
    channel = grpc.aio.insecure_channel(run.address, options=[("grpc.use_local_subchannel_pool", 1)])
    client = Client(raw_call(channel, ADS + "StreamAggregatedResources", metadata=[]), channel, False)

    code, text, _ = await client.ended()

    # gRFC A97: without the variable gRPC ignores the call_creds of its bootstrap, and says nothing.
    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert "with a client token. gRPC needs GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true" in text
    assert len(text) <= 300


async def test_node_id__pattern_narrows_while_the_stream_is_open__ends_it(
    run: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adsserver.servicers.stream._MOVE_SPREAD_S", 0.0)
    token = run.catalogue.issue("pay")
    run.catalogue.environments = (EnvironmentChoice("prod", (Selector(identity="pay"),)),)
    run.publish(cluster("a"), environment="prod")
    client = connect(run, token)
    await client.ask(type_url=CLUSTER.url, node={"id": "n"})
    await client.answer()

    run.catalogue.environments = (EnvironmentChoice("prod", (Selector(identity="pay"),), ("{name}-*",)),)
    run.server.directory_changed(run.catalogue.directory())

    assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("swap", [{"id": "m", "cluster": "c"}, {"id": "n", "cluster": "d"}], ids=["id", "cluster"])
async def test_node__changes_on_a_later_message__ends_the_stream_of_any_method(
    run: Running, path: str, swap: dict[str, str]
) -> None:
    token = run.catalogue.issue("pay")
    run.publish(cluster("a"))
    client = connect(run, token, path)
    await client.ask(type_url=_type_of(path), node={"id": "n", "cluster": "c"})
    await until(lambda: len(run.facts.opened_streams) == 1)

    await client.ask(type_url=_type_of(path), node=swap)

    assert (await client.ended())[0] is grpc.StatusCode.INVALID_ARGUMENT


def _type_of(path: str) -> str:
    return CLUSTER.url if "Aggregated" in path else ""


async def test_guessing__one_identity_under_ever_new_node_ids__raises_the_alarm_and_another_does_not(
    run: Running,
) -> None:
    one, other = run.catalogue.issue("pay"), run.catalogue.issue("web")
    run.server.directory_changed(run.catalogue.publish(cluster("a"), access=AccessTable(Effect.DENY)))
    allowed = Limits().denied_names_per_h
    counted = []

    for token, part in ((one, 0), (other, 1), (one, 1)):
        client = connect(run, token)
        names = [f"guess-{part}-{number}" for number in range(allowed - 1)]
        await client.ask(type_url=ENDPOINT.url, node={"id": f"n-{part}-{token[-3:]}"}, resource_names=names)
        await client.answer()
        counted.append(run.sample("parley_ads_identities_probing_total"))

    assert counted == [0, 0, 1]


@pytest.mark.parametrize("method", ["FetchClientStatus", "StreamClientStatus"])
async def test_status__in_token_mode__asks_for_an_operators_token_and_takes_no_clients(
    run: Running, method: str
) -> None:
    run.fleet.readers["operator"] = Reader("dana", frozenset({"default"}))
    token = run.catalogue.issue("pay")
    run.publish()

    async def ask(metadata: Metadata) -> tuple[grpc.StatusCode, int]:
        request = csds_pb2.ClientStatusRequest().SerializeToString()
        return await asyncio.to_thread(_call, run.address, STATUS + method, metadata, request)

    assert await ask([]) == (grpc.StatusCode.UNAUTHENTICATED, 0)
    assert await ask(bearer(token)) == (grpc.StatusCode.UNAUTHENTICATED, 0)
    assert await ask(bearer("operator")) == (grpc.StatusCode.OK, 1)
