"""Whether a client's certificate is still from an authority that this server admits.

A handshake proves it once, and its connection may live for an hour, with any number of streams. When the file of the
authorities changes, whoever was let in before is looked at again (reliability S2): gRPC cannot repeat a handshake.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# Longer chains are not served; those in use have two or three certificates.
_MAX_CHAIN = 10
_MAX_REMEMBERED = 10_000


class Authorities:
    """The certificates in PARLEY_ADS_TLS_CLIENT_CA. On the event loop; the file is read again by `refresh` only."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = self._look()
        self._anchors: Sequence[x509.Certificate] | None = None
        self._known: dict[bytes, bool] = {}

    def refresh(self) -> None:
        """Take what the file holds now, if it was written since. One that cannot be read, or holds no certificate,
        changes nothing.
        """
        found = self._look()
        if found is None or found == self._seen:
            return
        try:
            self._anchors = x509.load_pem_x509_certificates(found[2])
        except ValueError as error:
            log.warning("authorities.unreadable", file=str(self._file), reason=str(error))
            return
        self._seen = found
        self._known.clear()
        log.info("authorities.changed", certificates=len(self._anchors))

    def admits(self, chain: bytes) -> bool:
        """Whether this chain (PEM, the client's own certificate first) leads to one of the authorities.

        Until the file changes, the handshake has said so already.
        """
        if self._anchors is None:
            return True
        key = sha256(chain).digest()
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            known = self._known[key] = _proven(chain, self._anchors)
        return known

    def _look(self) -> tuple[int, int, bytes] | None:
        """What the file holds, and what tells that it was written since, even if it holds the same again: between two
        looks it may have held something else, and handshakes went by that.
        """
        try:
            state = self._file.stat()
            return state.st_mtime_ns, state.st_ino, self._file.read_bytes()
        except OSError as error:
            log.warning("authorities.unreadable", file=error.filename, reason=error.strerror)
            return None


def _proven(chain: bytes, anchors: Sequence[x509.Certificate]) -> bool:
    try:
        first, *others = x509.load_pem_x509_certificates(chain)
    except ValueError:
        return False
    return len(others) < _MAX_CHAIN and _leads(first, others, anchors)


def _leads(
    certificate: x509.Certificate, others: Sequence[x509.Certificate], anchors: Sequence[x509.Certificate]
) -> bool:
    """Whether an authority issued the certificate, or one of the others did that an authority issued in turn. Names and
    dates of the others were looked at in the handshake.
    """
    if any(_issued(certificate, anchor) for anchor in anchors):
        return True
    return any(
        _issued(certificate, each) and _leads(each, [one for one in others if one is not each], anchors)
        for each in others
    )


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
        return issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return False
