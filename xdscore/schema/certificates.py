"""Certificates and keys given inline: readable, belonging together, strong enough, not expired.

What Envoy would say when it loads them, said where they are written. Pure: whoever knows the time asks an `Expiry`.
Nothing of a key ever stands in a finding (reliability S5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from xdscore.findings import Finding
from xdscore.lazily import Lazily
from xdscore.schema.codes import (
    CERTIFICATE_EXPIRED,
    CERTIFICATE_EXPIRING,
    CERTIFICATE_UNREADABLE,
    KEY_DIFFERS,
    KEY_UNREADABLE,
    KEY_WEAK,
)
from xdscore.schema.positions import Path
from xdscore.schema.walk import AnyMessage

if TYPE_CHECKING:
    from cryptography import exceptions, x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
    from cryptography.hazmat.primitives.serialization import pkcs12
else:
    exceptions, x509 = Lazily("cryptography.exceptions"), Lazily("cryptography.x509")
    serialization = Lazily("cryptography.hazmat.primitives.serialization")
    ec = Lazily("cryptography.hazmat.primitives.asymmetric.ec")
    rsa = Lazily("cryptography.hazmat.primitives.asymmetric.rsa")
    pkcs12 = Lazily("cryptography.hazmat.primitives.serialization.pkcs12")

_TLS = "envoy.extensions.transport_sockets.tls.v3."
_CERTIFICATE = _TLS + "TlsCertificate"
_VALIDATION = _TLS + "CertificateValidationContext"
SOON = timedelta(days=30)
# Envoy 1.40 (tls/context_impl.cc): "only RSA certificates with 2048-bit or larger keys are supported", "only P-256,
# P-384 or P-521 ECDSA certificates are supported".
_RSA_BITS_MIN = 2048
_CURVES = frozenset({"secp256r1", "secp384r1", "secp521r1"})


@dataclass(frozen=True, slots=True)
class Expiry:
    """The time at which the certificates of a field expire; of several, the first."""

    field: str
    end: datetime

    def finding(self, now: datetime) -> Finding | None:
        """The finding that the certificates have expired or soon will, as of `now`; None when neither is so."""
        if self.end >= now + SOON:
            return None
        code = CERTIFICATE_EXPIRED if self.end <= now else CERTIFICATE_EXPIRING
        return code.finding("", field=self.field, day=f"{self.end:%Y-%m-%d}")


Found = Iterator[tuple[Path, Finding | Expiry]]


def certificates_in(message: AnyMessage, path: Path) -> Found:
    """The findings about certificates and keys that `message` itself holds, and when each of them expires."""
    name = message.DESCRIPTOR.full_name
    if name == _CERTIFICATE:
        yield from _pair(message, path)
    elif name == _VALIDATION:
        _, found = _chain(message, "trusted_ca", path)
        yield from found


def _pair(message: AnyMessage, path: Path) -> Found:
    chain, found = _chain(message, "certificate_chain", path)
    yield from found
    if chain:
        yield from _strength(chain[0], (*path, "certificate_chain"))
    password = _inline(message, "password")
    bundle = _inline(message, "pkcs12")
    if bundle is not None:
        yield from _bundle(bundle, password, (*path, "pkcs12"))
    key_text = _inline(message, "private_key")
    # A key without the password that its file or variable holds cannot be judged here.
    if key_text is None or (password is None and message.HasField("password")):
        return
    place = (*path, "private_key")
    try:
        key = _key(key_text, password)
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm) as error:
        yield place, KEY_UNREADABLE.finding("", field="private_key", problem=_key_problem(error, password))
        return
    if chain and _spki(key.public_key()) != _spki(chain[0].public_key()):
        yield place, KEY_DIFFERS.finding("", field="private_key")


def _chain(
    message: AnyMessage, field: str, path: Path
) -> tuple[list[x509.Certificate], list[tuple[Path, Finding | Expiry]]]:
    """The certificates that a field of `message` holds, and the findings and expiries of them; none where the field is
    not given inline.
    """
    text = _inline(message, field)
    if text is None:
        return [], []
    place = (*path, field)
    try:
        chain = x509.load_pem_x509_certificates(text)
    except ValueError:
        return [], [(place, CERTIFICATE_UNREADABLE.finding("", field=field))]
    return chain, [(place, _expiry(chain, field))]


def _bundle(data: bytes, password: bytes | None, place: Path) -> Found:
    try:
        key, certificate, more = pkcs12.load_key_and_certificates(data, password)
    except (ValueError, exceptions.UnsupportedAlgorithm) as error:
        yield place, KEY_UNREADABLE.finding("", field="pkcs12", problem=_key_problem(error, password))
        return
    if certificate is None or key is None:
        problem = "the bundle holds no certificate with its key"
        yield place, KEY_UNREADABLE.finding("", field="pkcs12", problem=problem)
        return
    yield place, _expiry([certificate, *more], "pkcs12")
    yield from _strength(certificate, place)


def _strength(certificate: x509.Certificate, place: Path) -> Found:
    key = certificate.public_key()
    problem = ""
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _RSA_BITS_MIN:
        problem = f"RSA with {key.key_size} bits"
    elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in _CURVES:
        problem = f"ECDSA on {key.curve.name}"
    if problem:
        yield place, KEY_WEAK.finding("", field=str(place[-1]), problem=problem)


def _expiry(chain: list[x509.Certificate], field: str) -> Expiry:
    return Expiry(field, min(certificate.not_valid_after_utc for certificate in chain))


def _inline(message: AnyMessage, field: str) -> bytes | None:
    """The content of a DataSource if it is given in the manifest itself; None when it is in a file or elsewhere, or not
    given.
    """
    if not message.HasField(field):
        return None
    source = getattr(message, field)
    match source.WhichOneof("specifier"):
        case "inline_bytes":
            return bytes(source.inline_bytes)
        case "inline_string":
            return bytes(source.inline_string.encode())
        case _:
            return None


def _key(text: bytes, password: bytes | None) -> PrivateKeyTypes:
    """The private key in a PEM text. A password for a key without one is ignored, as proxies do. Raises what
    `load_pem_private_key` raises.
    """
    try:
        return serialization.load_pem_private_key(text, password)
    except TypeError:
        if password is None:
            raise
        return serialization.load_pem_private_key(text, None)


def _key_problem(error: Exception, password: bytes | None) -> str:
    if isinstance(error, exceptions.UnsupportedAlgorithm):
        return "its kind is not known here"
    if isinstance(error, TypeError):
        return (
            "it is not encrypted, but a password is given" if password else "it is encrypted, but no password is given"
        )
    return "it is damaged, or the password is not its own" if password else "it is not a key in PEM, or it is damaged"


def _spki(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
