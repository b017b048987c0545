"""A real gRPC server that takes its listener over xDS (gRFC A36), in a process of its own: C-core reads its bootstrap
once per process.

Run as a script it is that server: it says its port, and serves until its standard input ends.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

ROOT = Path(__file__).parents[2]


@contextmanager
def grpc_server(bootstrap: Mapping[str, Any], port: int) -> Iterator[None]:
    """Run a server with this bootstrap on this port of the loopback address until the block ends."""
    environment = os.environ | {"GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap), "GRPC_VERBOSITY": "NONE"}
    command = [sys.executable, "-m", "tests.support.grpc_server", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, cwd=ROOT) as process:
        try:
            yield
        finally:
            process.kill()


def _serve(port: int) -> None:
    class Echo(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
        def service(self, _details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
            return grpc.unary_unary_rpc_method_handler(lambda request, _: b"served:" + request)

    untyped: Any = grpc
    server = untyped.server(ThreadPoolExecutor(2), handlers=[Echo()], xds=True)
    server.add_secure_port(f"127.0.0.1:{port}", untyped.xds_server_credentials(untyped.insecure_server_credentials()))
    server.start()
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
