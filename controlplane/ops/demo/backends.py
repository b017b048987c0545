"""What the demo's data planes lead to: an HTTP and a gRPC server on loopback."""

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

ECHO_METHOD = "/demo.Echo/Say"
_HTTP_TEXT = b"hello from the HTTP backend"


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(_HTTP_TEXT)))
        self.end_headers()
        self.wfile.write(_HTTP_TEXT)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing: the demo prints what matters."""


class _Echo(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        if details.method != ECHO_METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, _context: b"echo: " + request)


def http_backend() -> int:
    """Start a server that answers GET; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hello)
    threading.Thread(target=server.serve_forever, name="http-backend", daemon=True).start()
    return server.server_port


def grpc_backend() -> tuple[grpc.Server, int]:
    """Start a server that echoes unary calls; the server, which runs while it is referenced, and its port."""
    server = grpc.server(ThreadPoolExecutor(2), handlers=[_Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port
