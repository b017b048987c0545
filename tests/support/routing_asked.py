"""Requests to a real Envoy whose routes and virtual hosts say in headers of their answers which of them it was."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.routing_cases import ANY, Json
from xdscore.routing.values import Request

LISTENER = ANY + "envoy.config.listener.v3.Listener"


@dataclass(frozen=True)
class Said:
    """What an answer says of its way; empty where its headers do not. Of gRPC the status stands in a header of its own,
    and `grpc` is that.
    """

    status: int
    grpc: str
    host: str
    route: str
    cluster: str
    location: str


def ask(port: int, request: Request) -> Said:
    """Send the request word for word, and read the head of the answer."""
    target = request.authority if request.method == "CONNECT" else request.path
    lines = [f"{request.method} {target} HTTP/1.1", f"host: {request.authority}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    if request.method == "POST":
        lines.append("content-length: 0")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            part = connection.recv(65_536)
            assert part, f"Envoy closed the connection of {request}"
            head += part
    first, *rest = head.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    status = int(first.split(" ")[1])
    words = [headers.get(name, "") for name in ("grpc-status", "x-vhost", "x-route", "x-cluster", "location")]
    return Said(status, *words)


def bootstrap_with(backends: Sequence[tuple[Json, Json]], listeners: Sequence[Json]) -> Json:
    """The bootstrap of an Envoy with these listeners, and with backends, each a listener and the cluster that leads to
    it.
    """
    return {
        "node": {"id": "oracle", "cluster": "test"},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
        "static_resources": {
            "listeners": [*(listener for listener, _ in backends), *listeners],
            "clusters": [cluster for _, cluster in backends],
        },
    }
