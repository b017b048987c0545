"""A certificate authority for tests, and the files of a server that follows them."""

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adsserver.config import TlsFiles

MINUTE: Final = dt.timedelta(minutes=1)
# Longer than a run of all tests: some are made when their module is loaded.
LONG: Final = dt.timedelta(hours=12)


@dataclass
class Authority:
    """A certificate authority that signs whatever a test needs; its own certificate is signed by the one above it."""

    name: str
    above: "Authority | None" = None
    key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def __post_init__(self) -> None:
        above = self.above or self
        self.certificate = self._sign(
            self.name, self.key, above.key, above.name, [], begins=-10 * MINUTE, ends=LONG, ca=True
        )

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def again(
        self,
        *,
        begins: dt.timedelta = -10 * MINUTE,
        ends: dt.timedelta = LONG,
        ca: bool = True,
        path_length: int | None = None,
        extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
    ) -> bytes:
        """Another certificate, in PEM, of the authority's name and key, signed as its own is: whatever it issued leads
        to all of them. `extensions` are (what, whether it is critical).
        """
        above = self.above or self
        certificate = self._sign(
            self.name,
            self.key,
            above.key,
            above.name,
            [],
            begins=begins,
            ends=ends,
            ca=ca,
            path_length=path_length,
            extensions=extensions,
        )
        return certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        *uris: str,
        common_name: str = "client",
        dns: str = "",
        mail: str = "",
        begins: dt.timedelta = -MINUTE,
        ends: dt.timedelta = LONG,
        usage: x509.ObjectIdentifier | None = None,
    ) -> tuple[bytes, bytes]:
        """A new key and its certificate, in PEM. `begins` and `ends` are relative to now; `usage`: the only one it is
        for.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
        names += [x509.DNSName(dns)] if dns else []
        names += [x509.RFC822Name(mail)] if mail else []
        certificate = self._sign(common_name, key, self.key, self.name, names, begins=begins, ends=ends, usage=usage)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private, certificate.public_bytes(serialization.Encoding.PEM)

    @staticmethod
    def _sign(
        subject: str,
        key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey,
        signer: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey,
        issuer: str,
        names: list[x509.GeneralName],
        *,
        begins: dt.timedelta,
        ends: dt.timedelta,
        usage: x509.ObjectIdentifier | None = None,
        ca: bool = False,
        path_length: int | None = None,
        extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=path_length), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        if not ca:
            usages = [usage] if usage else [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())


def write_pair(files: TlsFiles, pair: tuple[bytes, bytes]) -> None:
    """Replace key and certificate as a rotation does: each at once."""
    for path, data in zip((files.key, files.certificate), pair, strict=True):
        replace_file(path, data)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file by one with these bytes, in one step."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(data)
    os.replace(fresh, path)  # noqa: PTH105 - the call that a rotation makes


def server_files(directory: Path, authority: Authority, dns: str) -> TlsFiles:
    """Write a server's files into this directory, for this DNS name; the authority signs the clients', too."""
    made = TlsFiles(directory / "server.pem", directory / "server.key", directory / "ca.pem")
    write_pair(made, authority.issue(common_name="server", dns=dns))
    assert made.client_ca is not None
    made.client_ca.write_bytes(authority.pem())
    return made
