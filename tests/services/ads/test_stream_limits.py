"""What one stream may cost, and how the server ends streams."""

import asyncio
import time

import grpc
import pytest
from envoy.config.core.v3 import base_pb2
from structlog.testing import capture_logs

from adsserver.running import server
from tests.support.ads import Running, config, running
from tests.support.ads_client import ADS, NODE, cluster, connect, endpoints, until
from tests.support.figures import measured
from xdscore.access import AccessTable, Effect
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT

# The start of an HTTP/2 connection: its preface and an empty SETTINGS frame (RFC 9113, 3.4).
HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
# A peer that does not answer pings is closed for that, too.
NO_PINGS = {"keepalive_time_ms": 3_600_000}
CDS = "/envoy.service.cluster.v3.ClusterDiscoveryService/"
UNKNOWN = "type.googleapis.com/example.Unknown"


async def test_stream__more_streams_than_allowed__refused_before_any_response() -> None:
    async with running(config(limits=Limits(streams_per_replica=2))) as run:
        run.publish(cluster("a"))
        first, second = connect(run), connect(run)
        for client in (first, second):
            await client.ask(node=NODE, type_url=CLUSTER.url)
            await client.answer()

        third, started = connect(run), time.monotonic()
        await third.ask(node=NODE, type_url=CLUSTER.url)
        code, details, responses = await third.ended()
        measured(refused_after_s=time.monotonic() - started, responses_before=responses)

        assert (code, responses) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 0)
        assert "holds 2 streams" in details
        first.call.cancel()
        await until(lambda: run.server.open_streams == 1)
        fourth = connect(run)
        await fourth.ask(node=NODE, type_url=CLUSTER.url)
        assert await fourth.answer()


async def test_stream__memory_is_short__refused_before_any_response_and_said_everywhere() -> None:
    async with running(config(limits=Limits(memory_mib=1))) as run:
        run.publish(cluster("a"))
        await until(lambda: run.server.short_of_memory)

        client = connect(run)
        await client.ask(node=NODE, type_url=CLUSTER.url)
        code, details, responses = await client.ended()

        assert (code, responses) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 0)
        assert details == "This server is short of memory; try another one, or later."
        assert run.sample("parley_ads_memory_short") == 1
        assert run.sample("parley_ads_streams_refused_total") == 1


async def test_stream__more_streams_of_one_node_than_allowed__refused_and_others_are_not() -> None:
    async with running(config(limits=Limits(streams_per_node=1))) as run:
        run.publish(cluster("a"))
        first, second, other = connect(run), connect(run), connect(run)
        await first.ask(node=NODE, type_url=CLUSTER.url)
        await first.answer()

        await second.ask(node=NODE, type_url=CLUSTER.url)
        await other.ask(node=base_pb2.Node(id="client-2"), type_url=CLUSTER.url)

        code, _, responses = await second.ended()
        assert (code, responses) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 0)
        assert await other.answer()


@pytest.mark.parametrize("method", [ADS + "StreamAggregatedResources", ADS + "DeltaAggregatedResources"])
async def test_stream__too_many_names__resource_exhausted(method: str) -> None:
    async with running(config(limits=Limits(names_per_request=10, names_per_type=10))) as run:
        run.publish(cluster("a"))
        client = connect(run, method)
        field = "resource_names_subscribe" if client.delta else "resource_names"

        await client.ask(node=NODE, type_url=ENDPOINT.url, **{field: [f"n{number}" for number in range(11)]})
        code, details, _ = await client.ended()

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "at most 10" in details


async def test_stream__too_many_names_over_several_delta_requests__resource_exhausted() -> None:
    async with running(config(limits=Limits(names_per_request=10, names_per_type=10))) as run:
        run.publish(cluster("a"))
        client = connect(run, ADS + "DeltaAggregatedResources")

        await client.ask(
            node=NODE, type_url=ENDPOINT.url, resource_names_subscribe=[f"a{number}" for number in range(10)]
        )
        await client.answer()
        await client.ask(type_url=ENDPOINT.url, resource_names_subscribe=["one-more"])
        code, details, _ = await client.ended()

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "at most 10" in details


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({f"c{number}": "1" for number in range(11)}, "says that 11 resources are held; at most 10 are allowed"),
        ({"c": "1" * 1025}, "has a version of more than 1024 bytes"),
    ],
    ids=["many", "long"],
)
async def test_stream__versions_it_says_it_holds__are_bounded_in_number_and_length(
    versions: dict[str, str], said: str
) -> None:
    # 2,500,000 of them, in one request of 32 MiB, held the loop up for eight seconds.
    async with running(config(limits=Limits(resources_per_environment=10))) as run:
        run.publish(cluster("a"))
        client = connect(run, ADS + "DeltaAggregatedResources")

        await client.ask(node=NODE, type_url=CLUSTER.url, initial_resource_versions=versions)

        code, details, _ = await client.ended()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert said in details


async def test_stream__flood_of_requests__is_read_at_its_rate() -> None:
    async with running(config(limits=Limits(requests_per_s=20, request_burst=20))) as run:
        run.publish(cluster("a"))
        began_s = asyncio.get_running_loop().time()
        client = connect(run)

        def read() -> float:
            return run.sample("parley_ads_requests_total", variant="sotw", type="cluster")

        await client.ask(node=NODE, type_url=CLUSTER.url)
        for _ in range(100):
            await client.ask(type_url=CLUSTER.url, response_nonce="stale")
        await until(lambda: read() > 20)
        # Time enough to read all of them, were there no limit.
        await asyncio.sleep(0.5)

        found = read()
        assert found <= 20 + 20 * (asyncio.get_running_loop().time() - began_s) + 1


async def test_stream__client_that_does_not_read__ends_alone_after_the_write_timeout() -> None:
    async with running(config(limits=Limits(write_timeout_s=1))) as run:
        run.publish(cluster("a"))
        stuck, reading = connect(run), connect(run)
        for client in (stuck, reading):
            await client.ask(node=base_pb2.Node(id=f"{id(client)}"), type_url=CLUSTER.url)
        answer = await reading.answer()

        big, started = cluster("a"), time.monotonic()
        big.alt_stat_name = "x" * 3_000_000
        for timeout_s in range(2, 12):
            big.connect_timeout.seconds = timeout_s
            run.publish(big)
            await reading.ask(type_url=CLUSTER.url, version_info=answer.version_info, response_nonce=answer.nonce)
            answer = await reading.answer()
            # The engine keeps one push outstanding: the stuck client acknowledges what it never read.
            await stuck.ask(type_url=CLUSTER.url, response_nonce=str(timeout_s - 1))
        await until(lambda: run.server.open_streams == 1)
        measured(write_timeout_s=1, ended_after_s=time.monotonic() - started)

    assert run.sample("parley_ads_streams_ended_total", code="UNAVAILABLE") >= 1


async def test_stream__client_that_does_not_read_and_asks_nothing_more__ends_too() -> None:
    async with running(config(limits=Limits(write_timeout_s=1))) as run:
        run.publish(cluster("a"))
        stuck = connect(run)
        await stuck.ask(node=NODE, type_url=CLUSTER.url)
        big = cluster("a")
        big.alt_stat_name = "x" * 3_000_000
        for sent in (1, 2):
            await until(lambda sent=sent: _sent(run) == sent)
            big.connect_timeout.seconds = sent
            run.publish(big)
            await stuck.ask(type_url=CLUSTER.url, response_nonce=str(sent))
        await until(lambda: _sent(run) == 3)

        # The stream has its reason to end while the last response still waits for the client.
        await stuck.call.done_writing()
        await until(lambda: run.server.open_streams == 0)


def _sent(run: Running) -> float:
    return run.sample("parley_ads_responses_total", variant="sotw", type="cluster")


async def test_stop__open_streams__end_with_unavailable_after_their_responses() -> None:
    async with running() as run:
        run.publish(cluster("a"))
        clients = [connect(run) for _ in range(5)]
        for client in clients:
            await client.ask(node=NODE, type_url=CLUSTER.url)
            await client.answer()

        stopping = asyncio.ensure_future(run.server.stop())
        ends = [await client.ended() for client in clients]
        await stopping

    assert {code for code, _, _ in ends} == {grpc.StatusCode.UNAVAILABLE}
    assert {text for _, text, _ in ends} == {"This server is shutting down; reconnect."}
    assert len(run.facts.closed_streams) == 5


async def test_stream__greatest_age__ends_with_unavailable() -> None:
    async with running(config(limits=Limits(connection_age_s=1))) as run:
        run.publish(cluster("a"))
        client = connect(run)
        await client.ask(node=NODE, type_url=CLUSTER.url)
        await client.answer()

        code, details, _ = await client.ended()

    assert (code, details) == (
        grpc.StatusCode.UNAVAILABLE,
        "Ended on purpose: this stream reached its greatest age (connection_age_s); reconnect.",
    )


@pytest.mark.parametrize(
    ("hello", "limits"),
    [(b"", Limits(handshake_timeout_ms=100, **NO_PINGS)), (HTTP2_HELLO, Limits(connection_idle_s=1, **NO_PINGS))],
    ids=["silent", "without-a-call"],
)
async def test_connection__that_asks_for_nothing__is_closed_by_the_server(hello: bytes, limits: Limits) -> None:
    async with running(config(limits=limits)) as run:
        host, _, port = run.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(hello)

        async with asyncio.timeout(30):
            await reader.read()  # until the server closes

        writer.close()


@pytest.mark.parametrize("variant", ["Stream", "Delta"])
async def test_stream__state_too_large_for_a_message__is_counted_once_and_other_types_go_on(variant: str) -> None:
    async with running(config(limits=Limits(sotw_state_bytes=64, resource_bytes=64))) as run:
        run.publish(cluster("a" * 100), endpoints("e"))
        client = connect(run, ADS + f"{variant}AggregatedResources")

        await client.ask(node=NODE, type_url=CLUSTER.url)
        field = "resource_names_subscribe" if client.delta else "resource_names"
        await client.ask(type_url=ENDPOINT.url, **{field: ["e"]})

        answered = [(await client.answer()).type_url for _ in range(2 if client.delta else 1)]
        assert answered == ([CLUSTER.url] if client.delta else []) + [ENDPOINT.url]
        assert run.sample("parley_ads_states_too_large_total", type="cluster") == (0 if client.delta else 1)


async def test_stream__many_names_it_may_not_read__raises_the_alarm_once() -> None:
    async with running(config(limits=Limits(denied_names_per_h=2))) as run:
        nothing = AccessTable(Effect.DENY)
        run.server.directory_changed(run.catalogue.publish(cluster("a"), access=nothing))
        client = connect(run)
        counted = []

        for names in (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
            await client.ask(node=NODE, type_url=ENDPOINT.url, resource_names=names)
            await client.answer()
            counted.append(run.sample("parley_ads_identities_probing_total"))

        assert counted == [0, 1, 1]


async def test_stream__one_client_under_ever_new_node_ids__raises_the_alarm() -> None:
    async with running(config(limits=Limits(denied_names_per_h=2))) as run:
        run.server.directory_changed(run.catalogue.publish(cluster("a"), access=AccessTable(Effect.DENY)))
        with capture_logs() as logged:
            for number in range(4):
                client = connect(run)
                await client.ask(
                    node=base_pb2.Node(id=f"n{number}"), type_url=ENDPOINT.url, resource_names=[f"guess-{number}"]
                )
                await client.answer()

        assert run.sample("parley_ads_identities_probing_total") == 1
        (alarm,) = [each for each in logged if each["event"] == "client.probing"]
        assert (alarm["identity"], alarm["address"], alarm["node_id"]) == ("", "127.0.0.1", "n2")


async def test_stream__response_without_an_answer__is_counted_until_it_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_ANSWERS_PERIOD_S", 0.02)
    async with running(config(limits=Limits(unacknowledged_alarm_s=1))) as run:
        run.publish(cluster("a"))
        client, answering = connect(run), connect(run)
        await client.ask(node=NODE, type_url=CLUSTER.url)
        await answering.ask(node=NODE, type_url=CLUSTER.url)
        nonce = (await client.answer()).nonce
        await answering.ask(type_url=CLUSTER.url, response_nonce=(await answering.answer()).nonce)

        started = time.monotonic()
        await until(lambda: run.sample("parley_ads_streams_unanswered") == 1, longest_s=30)
        measured(alarm_s=1, counted_after_s=time.monotonic() - started)

        await client.ask(type_url=CLUSTER.url, response_nonce=nonce)
        await until(lambda: run.sample("parley_ads_streams_unanswered") == 0, longest_s=30)
