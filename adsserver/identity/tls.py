"""TLS of the ADS port from files that may change at any time: a new pair serves the next handshake, no restart.

Files are judged before they are used: gRPC tells of a bad pair in a log of its own only. What cannot be used changes
nothing, and is said (`problem`).
"""

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from adsserver.config import AdsConfigError, TlsFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger("adsserver.tls")  # users filter lines by this name

_Stamp = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A certificate (with its chain) and its key, read from the files and found usable. `ends_at` is when the
    certificate expires.
    """

    key: bytes
    chain: bytes
    client_ca: bytes | None
    ends_at: datetime


class Certificates:
    """The TLS files of the server, read again when they change. gRPC asks it from its own threads, once a handshake;
    probes of health ask it, too.

    After each read `observe` is called with the time at which the certificate in use expires, and whether the files as
    they are can be used.
    """

    def __init__(self, files: TlsFiles, observe: Callable[[datetime, bool], None] = lambda _end, _usable: None) -> None:
        """Read the files. Raises AdsConfigError when they cannot be used now."""
        self._files = files
        self._observe = observe
        self._lock = threading.Lock()
        self._unusable = ""
        try:
            self._stamp = self._stamps()
            self._pair = self._read()
        except OSError as error:
            raise AdsConfigError(f"The TLS file '{error.filename}' cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise AdsConfigError(f"The TLS files cannot be used: {error}.") from error
        self._given: _Pair | None = None
        self._observe(self._pair.ends_at, True)

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """The certificate and key in use, for gRPC. From now on `changed` compares with these."""
        pair = self._given = self._pair
        return grpc.ssl_server_certificate_configuration([(pair.key, pair.chain)], root_certificates=pair.client_ca)

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """The certificate and key in use if they changed since gRPC was given some; else None."""
        self._look()
        return self.configuration() if self._pair is not self._given else None

    def pair_in_use(self) -> _Pair:
        """The certificate and key in use, another object once they changed."""
        self._look()
        return self._pair

    def problem(self) -> str:
        """What is wrong with the files as they are now, or with the certificate; empty when nothing is."""
        self._look()
        if self._unusable:
            return f"new TLS files are not used ({self._unusable}); those before are served on"
        ended = self._pair.ends_at <= datetime.now(UTC)
        return f"the certificate of ADS ended at {self._pair.ends_at:%Y-%m-%d %H:%M} UTC" if ended else ""

    def _look(self) -> None:
        stamp: _Stamp = ()
        with self._lock:
            try:
                stamp = self._stamps()
                if stamp == self._stamp:
                    return
                self._pair = self._read()
            except (OSError, ValueError) as error:
                # Between two files of a rotation, or a mistake: the pair in use goes on serving.
                why = f"'{error.filename}': {error.strerror}" if isinstance(error, OSError) else str(error)
                if why != self._unusable:
                    log.warning("tls.unusable", reason=why)
                self._unusable = why
                self._stamp = stamp
            else:
                self._unusable = ""
                self._stamp = stamp
                log.info("tls.changed", ends_at=self._pair.ends_at.isoformat())
            self._observe(self._pair.ends_at, not self._unusable)

    def _read(self) -> _Pair:
        """Read the files. Raises OSError, and ValueError with what is wrong with their content."""
        files = self._files
        key, chain = files.key.read_bytes(), files.certificate.read_bytes()
        client_ca = files.client_ca.read_bytes() if files.client_ca is not None else None
        first = _certificates(files.certificate, chain)[0]
        try:
            own = load_pem_private_key(key, None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(f"'{files.key}' has no private key that can be read without a password") from error
        if own.public_key() != first.public_key():
            raise ValueError(f"the key in '{files.key}' is not that of the certificate in '{files.certificate}'")
        if files.client_ca is not None and client_ca is not None:
            _certificates(files.client_ca, client_ca)
        return _Pair(key, chain, client_ca, first.not_valid_after_utc)

    def _stamps(self) -> _Stamp:
        paths: list[Path] = [self._files.key, self._files.certificate]
        if self._files.client_ca is not None:
            paths.append(self._files.client_ca)
        states = [path.stat() for path in paths]
        return tuple((state.st_mtime_ns, state.st_ino) for state in states)


def server_credentials(source: Certificates, *, client_certificates: bool) -> grpc.ServerCredentials:
    """Server credentials that follow changes of their files without a restart (reliability F31). `client_certificates`:
    whether clients must show a certificate.
    """
    # None means "unchanged" to gRPC; grpc-stubs leave it out.
    follow: Any = source.changed
    return grpc.dynamic_ssl_server_credentials(
        source.configuration(), follow, require_client_authentication=client_certificates
    )


class HttpsContext:
    """The TLS of the REST port, from the same files as that of gRPC: a new pair serves the next handshake. On the event
    loop. `client_certificates`: whether clients must show a certificate.
    """

    def __init__(self, source: Certificates, files: TlsFiles, *, client_certificates: bool) -> None:
        """Raises AdsConfigError when the files cannot be used now."""
        self._source = source
        self._files = files
        self._client_certificates = client_certificates
        self._pair = source.pair_in_use()
        try:
            self._context = self._made(self._pair)
        except (OSError, ssl.SSLError) as error:
            raise AdsConfigError(f"The TLS files cannot be used for REST: {error}.") from error

    def current(self) -> ssl.SSLContext:
        """The context for the next handshake."""
        pair = self._source.pair_in_use()
        if pair is not self._pair:
            try:
                self._context, self._pair = self._made(pair), pair
            except (OSError, ssl.SSLError) as error:
                # Between two files of a rotation: the pair in use goes on serving, and the next handshake looks again.
                log.warning("tls.unusable", reason=str(error))
        return self._context

    def _made(self, pair: _Pair) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._files.certificate, self._files.key, password=_no_password)
        if self._client_certificates and pair.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            # As gRPC does: whatever authority is configured is trusted by itself.
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cadata=pair.client_ca.decode("ascii", "ignore"))
        return context


def _no_password() -> str:
    # Without this OpenSSL would ask at the terminal.
    raise ValueError("the private key has a password")


def _certificates(file: Path, data: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError as error:
        raise ValueError(f"'{file}' holds no certificate that can be read") from error
