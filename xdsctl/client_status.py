"""What a client says of itself over CSDS (gRFC A40, envoy/service/status/v3/csds.proto), as a `Word`.

Needs grpcio, an extra of xdsctl. Like `envoy_dump` it lets no content go on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from envoy.admin.v3 import config_dump_shared_pb2
from envoy.service.status.v3 import csds_pb2

from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, by_url
from xdscore.said import Said, SaidSource, SaidState, Word
from xdscore.schema.dumped import version_of_content
from xdsctl.envoy_dump import MAX_VERSION_CHARS, named, words
from xdsctl.exits import NoAnswerError, UsageError

_METHOD: Final = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"
_MAX_BYTES: Final = 64 * 1024 * 1024
# What gRPC's CSDS shows every name of; it knows no other types.
_TYPES: Final = frozenset(kind.word for kind in (LISTENER, ROUTE, CLUSTER, ENDPOINT))


@dataclass(frozen=True, slots=True)
class Tls:
    """The files for a TLS connection, in PEM. Without any of them the connection is not encrypted."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def channel(self, address: str) -> grpc.Channel:
        """A gRPC channel to this address. Raises UsageError for files that cannot be read, or not be used together."""
        options = [("grpc.max_receive_message_length", _MAX_BYTES)]
        if bool(self.cert_file) != bool(self.key_file):
            raise UsageError("--cert and --key go together.")
        if not (self.ca_file or self.cert_file):
            return grpc.insecure_channel(address, options)
        try:
            ca, key, cert = (
                Path(path).read_bytes() if path else None for path in (self.ca_file, self.key_file, self.cert_file)
            )
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}.") from error
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(ca, key, cert), options)


def status_of(address: str, tls: Tls, *, seconds: float) -> Any:
    """What the CSDS service at this address answers (a ClientStatusResponse) within so many seconds. Raises
    NoAnswerError when it does not.
    """
    with tls.channel(address) as channel:
        fetch: Any = channel.unary_unary(
            _METHOD,
            request_serializer=csds_pb2.ClientStatusRequest.SerializeToString,
            response_deserializer=csds_pb2.ClientStatusResponse.FromString,
        )
        try:
            return fetch(csds_pb2.ClientStatusRequest(), timeout=seconds)
        except grpc.RpcError as error:
            said: Any = error
            raise NoAnswerError(
                f"{address} does not answer as a CSDS service: {said.code().name}: {said.details()}."
            ) from error


def word_of_status(response: Any, *, node_id: str = "") -> Word:
    """Everything that one client says it has, from a CSDS answer: the client with this node id, or the only client in
    it when no node id is given. What it says for each of its targets is put together, so a name may occur several
    times. Raises UsageError when no node id is given and the answer has no client, or several.
    """
    present = list(dict.fromkeys(config.node.id for config in response.config))
    chosen = node_id or (present[0] if len(present) == 1 else "")
    if not chosen:
        found = f"answers for {len(present)} nodes: {', '.join(present)}" if present else "has no client yet"
        raise UsageError(f"The service {found}. Name one with --node-id.")
    names = (
        said for config in response.config if config.node.id == chosen for said in _names(config.generic_xds_configs)
    )
    return Word(SaidSource.CSDS, chosen, _TYPES, named(names))


def _names(entries: Iterable[Any]) -> Iterator[Said]:
    for each in entries:
        kind = by_url.get(each.type_url)
        if kind is None:
            continue
        held = each.HasField("xds_config")
        yield Said(
            type=kind.word,
            name=each.name,
            state=_state(each.client_status),
            held=held,
            version=version_of_content(each.xds_config.SerializeToString()) if held else "",
            version_info=words(each.version_info, MAX_VERSION_CHARS),
            error=words(each.error_state.details),
        )


def _state(number: int) -> SaidState:
    """The state that has this number in CSDS; SaidState.UNKNOWN for a number that only a later version of CSDS has."""
    statuses = config_dump_shared_pb2.ClientResourceStatus
    word = statuses.Name(number) if number in statuses.values() else ""
    return SaidState(word) if word in SaidState.__members__ else SaidState.UNKNOWN
