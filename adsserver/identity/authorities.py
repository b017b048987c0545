"""Whether a client's certificate is still from an authority that this server admits.

A handshake proves it once, and its connection may live for an hour, with any number of streams. When the file of the
authorities changes, whoever was let in before is looked at again (reliability S2): gRPC cannot repeat a handshake.

The certificates that a client presents beside its own are whatever it likes: they are bounded in number and size, each
is taken up once, and signatures are verified by a thread. `cryptography.x509.verification` is not used: it refuses name
constraints of URIs, by which SPIFFE authorities are bound to a trust domain, and Ed25519 keys, both of which handshakes
take.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

from xdscore.limits import Limits

log: structlog.stdlib.BoundLogger = structlog.get_logger("adsserver.authorities")  # users filter lines by this name

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_MAX_REMEMBERED: Final = 10_000
# Whoever was refused may have presented what is not in force yet.
_REFUSED_FOR_S: Final = 60.0
# What cryptography raises for certificates that BoringSSL reads and it does not.
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
# What an authority may insist on although it bounds nothing here; anything else unknown refuses (RFC 5280, 4.2).
_HARMLESS: Final = {ExtensionOID.SUBJECT_ALTERNATIVE_NAME, ExtensionOID.CERTIFICATE_POLICIES}
_CLIENTS: Final = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}

_Anchors = Sequence[x509.Certificate]


@dataclass(frozen=True, slots=True)
class Chain:
    """The certificates that a client presented in its handshake, its own first, in PEM. `digest` is a hash that equal
    chains share.
    """

    pem: bytes = field(repr=False)
    digest: bytes


def presented(own: bytes, others: bytes, limits: Limits) -> Chain:
    """The chain of a client's own certificate and the others that it sent, in any order, both in PEM. Nothing
    is verified here. Raises ValueError, with a sentence for the client, when they are too many or too large.
    """
    pem = own + others
    count = pem.count(_BEGIN)
    if count > limits.client_certificates:
        raise ValueError(
            f"The client presents {count} certificates; this server takes at most {limits.client_certificates}, "
            "its own and those it leads by."
        )
    if len(pem) > limits.client_certificates_bytes:
        raise ValueError(
            f"The client's certificates have {len(pem)} bytes (PEM); "
            f"this server takes at most {limits.client_certificates_bytes}."
        )
    return Chain(pem, sha256(pem).digest())


@dataclass(frozen=True, slots=True)
class _Admission:
    """The verdict whether a chain is admitted, and the Unix time until which the verdict holds."""

    admitted: bool
    until: float


class _Judged:
    """The certificate authorities (CA) that the file held when it was read last, and the verdicts on chains by these
    CAs.
    """

    def __init__(self, anchors: _Anchors) -> None:
        self.anchors = anchors
        self.known: dict[bytes, _Admission] = {}
        self.pending: dict[bytes, asyncio.Future[_Admission]] = {}

    def remember(self, digest: bytes, verdict: _Admission) -> None:
        """Keep the verdict on the chain with this digest; when there are too many, the oldest verdict is dropped."""
        self.known.pop(digest, None)
        if len(self.known) >= _MAX_REMEMBERED:
            del self.known[next(iter(self.known))]
        self.known[digest] = verdict


class Authorities:
    """The certificate authorities (CA) in the file that PARLEY_ADS_TLS_CLIENT_CA names. Used on the event loop; a
    thread of its own reads the file and verifies signatures. `now` returns the Unix time.
    """

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._now = now
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ads-authorities")
        self._seen = self._look()
        self._judged: _Judged | None = None

    def close(self) -> None:
        """End the thread that reads and verifies, because the server stopped."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def refresh(self) -> None:
        """Read the certificate authorities from the file, if the file was written since it was read last. A file that
        cannot be read, or holds no certificate, changes nothing.
        """
        found = await asyncio.wrap_future(self._thread.submit(self._look))
        if found is None or found == self._seen:
            return
        try:
            anchors = x509.load_pem_x509_certificates(found[2])
        except ValueError as error:
            log.warning("authorities.unreadable", file=str(self._file), reason=str(error))
            return
        self._seen = found
        self._judged = _Judged(anchors)
        log.info("authorities.changed", certificates=len(anchors))

    async def admits(self, chain: Chain) -> bool:
        """Whether the client's own certificate leads to one of the certificate authorities in the file.

        Until the file changes this is True at once: the handshake has verified it. After that each chain is verified
        once and the verdict remembered.
        """
        judged = self._judged
        if judged is None:
            return True
        now = self._now()
        known = judged.known.get(chain.digest)
        if known is None or known.until <= now:
            pending = judged.pending.get(chain.digest)
            if pending is None:
                work = self._thread.submit(_verdict, chain.pem, judged.anchors, now)
                pending = judged.pending[chain.digest] = asyncio.ensure_future(self._judge(judged, chain.digest, work))
            # Whoever goes away meanwhile does not take the verdict from the others who wait for it.
            known = await asyncio.shield(pending)
        return known.admitted

    async def _judge(self, judged: _Judged, digest: bytes, work: Future[_Admission]) -> _Admission:
        try:
            verdict = await asyncio.wrap_future(work)
        finally:
            del judged.pending[digest]
        judged.remember(digest, verdict)
        return verdict

    def _look(self) -> tuple[int, int, bytes] | None:
        """The time, inode and content of the file; None when it cannot be read. The time and inode tell that it was
        written even if its content is the same again: in between it may have held something else, and handshakes went
        by that.
        """
        try:
            state = self._file.stat()
            return state.st_mtime_ns, state.st_ino, self._file.read_bytes()
        except OSError as error:
            log.warning("authorities.unreadable", file=error.filename, reason=error.strerror)
            return None


# In the thread. Denied is whatever cannot be read or judged.


def _verdict(pem: bytes, anchors: _Anchors, now: float) -> _Admission:
    refused = _Admission(False, now + _REFUSED_FOR_S)
    try:
        own, *others = [_read(_BEGIN + each) for each in pem.split(_BEGIN)[1:]]
        if own is None:
            return refused
        until = _leads_until(own, [each for each in others if each is not None], anchors, now)
    except Exception:
        log.exception("authorities.failed")
        return refused
    return refused if until is None else _Admission(True, until)


def _read(pem: bytes) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(pem)
    except _UNREADABLE:
        return None


def _leads_until(
    own: x509.Certificate, others: Sequence[x509.Certificate], anchors: _Anchors, now: float
) -> float | None:
    """The Unix time until which the client's certificate `own` leads to one of the certificate authorities in
    `anchors`, directly or over intermediate ones in `others`; None when it does not.

    The shortest way is looked for, because some authorities bound its length. Each of the `others` is taken up once, so
    that n of them cost n * n signatures at most, however they signed each other.
    """
    hosts = _hosts(own)
    untried = list(dict.fromkeys(others))
    # A certificate that is reached, how many authorities were passed on the way there, and until when all hold.
    reached = deque([(own, 0, _ends(own))])
    while reached:
        certificate, below, until = reached.popleft()
        if certificate in anchors:
            return until
        for anchor in anchors:
            if _issued(certificate, anchor) and _may_issue(anchor, below, hosts, now):
                return min(until, _ends(anchor))
        for each in tuple(untried):
            if _issued(certificate, each) and _may_issue(each, below, hosts, now):
                untried.remove(each)
                # One that an authority issued to itself, for a new key, is not counted (RFC 5280, 4.2.1.9).
                if each.subject == each.issuer:
                    reached.appendleft((each, below, min(until, _ends(each))))
                else:
                    reached.append((each, below + 1, min(until, _ends(each))))
    return None


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, *_UNREADABLE):
        return False
    return True


def _may_issue(issuer: x509.Certificate, below: int, hosts: Sequence[str], now: float) -> bool:
    """Whether this certificate is that of a certificate authority, valid now, that may issue for clients with URIs of
    these hosts with `below` other authorities in between (RFC 5280, 6.1.4). The handshake may have looked at another
    way to it.
    """
    try:
        said = list(issuer.extensions)
    except _UNREADABLE:
        return False
    return (
        issuer.not_valid_before_utc.timestamp() <= now < _ends(issuer)
        and any(each.oid == ExtensionOID.BASIC_CONSTRAINTS for each in said)
        and all(_allows(each, below, hosts) for each in said)
    )


def _allows(said: x509.Extension[x509.ExtensionType], below: int, hosts: Sequence[str]) -> bool:
    match said.value:
        case x509.BasicConstraints() as basic:
            return basic.ca and (basic.path_length is None or below <= basic.path_length)
        case x509.KeyUsage() as usage:
            return usage.key_cert_sign
        case x509.ExtendedKeyUsage() as usages:
            return not _CLIENTS.isdisjoint(usages)
        case x509.NameConstraints() as names:
            return _within(names, hosts)
    return not said.critical or said.oid in _HARMLESS


def _within(names: x509.NameConstraints, hosts: Sequence[str]) -> bool:
    """Whether a certificate authority with these name constraints may vouch for URIs of these hosts (RFC 5280,
    4.2.1.10). Constraints on other kinds of names do not count: of a client nothing but a URI is believed.
    """
    permitted, excluded = (
        [each.value.lower() for each in trees or () if isinstance(each, x509.UniformResourceIdentifier)]
        for trees in (names.permitted_subtrees, names.excluded_subtrees)
    )
    return all(
        (not permitted or any(_matches(host, each) for each in permitted))
        and not any(_matches(host, each) for each in excluded)
        for host in hosts
    )


def _matches(host: str, bound: str) -> bool:
    return host.endswith(bound) if bound.startswith(".") else host == bound


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    """The hosts in the URIs of a certificate; the host of a SPIFFE ID is its trust domain. Raises what `cryptography`
    raises for an extension that it cannot read.
    """
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple((urlsplit(uri).hostname or "") for uri in names.get_values_for_type(x509.UniformResourceIdentifier))


def _ends(certificate: x509.Certificate) -> float:
    return certificate.not_valid_after_utc.timestamp()
