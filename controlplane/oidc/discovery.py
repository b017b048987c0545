"""What an identity provider says of itself: where its endpoints are, and its keys. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet

from controlplane.config.oidc import Oidc

# Asymmetric only (RFC 7518, RFC 8037): with HS256 whoever has the client's secret, or takes the public key for one,
# signs as the provider; `none` is no signature.
ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
_KEY_TYPES: Final = ("RSA", "EC", "OKP")
_MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2_048  # NIST SP 800-131A revision 2
_MAX_RSA_BITS: Final = 16_384  # a larger one costs seconds to verify with
_MAX_URL_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the provider's configuration document says. An endpoint that it does not have is empty.

    `client_auth`: how Parley proves who it is at the token endpoint, as authlib calls it.
    `names_issuer`: the provider puts its issuer beside each code (RFC 9207).
    """

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    end_session_endpoint: str
    algorithms: tuple[str, ...]
    client_auth: str
    names_issuer: bool


def configuration_url(oidc: Oidc) -> str:
    """Where the provider's configuration document is (OpenID Connect Discovery 1.0 section 4)."""
    return f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration"


def metadata_of(document: object, oidc: Oidc) -> Metadata:
    """What the configuration document says. Raises ValueError, with a sentence, where it is not that of the configured
    issuer or nobody could be signed in by it.
    """
    if not isinstance(document, Mapping):
        raise ValueError("its configuration is no JSON object")  # noqa: TRY004 - a document, not an argument
    if document.get("issuer") != oidc.issuer:
        # Discovery section 4.3: equal, letter by letter. Else one provider could speak as another.
        raise ValueError(
            f"its configuration says issuer {document.get('issuer')!r}, and PARLEY_OIDC_ISSUER {oidc.issuer!r}"
        )
    offered = _words(document, "id_token_signing_alg_values_supported")
    algorithms = tuple(each for each in ALGORITHMS if not offered or each in offered)
    if not algorithms:
        raise ValueError(f"it signs by {', '.join(offered)[:200]} only; Parley takes {', '.join(ALGORITHMS)}")
    challenges = _words(document, "code_challenge_methods_supported")
    if challenges and "S256" not in challenges:
        raise ValueError("it has PKCE, and not by S256")
    return Metadata(
        authorization_endpoint=_endpoint(document, "authorization_endpoint", oidc, needed=True),
        token_endpoint=_endpoint(document, "token_endpoint", oidc, needed=True),
        jwks_uri=_endpoint(document, "jwks_uri", oidc, needed=True),
        userinfo_endpoint=_endpoint(document, "userinfo_endpoint", oidc),
        end_session_endpoint=_endpoint(document, "end_session_endpoint", oidc),
        algorithms=algorithms,
        client_auth=_client_auth(document, oidc),
        names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def keys_of(document: object) -> KeySet:
    """The provider's public keys that can verify a signature; others are left out. Raises ValueError where there is
    none.
    """
    listed = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        raise ValueError("its keys are no JSON Web Key Set")  # noqa: TRY004 - as above
    keys = list(_usable(listed[:_MAX_KEYS]))
    if not keys:
        raise ValueError("its key set has no key that can verify a signature")
    return KeySet(keys)


def _usable(listed: list[object]) -> Iterator[Key]:
    for data in listed:
        # `oct` is no public key: whoever could read it here could sign.
        if not isinstance(data, dict) or data.get("kty") not in _KEY_TYPES or data.get("use", "sig") != "sig":
            continue
        if data["kty"] == "RSA" and not _MIN_RSA_BITS <= _rsa_bits(data.get("n")) <= _MAX_RSA_BITS:
            continue
        try:
            yield JWKRegistry.import_key(data)
        except (JoseError, ValueError, TypeError, KeyError):
            continue


def _rsa_bits(modulus: object) -> int:
    return len(modulus) * 6 // 8 * 8 if isinstance(modulus, str) else 0


def _endpoint(document: Mapping[str, object], name: str, oidc: Oidc, *, needed: bool = False) -> str:
    url = document.get(name)
    if url is None and not needed:
        return ""
    schemes = ("https", "http") if oidc.plain else ("https",)
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isprintable() and len(url) <= _MAX_URL_CHARS else None
    except ValueError:
        parts = None
    if not isinstance(url, str) or parts is None or parts.scheme not in schemes or not parts.hostname:
        raise ValueError(f"its configuration has no usable {name}, which must begin with {schemes[0]}://")
    return url


def _client_auth(document: Mapping[str, object], oidc: Oidc) -> str:
    """RFC 8414 section 2: without a word of the provider, it is client_secret_basic."""
    if not oidc.client_secret:
        return "none"
    offered = _words(document, "token_endpoint_auth_methods_supported") or ("client_secret_basic",)
    for method in ("client_secret_basic", "client_secret_post"):
        if method in offered:
            return method
    raise ValueError("its token endpoint takes neither client_secret_basic nor client_secret_post")


def _words(document: Mapping[str, object], name: str) -> tuple[str, ...]:
    found = document.get(name)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()
