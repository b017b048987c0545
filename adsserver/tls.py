"""TLS of the ADS port from files that may change at any time: a new pair serves the next handshake, no restart."""

import threading
from pathlib import Path
from typing import Any

import grpc
import structlog

from adsserver.config import AdsConfigError, TlsFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_Stamp = tuple[tuple[int, int], ...]


def server_credentials(files: TlsFiles, *, client_certificates: bool) -> grpc.ServerCredentials:
    """Credentials that follow their files (reliability F31). Raises AdsConfigError when they cannot be read now."""
    source = _Certificates(files)
    try:
        first = source.read()
    except OSError as error:
        raise AdsConfigError(f"The TLS file '{error.filename}' cannot be read: {error.strerror}.") from error
    # None means "unchanged" to gRPC; grpc-stubs leave it out.
    follow: Any = source.read_if_changed
    return grpc.dynamic_ssl_server_credentials(first, follow, require_client_authentication=client_certificates)


class _Certificates:
    """The files, and when they last changed. gRPC asks from its own threads, once a handshake."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._stamp: _Stamp = ()

    def read(self) -> grpc.ServerCertificateConfiguration:
        self._stamp = self._stamps()
        pair = (self._files.key.read_bytes(), self._files.certificate.read_bytes())
        authority = self._files.client_ca.read_bytes() if self._files.client_ca is not None else None
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=authority)

    def read_if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        with self._lock:
            try:
                if self._stamps() == self._stamp:
                    return None
                return self.read()
            except OSError as error:
                # Between two files of a rotation: the pair in use goes on serving.
                log.warning("tls.unreadable", file=error.filename, reason=error.strerror)
                return None

    def _stamps(self) -> _Stamp:
        paths: list[Path] = [self._files.key, self._files.certificate]
        if self._files.client_ca is not None:
            paths.append(self._files.client_ca)
        states = [path.stat() for path in paths]
        return tuple((state.st_mtime_ns, state.st_ino) for state in states)
