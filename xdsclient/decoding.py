"""Resource types as a client reads them: from the bytes of a message to the value a watcher gets, or to what is wrong.

The standard types check the field rules that the server checks too (`xdscore.schema`); a type of one's own may check
more, or build a value of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from envoy.config.cluster.v3.cluster_pb2 import Cluster
from envoy.config.endpoint.v3.endpoint_pb2 import ClusterLoadAssignment
from envoy.config.listener.v3.listener_pb2 import Listener
from envoy.config.route.v3.route_pb2 import RouteConfiguration
from envoy.extensions.transport_sockets.tls.v3.secret_pb2 import Secret
from envoy.service.runtime.v3.rtds_pb2 import Runtime
from google.protobuf.message import DecodeError, Message

from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, RUNTIME, SECRET, ResourceType
from xdscore.schema.positions import pointer_of
from xdscore.schema.rules import violations_of
from xdscore.schema.types_registry import descriptors, new_message

R_co = TypeVar("R_co", covariant=True)

# Whoever watches gets messages of the classes that they import themselves.
_GENERATED: Mapping[ResourceType, type[Message]] = {
    LISTENER: Listener,
    ROUTE: RouteConfiguration,
    CLUSTER: Cluster,
    ENDPOINT: ClusterLoadAssignment,
    SECRET: Secret,
    RUNTIME: Runtime,
}
# A NACK is read by people and cut at about 4,000 characters; the first problems of a resource say enough.
_SHOWN_PROBLEMS = 8


class InvalidResourceError(ValueError):
    """The content of a resource cannot be used. The text says why, and the client sends it in a NACK."""


@dataclass(frozen=True, slots=True)
class ClientType(Generic[R_co]):
    """One resource type as a client reads it. `read` makes a value of a serialised message, or raises
    InvalidResourceError.
    """

    kind: ResourceType
    read: Callable[[bytes], R_co]


def load_descriptors() -> None:
    """Load the message descriptors that decoding needs, once in a process, so that the first response need not wait
    half a second and more for it.
    """
    descriptors()


def standard_type(kind: ResourceType) -> ClientType[Message]:
    """The client type whose values are protobuf messages, checked by the field rules of the API (xdscore.schema)."""

    def read(data: bytes) -> Message:
        return _checked(kind, data)

    return ClientType(kind, read)


LISTENERS = standard_type(LISTENER)
ROUTES = standard_type(ROUTE)
CLUSTERS = standard_type(CLUSTER)
ENDPOINTS = standard_type(ENDPOINT)
SECRETS = standard_type(SECRET)
RUNTIMES = standard_type(RUNTIME)

STANDARD_TYPES: tuple[ClientType[Message], ...] = (LISTENERS, ROUTES, CLUSTERS, ENDPOINTS, SECRETS, RUNTIMES)
"""What a client can watch unless it is told otherwise."""


def _checked(kind: ResourceType, data: bytes) -> Message:
    made = _GENERATED.get(kind)
    message = made() if made is not None else new_message(kind.message)
    try:
        message.ParseFromString(data)
        found = list(islice(violations_of(message), _SHOWN_PROBLEMS + 1))
    except DecodeError as error:
        raise InvalidResourceError(f"cannot be decoded as {kind.message}") from error
    except RecursionError as error:
        # Anys within Anys cost a sender a few bytes a level.
        raise InvalidResourceError("is nested too deeply") from error
    if found:
        problems = [f"{pointer_of(path) or '/'}: {finding.detail}" for path, finding in found[:_SHOWN_PROBLEMS]]
        if len(found) > _SHOWN_PROBLEMS:
            problems.append("and more")
        raise InvalidResourceError("; ".join(problems))
    return message
