"""What data planes lead to: an HTTP server and a gRPC server that say who they are, on loopback."""

import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

ECHO_METHOD = "/demo.Echo/Say"


class _Server(ThreadingHTTPServer):
    # Of the 5 connections that may wait by default, a burst of calls loses the sixth.
    request_queue_size = 128


@contextmanager
def http_backend(text: str, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer every GET with `text`, over TLS where `tls` is given, until the block ends; yields the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Log nothing: tests look at the answers."""

    server = _Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def grpc_backend(text: str) -> Iterator[int]:
    """Answer every unary call with `text`, a colon and the request, until the block ends; yields the port."""

    class Echo(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
        def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":  # noqa: ARG002
            return grpc.unary_unary_rpc_method_handler(lambda request, _: f"{text}:{request.decode()}".encode())

    server = grpc.server(ThreadPoolExecutor(2), handlers=[Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)
