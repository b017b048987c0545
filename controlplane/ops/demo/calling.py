"""One call of the demo's gRPC clients. Imports grpc: only after the bootstrap is in the environment."""

import time
from typing import Final

import grpc

from controlplane.ops.demo.backends import ECHO_METHOD

_ANSWER_S: Final = 20.0


def outcome(channel: grpc.Channel) -> str:
    """Make one call; the answer or the error's text, and after how many seconds it came."""
    started = time.monotonic()
    try:
        answer = channel.unary_unary(ECHO_METHOD, None, None)(b"hello", timeout=_ANSWER_S).decode()
    except grpc.RpcError as error:
        answer = f"{error.code().name}: {error.details()}"
    return f"{answer!r} after {time.monotonic() - started:.2f} s"
