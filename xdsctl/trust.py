"""Whether the server's certificate is trusted; and when it is not, whose it is and what to do.

What a certificate says is read again over a connection of its own, on which nothing is sent: it is looked at, and
believed in nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from xdscore.lazily import Lazily
from xdsctl.exits import UsageError
from xdsctl.settings import CACERT_VARIABLE, Context

if TYPE_CHECKING:
    import ssl

    import httpx
    from cryptography import x509
else:
    httpx, ssl, x509 = Lazily("httpx"), Lazily("ssl"), Lazily("cryptography.x509")

_LOOK_S: Final = 5.0
_HTTPS_PORT: Final = 443
# What OpenSSL says of a chain that leads to nobody who is trusted (X509_V_ERR_… of x509_vfy.h): no issuer, one that
# signed itself, and a leaf that nobody here signed.
_NOBODY_TRUSTED: Final = frozenset({2, 18, 19, 20, 21, 27})


def trusted_by(context: Context) -> ssl.SSLContext:
    """The TLS settings by which a server's certificate is judged. The trusted certificate authorities (CA) are those in
    the file of `cacert` alone, if it is given; else those of the machine and those that come with httpx, for a machine
    without any. Raises UsageError for a file that cannot be used.
    """
    if not context.cacert and context.server.startswith("http://"):
        # Reading some 150 authorities takes longer than most calls. This trusts nobody, and is asked of nobody.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not context.cacert:
        trusted = httpx.create_ssl_context()
        trusted.load_default_certs()
        return trusted
    try:
        return ssl.create_default_context(cafile=context.cacert)
    except ssl.SSLError:
        raise UsageError(f"'{context.cacert}' holds no certificate in PEM; --cacert takes a file of them.") from None
    except OSError as error:
        raise UsageError(f"'{context.cacert}' of --cacert cannot be read: {error.strerror}.") from error


def distrust(error: BaseException, context: Context) -> str:
    """Why the server's certificate was not accepted, and what to do; empty when `error` has another cause."""
    refused = next((each for each in _causes(error) if isinstance(each, ssl.SSLCertVerificationError)), None)
    if refused is None:
        return ""
    why = refused.verify_message
    if refused.verify_code not in _NOBODY_TRUSTED:
        return f"The certificate of {context.server} is not accepted: {why}."
    certificate = certificate_of(context.server)
    issuer = f"'{certificate.issuer.rfc4514_string()}'" if certificate is not None else "an authority"
    where = f"which '{context.cacert}' does not hold" if context.cacert else "which this machine does not trust"
    hint = f"If it is your own, name its certificate by --cacert FILE or {CACERT_VARIABLE}."
    return f"The certificate of {context.server} was signed by {issuer}, {where} ({why}). {hint}"


def certificate_of(server: str) -> x509.Certificate | None:
    """The certificate that a server shows, whether or not it is trusted; None when none can be had."""
    parts = urlsplit(server)
    try:
        address = (parts.hostname or "", parts.port or _HTTPS_PORT)
        return x509.load_pem_x509_certificate(ssl.get_server_certificate(address, timeout=_LOOK_S).encode())
    except (OSError, ValueError):
        return None


def left_of(certificate: x509.Certificate) -> timedelta:
    """The time until a certificate expires; negative after that."""
    return certificate.not_valid_after_utc - datetime.now(UTC)


def _causes(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__ or each.__context__
