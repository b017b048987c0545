"""Who a stream is: the verified identity of its connection, and the node it says it is. Denies what it cannot prove."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from adsserver.config import AdsConfig, AdsConfigError, AuthMode
from adsserver.wire import NodeFacts

# The key of index and logs, like a resource name (reliability (e)).
MAX_NODE_ID_BYTES = 1024

_SPIFFE_SCHEME = "spiffe://"
# SPIFFE-ID section 2: lower-case letters, digits, dot, hyphen, underscore in a trust domain; upper case too in a path.
_TRUST_DOMAIN_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")
_PATH_CHARACTERS = _TRUST_DOMAIN_CHARACTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_MAX_SPIFFE_ID_BYTES = 2048


class UnauthenticatedError(Exception):
    """Nobody this server may talk to. The text is sent (UNAUTHENTICATED) and says nothing about others."""


class NodeError(Exception):
    """The node is missing, unusable, or not the one the stream began with. The text is sent (INVALID_ARGUMENT)."""


class Peer(Protocol):
    """What a call knows of its connection: the part of grpc.aio.ServicerContext that identity needs."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Properties that the transport verified."""
        ...


Identify = Callable[[Peer], str]
"""The verified identity of a call, empty where nothing is verified. Raises UnauthenticatedError."""


def identification(config: AdsConfig) -> Identify:
    """How this process identifies its callers. Raises AdsConfigError for a mode it does not know: deny by default."""
    match config.auth:
        case AuthMode.NONE:
            return _nobody
        case AuthMode.MTLS:
            domains = config.trust_domains
            return lambda peer: spiffe_identity(peer.auth_context(), domains)
        case AuthMode.TOKEN:
            raise AdsConfigError("PARLEY_ADS_AUTH=token cannot be enforced by this process.")


def _nobody(_: Peer) -> str:
    return ""


def spiffe_identity(properties: Mapping[str, Iterable[bytes]], trust_domains: frozenset[str]) -> str:
    """The SPIFFE ID of a verified certificate, if its trust domain is one of these, exactly.

    Only `peer_spiffe_id` is read: a certificate with two SPIFFE URIs leaves it unset but lists both as `peer_uri`
    (dependencies.md 14, reliability threat 3). Raises UnauthenticatedError.
    """
    values = tuple(properties.get("peer_spiffe_id", ()))
    if len(values) != 1:
        raise UnauthenticatedError("The client's certificate has no single SPIFFE ID.")
    value = values[0]
    if len(value) > _MAX_SPIFFE_ID_BYTES or not value.isascii():
        raise UnauthenticatedError("The client's SPIFFE ID is not one.")
    text = value.decode("ascii")
    domain, slash, path = text.removeprefix(_SPIFFE_SCHEME).partition("/")
    segments = path.split("/")
    if (
        not text.startswith(_SPIFFE_SCHEME)
        or not slash
        or not _TRUST_DOMAIN_CHARACTERS.issuperset(domain)
        or any(segment in {"", ".", ".."} or not _PATH_CHARACTERS.issuperset(segment) for segment in segments)
    ):
        raise UnauthenticatedError("The client's SPIFFE ID is not one.")
    if domain not in trust_domains:
        raise UnauthenticatedError("The client's trust domain is not admitted here.")
    return text


def first_node(node: NodeFacts | None) -> NodeFacts:
    """The node of a stream's first request, usable as a name (reliability I12). Raises NodeError."""
    if node is None or not node.id:
        raise NodeError("The first request of a stream must have a node with an id.")
    if len(node.id.encode()) > MAX_NODE_ID_BYTES:
        raise NodeError(f"The node's id has more than {MAX_NODE_ID_BYTES} bytes.")
    if not node.id.isprintable():
        raise NodeError("The node's id has characters that cannot be printed.")
    return node


def same_node(first: NodeFacts, later: NodeFacts | None) -> None:
    """Later requests may leave the node out, or change what does not name the client (protocol.md A3, resolutions C16).

    Raises NodeError when id or cluster differ: identity is fixed at the start of a stream (reliability S2).
    """
    if later is None or (later.id, later.cluster) in {(first.id, first.cluster), ("", "")}:
        return
    raise NodeError("The node's id and cluster cannot change during a stream.")
