"""Who a stream is: the verified identity of its connection, and the node it says it is. Denies what it cannot prove."""

import hashlib
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from cryptography import x509

from adsserver.config import AdsConfig
from adsserver.identity.authorities import Chain, presented
from adsserver.ports import ClientToken
from adsserver.wire.discovery import NodeFacts
from xdscore.auth_modes import AuthMode
from xdscore.limits import Limits

# The key of index and logs, like a resource name (reliability (e)).
MAX_NODE_ID_BYTES = 1024

_SPIFFE_SCHEME = "spiffe://"
# SPIFFE-ID section 2: lower-case letters, digits, dot, hyphen, underscore in a trust domain; upper case too in a path.
_TRUST_DOMAIN_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")
_PATH_CHARACTERS = _TRUST_DOMAIN_CHARACTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_MAX_SPIFFE_ID_BYTES = 2048


# Ours have some 130 bytes; nothing longer is worth a hash.
_MAX_TOKEN_BYTES = 512
WITHDRAWN = "The authority of the client's certificate is not admitted here any more."
_HOW = (
    "Send the metadata 'authorization: Bearer TOKEN' with a client token. gRPC needs "
    "GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true for the call_creds of its bootstrap (gRFC A97)."
)


class UnauthenticatedError(Exception):
    """The caller proved no identity that this server accepts. The text is sent to the caller (UNAUTHENTICATED) and says
    nothing about anybody else.
    """


class UndecidedError(Exception):
    """The caller's identity cannot be decided yet. The text is sent to the caller (UNAVAILABLE), so that the client
    tries again.
    """


class NodeError(Exception):
    """The node in a request is missing or unusable, or not that of the stream's first request. The text is sent to the
    client (INVALID_ARGUMENT).
    """


Metadata = Iterable[tuple[str, str | bytes]]


class Peer(Protocol):
    """The connection of a call: the part of grpc.aio.ServicerContext that identity needs."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """The properties of the peer that the transport verified."""
        ...

    def invocation_metadata(self) -> Metadata | None:
        """The metadata that the client sent before its first message."""
        ...


class Tokens(Protocol):
    """The tokens of data planes, found by the SHA-256 of their text."""

    @property
    def loaded(self) -> bool:
        """Whether the tokens were loaded; before that no token is known, whoever shows one."""
        ...

    def find(self, digest: str) -> ClientToken | None:
        """The token with this hash; None when there is none, or it was revoked."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call, as far as it was verified.

    identity: the name that was proved; empty where none was.
    environment: the only one that the credential is good for; empty: any.
    expires_at: the Unix time at which the credential ends.
    token: the hash of the token that was shown, by which a revoked one is noticed; empty: none was.
    chain: the certificates that proved the identity; None: none did.
    """

    identity: str = ""
    environment: str = ""
    expires_at: float = math.inf
    token: str = ""
    chain: Chain | None = field(default=None, repr=False)


NOBODY = Caller()
"""Whoever it is: nothing is asked, and nothing believed."""

Identify = Callable[[Peer], Awaitable[Caller]]
"""Who calls; it waits where signatures must be verified, and not otherwise. Raises UnauthenticatedError,
UndecidedError.
"""


@dataclass(frozen=True, slots=True)
class Known:
    """What a verifier needs beside the call: the configuration of this process and the client tokens in force. `admits`
    says whether a configured certificate authority still stands behind a chain of certificates; `now` returns the Unix
    time.
    """

    config: AdsConfig
    tokens: Tokens
    admits: Callable[[Chain], Awaitable[bool]]
    now: Callable[[], float]


def identification(mode: AuthMode, known: Known) -> Identify:
    """How callers are identified in this mode."""
    return partial(VERIFIERS[mode], known)


async def _nobody(_: Known, __: Peer) -> Caller:
    return NOBODY


async def _by_certificate(known: Known, peer: Peer) -> Caller:
    caller = certificate_caller(peer.auth_context(), known.config.trust_domains, known.config.limits)
    # A new stream on a connection whose handshake was long ago.
    if caller.expires_at <= known.now():
        raise UnauthenticatedError("The client's certificate has ended.")
    if caller.chain is None or not await known.admits(caller.chain):
        raise UnauthenticatedError(WITHDRAWN)
    return caller


async def _by_token(known: Known, peer: Peer) -> Caller:
    return token_caller(peer.invocation_metadata() or (), known.tokens, known.now())


VERIFIERS: Mapping[AuthMode, Callable[[Known, Peer], Awaitable[Caller]]] = {
    AuthMode.NONE: _nobody,
    AuthMode.MTLS: _by_certificate,
    AuthMode.TOKEN: _by_token,
}
"""Who a caller is, in each mode; each raises UnauthenticatedError for whom it cannot prove, or UndecidedError."""


def bearer_token(metadata: Metadata) -> str:
    """The one bearer token of a call. Raises ValueError, with what is wrong, for metadata without exactly one.

    Of two values none is chosen (reliability threat 4).
    """
    values = [value for key, value in metadata if key == "authorization"]
    if not values:
        raise ValueError("is missing")
    value = values[0]
    scheme, _, text = value.partition(" ") if isinstance(value, str) else ("", "", "")
    text = text.strip(" ")
    if (
        len(values) != 1
        or scheme.lower() != "bearer"
        or not text
        or len(text) > _MAX_TOKEN_BYTES
        or not (text.isascii() and text.isprintable())
        or not {" ", ","}.isdisjoint(text)
    ):
        raise ValueError("is not one bearer token")
    return text


def token_hash(text: str) -> str:
    """The hash by which a token is looked up; its text is kept nowhere."""
    return hashlib.sha256(text.encode()).hexdigest()


def token_caller(metadata: Metadata, tokens: Tokens, now: float) -> Caller:
    """The caller whom the one bearer token of the metadata names, at the Unix time `now`. Raises UnauthenticatedError,
    whose text does not say whether the token was unknown, revoked or expired.

    Raises UndecidedError until the tokens are loaded: before that nobody is called unknown (law 3).
    """
    try:
        text = bearer_token(metadata)
    except ValueError as error:
        raise UnauthenticatedError(f"The authorization metadata {error}. {_HOW}") from error
    if not tokens.loaded:
        raise UndecidedError("This server has not loaded the tokens of its clients yet; try again.")
    digest = token_hash(text)
    token = tokens.find(digest)
    if token is None or token.expires_at <= now:
        raise UnauthenticatedError("The token is unknown, expired or revoked.")
    return Caller(token.subject, token.environment, token.expires_at, digest)


def certificate_caller(
    properties: Mapping[str, Iterable[bytes]], trust_domains: frozenset[str], limits: Limits
) -> Caller:
    """The caller whom the verified certificate names, until the certificate ends. Raises UnauthenticatedError.

    Of the transport's properties, `x509_pem_cert` alone says who that is. `x509_pem_cert_chain` is whatever the client
    presented beside it, in any order: it may lead to a certificate authority, and never stands for the client.
    """
    identity = spiffe_identity(properties, trust_domains)
    try:
        (own,) = properties.get("x509_pem_cert", ())
    except ValueError as error:
        raise UnauthenticatedError("The client has no single certificate.") from error
    try:
        chain = presented(own, b"".join(properties.get("x509_pem_cert_chain", ())), limits)
    except ValueError as error:
        raise UnauthenticatedError(str(error)) from error
    try:
        expires_at = x509.load_pem_x509_certificate(own).not_valid_after_utc.timestamp()
    except (ValueError, x509.InvalidVersion) as error:
        raise UnauthenticatedError("The client's certificate cannot be read.") from error
    return Caller(identity, expires_at=expires_at, chain=chain)


def spiffe_identity(properties: Mapping[str, Iterable[bytes]], trust_domains: frozenset[str]) -> str:
    """The SPIFFE ID of a verified certificate, if its trust domain is one of these, exactly. Raises
    UnauthenticatedError otherwise.

    Only `peer_spiffe_id` is read: a certificate with two SPIFFE URIs leaves it unset but lists both as `peer_uri`
    (dependencies.md 14, reliability threat 3).
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
    """The node of a stream's first request, after checks that its id can be used as a name (reliability I12). Raises
    NodeError.
    """
    if node is None or not node.id:
        raise NodeError("The first request of a stream must have a node with an id.")
    if len(node.id.encode()) > MAX_NODE_ID_BYTES:
        raise NodeError(f"The node's id has more than {MAX_NODE_ID_BYTES} bytes.")
    if not node.id.isprintable():
        raise NodeError("The node's id has characters that cannot be printed.")
    return node


def same_node(first: NodeFacts, later: NodeFacts | None) -> None:
    """Check the node of a later request against that of the first. A later request may leave the node out, or change
    what does not name the client (protocol.md A3, decisions C16).

    Raises NodeError when id or cluster differ: identity is fixed at the start of a stream (reliability S2).
    """
    if later is None or (later.id, later.cluster) in {(first.id, first.cluster), ("", "")}:
        return
    raise NodeError("The node's id and cluster cannot change during a stream.")
