"""A real proxyless gRPC client in a process of its own: C-core reads its bootstrap once per process.

Run as a script it is that client: it makes each call it reads on standard input and prints one JSON line about it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import grpc

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call: "OK" or the status code's name, the answer or the error's text, and how long it took."""

    code: str
    text: str
    seconds: float


@dataclass(slots=True)
class GrpcClient:
    """Calls through `xds:///` targets."""

    _process: "subprocess.Popen[str]" = field(repr=False)

    def call(self, target: str, text: str = "hello", *, timeout_s: float = 10.0) -> Outcome:
        """One unary call to a target such as `xds:///echo.demo`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"target": target, "text": text, "timeout_s": timeout_s}) + "\n")
        self._process.stdin.flush()
        return Outcome(**json.loads(self._process.stdout.readline()))


@contextmanager
def grpc_client(bootstrap: dict[str, Any]) -> Iterator[GrpcClient]:
    """A client with this bootstrap, with TP3 switched on as C-core wants it."""
    environment = os.environ | {
        "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap),
        "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING": "true",
        "GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS": "true",
        "GRPC_VERBOSITY": "NONE",
    }
    command = [sys.executable, "-m", "tests.support.grpc_client"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        try:
            yield GrpcClient(process)
        finally:
            process.kill()


def simple_bootstrap(*, ads_port: int, node_id: str) -> dict[str, Any]:
    """Insecure ADS on loopback."""
    server = {
        "server_uri": f"127.0.0.1:{ads_port}",
        "channel_creds": [{"type": "insecure"}],
        "server_features": ["xds_v3", "fail_on_data_errors"],
    }
    return {"xds_servers": [server], "node": {"id": node_id}}


def _serve(lines: IO[str]) -> None:
    channels: dict[str, grpc.Channel] = {}
    for line in lines:
        call = json.loads(line)
        channel = channels.setdefault(call["target"], grpc.insecure_channel(call["target"]))
        started = time.monotonic()
        try:
            answer = channel.unary_unary("/demo.Echo/Say", None, None)(call["text"].encode(), timeout=call["timeout_s"])
            code, text = "OK", answer.decode()
        except grpc.RpcError as error:
            code, text = error.code().name, error.details()
        sys.stdout.write(json.dumps({"code": code, "text": text, "seconds": time.monotonic() - started}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(sys.stdin)
