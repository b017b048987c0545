"""What a provider says of itself: believed where it fits the issuer, refused with a sentence where nobody could sign
in.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from controlplane.config.oidc import LocalSignIn, Oidc
from controlplane.oidc.discovery import configuration_url, keys_of, metadata_of
from tests.unit.oidc.test_claims import ANYTHING

ISSUER = "https://id.example.org/realms/staff"
SOUND: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/certs",
}


def oidc(issuer: str = ISSUER, secret: str = "s") -> Oidc:
    return Oidc(issuer, "parley", secret, ("openid",), "groups", (), "ID", LocalSignIn.EVERYBODY)


def test_metadata__the_least_there_can_be__has_no_other_endpoints() -> None:
    found = metadata_of(SOUND, oidc())

    assert found.token_endpoint == f"{ISSUER}/token"
    assert (found.userinfo_endpoint, found.end_session_endpoint, found.names_issuer) == ("", "", False)
    assert found.client_auth == "client_secret_basic"
    assert not any(each.startswith("HS") or each == "none" for each in found.algorithms)


@pytest.mark.parametrize(
    ("different", "said"),
    [
        ({"issuer": f"{ISSUER}/"}, "says issuer"),
        ({"issuer": None}, "says issuer"),
        ({"authorization_endpoint": None}, "no usable authorization_endpoint"),
        ({"token_endpoint": "http://id.example.org/token"}, "no usable token_endpoint"),
        ({"jwks_uri": "file:///etc/passwd"}, "no usable jwks_uri"),
        ({"jwks_uri": "https://"}, "no usable jwks_uri"),
        ({"userinfo_endpoint": 7}, "no usable userinfo_endpoint"),
        ({"end_session_endpoint": "javascript:alert(1)"}, "no usable end_session_endpoint"),
        ({"token_endpoint": f"https://id.example.org/{'x' * 2_000}"}, "no usable token_endpoint"),
        ({"token_endpoint": "https://[::1/token"}, "no usable token_endpoint"),
        ({"id_token_signing_alg_values_supported": ["HS256", "none"]}, "it signs by HS256, none only"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE, and not by S256"),
        ({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}, "takes neither client_secret_basic"),
    ],
)
def test_metadata__that_nobody_could_sign_in_by__is_refused_with_a_sentence(
    different: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        metadata_of({**SOUND, **different}, oidc())


def test_metadata__plain_endpoints__are_for_a_provider_on_this_machine() -> None:
    local = "http://127.0.0.1:8080"
    document = {
        "issuer": local,
        "authorization_endpoint": f"{local}/a",
        "token_endpoint": f"{local}/t",
        "jwks_uri": f"{local}/k",
    }

    assert metadata_of(document, oidc(local)).jwks_uri == f"{local}/k"


def test_metadata__of_a_public_client__sends_no_secret() -> None:
    assert metadata_of(SOUND, oidc(secret="")).client_auth == "none"


@pytest.mark.parametrize("issuer", ["https://id.example.org", "https://id.example.org/"])
def test_configuration_url__issuer_with_or_without_a_slash__has_one(issuer: str) -> None:
    assert configuration_url(oidc(issuer)) == "https://id.example.org/.well-known/openid-configuration"


def test_keys__that_can_verify_a_signature__are_kept_and_others_left_out() -> None:
    sound: list[Any] = [RSAKey.generate_key(2048, {"kid": "a"}), ECKey.generate_key("P-256", {"kid": "b"})]
    sound.append(OKPKey.generate_key("Ed25519", {"kid": "c"}))
    listed = [
        *[key.as_dict(private=False) for key in sound],
        OctKey.generate_key(256, {"kid": "shared"}).as_dict(private=True),
        {**RSAKey.generate_key(2048, {"kid": "enc"}).as_dict(private=False), "use": "enc"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "weak"},
        {"kty": "RSA", "n": "x" * 30_000, "e": "AQAB", "kid": "huge"},
        {"kty": "EC", "crv": "P-256"},
        {"kty": "LMS", "kid": "new"},
        "nothing",
    ]

    assert [key.kid for key in keys_of({"keys": listed})] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "document", [None, [], {}, {"keys": {}}, {"keys": []}, {"keys": [{"kty": "oct", "k": "AAAA"}]}]
)
def test_keys__without_one_that_can__are_refused_with_a_sentence(document: object) -> None:
    with pytest.raises(ValueError, match="its key"):
        keys_of(document)


@given(st.dictionaries(st.sampled_from([*SOUND, "keys", "id_token_signing_alg_values_supported"]), ANYTHING))
def test_documents__whatever_they_hold__are_read_or_refused(document: dict[str, object]) -> None:
    for read in (lambda: metadata_of({**SOUND, **document}, oidc()), lambda: keys_of(document)):
        with suppress(ValueError):
            read()
