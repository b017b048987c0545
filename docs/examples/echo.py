"""A gRPC service that echoes, and a client that calls it: plain grpcio, with nothing of Parley in it.

python echo.py serve PORT
python echo.py call xds:///NAME      the bootstrap is the file in GRPC_XDS_BOOTSTRAP
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when grpc is loaded: the error of the call says it all

import grpc

METHOD = "/demo.Echo/Say"


class Echo(grpc.GenericRpcHandler):
    """Answers a call with its own request."""

    def service(self, handler_call_details):
        """The handler of a method; None for one that it does not have."""
        if handler_call_details.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, _context: b"echo: " + request)


def serve(port):
    """Answer calls on loopback until the process ends."""
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Echo()])
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


def call(target):
    """Call once; print the answer, or end with the reason why there is none."""
    with grpc.insecure_channel(target) as channel:
        try:
            print(channel.unary_unary(METHOD)(b"hello", timeout=20, wait_for_ready=False).decode())
        except grpc.RpcError as error:
            sys.exit(f"{error.code().name}: {error.details()}")


if __name__ == "__main__":
    {"serve": serve, "call": call}[sys.argv[1]](sys.argv[2])
