"""The channel arguments that the limits turn into, and the ages that have to fit together."""

import asyncio
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsserver.running.server import channel_options
from tests.support.ads import config, raw_call, running
from tests.support.ads_client import ADS, NODE, Client, cluster
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER


def options(limits: Limits | None = None, *, shared_port: bool = False) -> dict[str, int]:
    return dict(channel_options(limits or Limits(), shared_port=shared_port))


def test_options__defaults__are_those_of_the_limits_table() -> None:
    assert (
        options().items()
        >= {
            "grpc.so_reuseport": 0,
            "grpc.max_receive_message_length": 32 * 1024 * 1024,
            "grpc.max_metadata_size": 8192,
            "grpc.max_concurrent_streams": 100,
            "grpc.keepalive_time_ms": 15_000,
            "grpc.keepalive_timeout_ms": 10_000,
            "grpc.http2.ping_timeout_ms": 10_000,
            "grpc.http2.min_ping_interval_without_data_ms": 5_000,
            "grpc.http2.max_ping_strikes": 10,
        }.items()
    )


def test_options__names__are_ones_that_the_library_knows() -> None:
    [library] = [file.read_bytes() for file in Path(grpc.__file__).parent.glob("_cython/cygrpc*.so")]

    # It passes over a name that it does not know.
    assert [name for name in options() if f"{name}\0".encode() not in library] == []


@pytest.mark.parametrize(
    ("interval_ms", "lives"), [(50, True), (600_000, False)], ids=["as often as it may", "too often"]
)
async def test_options__client_that_pings_a_quiet_stream__is_let_go_only_when_too_often(
    interval_ms: int, lives: bool
) -> None:
    pinging = [("grpc.keepalive_time_ms", 1_000), ("grpc.http2.max_pings_without_data", 0)]
    async with running(config(limits=Limits(ping_interval_ms=interval_ms, ping_strikes=1))) as run:
        run.publish(cluster("a"))
        channel = grpc.aio.insecure_channel(run.address, options=[*pinging, ("grpc.use_local_subchannel_pool", 1)])
        client = Client(raw_call(channel, ADS + "StreamAggregatedResources"), channel, delta=False)
        await client.ask(node=NODE, type_url=CLUSTER.url)
        nonce = (await client.answer()).nonce
        await client.ask(type_url=CLUSTER.url, response_nonce=nonce)

        await asyncio.sleep(6)

        assert client.call.done() != lives


def test_options__workers__share_the_port() -> None:
    assert options(shared_port=True)["grpc.so_reuseport"] == 1


@given(st.integers(1, 604_800), st.integers(0, 50), st.integers(0, 3_600))
def test_options__ages__goaway_precedes_every_stream_end_and_force_comes_after(
    age_s: int, jitter: int, grace_s: int
) -> None:
    limits = Limits(connection_age_s=age_s, connection_age_jitter_percent=jitter, connection_grace_s=grace_s)
    made = options(limits)
    # C-core moves the age by up to 10 % either way; a stream ends at its own age, plus or minus the jitter.
    earliest_goaway_ms = made["grpc.max_connection_age_ms"] * 0.9
    latest_goaway_ms = made["grpc.max_connection_age_ms"] * 1.1
    first_end_ms, last_end_ms = age_s * (1000 - 10 * jitter), age_s * (1000 + 10 * jitter)

    assert latest_goaway_ms <= first_end_ms + 1
    assert earliest_goaway_ms + made["grpc.max_connection_age_grace_ms"] >= last_end_ms + grace_s * 1000 - 2
