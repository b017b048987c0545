"""A CSDS request in, a CSDS response out, both as bytes (envoy/service/status/v3/csds.proto). Runs off the event loop.

Like `discovery`, it never builds the response as one message: protobuf messages concatenate, so each resource is
encoded by itself and the interpreter is never held for long while streams want to run.
"""

from dataclasses import dataclass
from typing import Final

from envoy.service.status.v3 import csds_pb2
from google.protobuf.message import DecodeError

from adsserver.ports import FleetClient, FleetStatus, Reader, ResourceStatus, SyncState
from adsserver.wire.fields import varint
from adsserver.wire.node_match import NAMESPACE, MatcherError, compile_matchers, facts_of
from xdscore.limits import Limits

# Tags of length-delimited fields: (field number << 3) | 2.
_CONFIG = b"\x0a"  # 1: ClientStatusResponse.config
_NODE = b"\x0a"  # 1: ClientConfig.node
_GENERIC_XDS_CONFIGS = b"\x1a"  # 3: ClientConfig.generic_xds_configs

_STATUS: Final = {
    SyncState.SYNCED: csds_pb2.SYNCED,
    SyncState.NOT_SENT: csds_pb2.NOT_SENT,
    SyncState.STALE: csds_pb2.STALE,
    SyncState.ERROR: csds_pb2.ERROR,
    SyncState.UNKNOWN: csds_pb2.UNKNOWN,
}
_NARROW: Final = (
    f"Ask for fewer clients with node_matchers: node_id (exact, prefix, suffix, contains, safe_regex) or node_metadatas"
    f" with the path {NAMESPACE}.environment"
)


class BadStatusRequestError(Exception):
    """The CSDS request cannot be answered as it is. The text is sent to the caller (INVALID_ARGUMENT)."""


class TooMuchStatusError(Exception):
    """The answer to a CSDS request would be too large. The text says how to ask for less and is sent to the caller
    (RESOURCE_EXHAUSTED).
    """


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A serialised ClientStatusResponse, and how many clients and resources it holds."""

    data: bytes
    clients: int
    resources: int


def answer(request: bytes, reader: Reader, fleet: FleetStatus, limits: Limits) -> StatusAnswer:
    """The status of those clients that the CSDS request asks for and `reader` may see (protocol.md K2).

    Raises BadStatusRequestError, TooMuchStatusError and FleetUnavailableError.
    """
    message = csds_pb2.ClientStatusRequest()
    try:
        message.ParseFromString(request)
        matches = compile_matchers(message.node_matchers, max_regex_chars=limits.regex_chars)
    except DecodeError as error:
        raise BadStatusRequestError("The request is not a ClientStatusRequest.") from error
    except MatcherError as error:
        raise BadStatusRequestError(str(error)) from error
    # Whose environment may not be read is not even matched: nothing of it shows, not in counts or times (S3).
    clients = [each for each in fleet.clients() if each.environment in reader.environments and matches(each)]
    room = _Room(limits, contents=not message.exclude_resource_contents)
    room.take(entries=len(clients))
    parts: list[bytes] = []
    resources = 0
    for client, statuses in fleet.resources(clients, contents=room.contents):
        room.take(entries=len(statuses))
        config = _client_config(client, statuses, room)
        parts += (_CONFIG, varint(len(config)), config)
        resources += len(statuses)
    return StatusAnswer(b"".join(parts), len(clients), resources)


class _Room:
    """How many entries and bytes a CSDS answer may still take. The largest message that the caller itself would take
    (often 4 MiB) is not known here.
    """

    def __init__(self, limits: Limits, *, contents: bool) -> None:
        self.contents = contents
        self._max_entries = self._entries = limits.status_entries
        self._max_bytes = self._bytes = limits.status_bytes

    def take(self, *, entries: int = 0, size: int = 0) -> None:
        """Use up room for these entries and bytes. Raises TooMuchStatusError when there is not enough."""
        self._entries -= entries
        self._bytes -= size
        if self._entries < 0:
            raise TooMuchStatusError(
                f"The answer would have more than {self._max_entries} entries (clients and their resources). {_NARROW}."
            )
        if self._bytes < 0:
            without = ", or set exclude_resource_contents" if self.contents else ""
            raise TooMuchStatusError(f"The answer would have more than {self._max_bytes} bytes. {_NARROW}{without}.")


def _client_config(client: FleetClient, statuses: tuple[ResourceStatus, ...], room: _Room) -> bytes:
    node = _node(client)
    room.take(size=len(node))
    parts = [_NODE, varint(len(node)), node]
    for status in statuses:
        entry = _entry(status)
        room.take(size=len(entry))
        parts += (_GENERIC_XDS_CONFIGS, varint(len(entry)), entry)
    return b"".join(parts)


def _node(client: FleetClient) -> bytes:
    """The serialised node of a client, as far as it was recorded. What the server knows of the client besides is in its
    metadata, under the key NAMESPACE.
    """
    config = csds_pb2.ClientConfig()
    config.node.id = client.node_id
    config.node.cluster = client.node_cluster
    config.node.user_agent_name = client.user_agent
    config.node.user_agent_version = client.user_agent_version
    config.node.metadata.update({NAMESPACE: facts_of(client)})
    data: bytes = config.node.SerializeToString(deterministic=True)
    return data


def _entry(status: ResourceStatus) -> bytes:
    # `config_status` is what a server fills in, `client_status` is for clients (clients.md 5).
    entry = csds_pb2.ClientConfig.GenericXdsConfig(
        type_url=status.kind.url,
        name=status.name,
        version_info=status.version,
        config_status=_STATUS[status.state],
    )
    if status.config:
        entry.xds_config.MergeFromString(status.config)
    if status.updated_at is not None:
        entry.last_updated.FromDatetime(status.updated_at)
    if status.details:
        entry.error_state.details = status.details
        if status.state is SyncState.ERROR:
            entry.error_state.version_info = status.version
            if status.updated_at is not None:
                entry.error_state.last_update_attempt.FromDatetime(status.updated_at)
    data: bytes = entry.SerializeToString(deterministic=True)
    return data
