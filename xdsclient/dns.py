"""Names of LOGICAL_DNS clusters to endpoints."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from envoy.config.endpoint.v3 import endpoint_pb2
from google.protobuf.message import Message

from xdsclient.engine.values import Status, StatusCode

Resolve = Callable[[str, int], Awaitable[Message | Status]]
"""Host and port to a ClusterLoadAssignment, or why there is none."""


async def resolve_by_system(host: str, port: int) -> Message | Status:
    """The addresses that the machine's resolver gives for a host, as a ClusterLoadAssignment with one locality; a
    Status that says why when there are none.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return Status(StatusCode.UNAVAILABLE, f"DNS resolution of '{host}' failed: {error.strerror or error}")
    assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name=f"{host}:{port}")
    locality = assignment.endpoints.add()
    for address in dict.fromkeys(info[4][0] for info in found):
        place = locality.lb_endpoints.add().endpoint.address.socket_address
        place.address, place.port_value = str(address), port
    answer: Message = assignment
    return answer
