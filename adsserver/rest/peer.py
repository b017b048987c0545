"""Who is at the other end of an HTTP connection, in the form in which identity is proved (`identity.Peer`)."""

import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding

from adsserver.identity.identification import Metadata

_SPIFFE = "spiffe://"
# What cryptography raises for certificates that OpenSSL reads and it does not.
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension)


class HttpPeer:
    """The peer of one request: what TLS verified of its connection, and the headers that it sent."""

    def __init__(self, properties: Mapping[str, Iterable[bytes]], headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._properties = properties
        self._headers = headers

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """The properties of the peer that TLS verified, by gRPC's names for them."""
        return self._properties

    def invocation_metadata(self) -> Metadata:
        """The headers of the request, each with a name in lower case."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers]


def properties_of(tls: ssl.SSLObject | None) -> Mapping[str, Iterable[bytes]]:
    """What TLS verified of a peer: its certificate, whatever it sent beside that, and its SPIFFE ID, where the
    certificate has one URI and that is one (as gRPC's C-core reads it; dependencies.md 14).
    """
    own = tls.getpeercert(binary_form=True) if tls is not None else None
    if tls is None or own is None:
        return {}
    properties = {"x509_pem_cert": [_pem(own)], "x509_pem_cert_chain": [b"".join(_presented(tls))]}
    uris = _uris(own)
    if len(uris) == 1 and uris[0].startswith(_SPIFFE):
        properties["peer_spiffe_id"] = [uris[0].encode("utf-8", "replace")]
    return properties


def _presented(tls: ssl.SSLObject) -> Iterable[bytes]:
    """The certificates that the peer sent, in PEM, but its own. Until Python 3.13 they can be asked for here only."""
    inner: Any = tls
    sent = getattr(inner, "_sslobj", inner).get_unverified_chain() or ()
    return [_pem(each if isinstance(each, bytes) else bytes(each.public_bytes(2))) for each in list(sent)[1:]]


def _uris(der: bytes) -> list[str]:
    try:
        certificate = x509.load_der_x509_certificate(der)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return names.get_values_for_type(x509.UniformResourceIdentifier)
    except (x509.ExtensionNotFound, *_UNREADABLE):
        return []


def _pem(der: bytes) -> bytes:
    try:
        return x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)
    except _UNREADABLE:
        return ssl.DER_cert_to_PEM_cert(der).encode()


def peer_text(address: object) -> str:
    """The address of a peer, spelled as gRPC does."""
    match address:
        case (str(host), int(port), _, _):
            return f"ipv6:{quote(f'[{host}]', safe=':')}:{port}"
        case (str(host), int(port)):
            return f"ipv4:{host}:{port}"
        case _:
            return "unknown"
