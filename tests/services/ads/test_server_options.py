"""The channel arguments that the limits turn into, and the ages that have to fit together."""

from hypothesis import given
from hypothesis import strategies as st

from adsserver.running.server import channel_options
from xdscore.limits import Limits


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
            "grpc.http2.min_recv_ping_interval_without_data_ms": 5_000,
            "grpc.http2.max_ping_strikes": 10,
        }.items()
    )


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
