"""An id token, judged at a time that the test chooses: algorithms, keys, and the bounds of each time."""

from typing import Any, Final

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey

from controlplane.oidc.claims import CLOCK_SKEW_S, Disbelieved, KeyUnknown, id_token_claims
from controlplane.oidc.discovery import ALGORITHMS
from tests.unit.oidc.test_discovery import ISSUER, oidc

NOW: Final = 1_800_000_000
CLAIMS: Final = {"iss": ISSUER, "aud": "parley", "sub": "s-1", "iat": NOW, "exp": NOW + 300, "nonce": "n"}
RSA: Final = RSAKey.generate_key(2048, {"kid": "rsa"})
SHARED: Final = OctKey.generate_key(512, {"kid": "shared"})
EVERY: Final = ("none", "HS256", "HS384", "HS512", *ALGORITHMS)


def judged(token: object, keys: list[Any], *, now: float = NOW, algorithms: tuple[str, ...] = ALGORITHMS) -> object:
    return id_token_claims(token, keys=KeySet(keys), algorithms=algorithms, oidc=oidc(), now=now, nonce="n")


def signed(key: Any, alg: str, **different: object) -> str:
    return jwt.encode({"alg": alg, "kid": key.kid}, {**CLAIMS, **different}, key, algorithms=[alg])


@pytest.mark.parametrize(
    ("alg", "key"),
    [
        *[(alg, RSA) for alg in ALGORITHMS if alg[:2] in ("RS", "PS")],
        ("ES256", ECKey.generate_key("P-256", {"kid": "ec"})),
        ("ES384", ECKey.generate_key("P-384", {"kid": "ec"})),
        ("ES512", ECKey.generate_key("P-521", {"kid": "ec"})),
        ("EdDSA", OKPKey.generate_key("Ed25519", {"kid": "okp"})),
        ("Ed25519", OKPKey.generate_key("Ed25519", {"kid": "okp"})),
    ],
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")  # EdDSA without its curve's name
def test_token__signed_by_an_algorithm_of_the_list__is_believed_and_by_a_cut_signature_not(alg: str, key: Any) -> None:
    token = signed(key, alg)

    assert judged(token, [key]) == CLAIMS
    with pytest.raises(Disbelieved):
        judged(token[:-8], [key])


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
def test_token__signed_by_a_shared_key__is_refused_even_where_that_key_is_known(alg: str) -> None:
    token = signed(SHARED, alg)

    with pytest.raises(Disbelieved):
        judged(token, [SHARED, RSA])
    # What refuses it is the list alone: with another one it would be believed.
    assert judged(token, [SHARED, RSA], algorithms=EVERY) == CLAIMS


def test_token__by_an_algorithm_that_the_provider_does_not_offer__is_refused() -> None:
    with pytest.raises(Disbelieved):
        judged(signed(RSA, "RS384"), [RSA], algorithms=("RS256",))


def test_token__by_a_key_that_is_not_listed__might_be_by_a_new_one() -> None:
    other = RSAKey.generate_key(2048, {"kid": "new"})
    renamed = RSAKey.import_key({**other.as_dict(private=True), "kid": "rsa"})

    for key in (other, renamed):
        with pytest.raises(KeyUnknown):
            judged(signed(key, "RS256"), [RSA])


@pytest.mark.parametrize(
    ("different", "believed"),
    [
        ({"exp": NOW - CLOCK_SKEW_S + 1}, True),
        ({"exp": NOW - CLOCK_SKEW_S}, False),
        ({"exp": NOW - CLOCK_SKEW_S - 1}, False),
        ({"iat": NOW + CLOCK_SKEW_S}, True),
        ({"iat": NOW + CLOCK_SKEW_S + 1}, False),
        ({"nbf": NOW + CLOCK_SKEW_S}, True),
        ({"nbf": NOW + CLOCK_SKEW_S + 1}, False),
        ({"exp": float("nan")}, False),
        ({"exp": True}, False),
        ({"sub": "x" * 255}, True),
        ({"sub": "x" * 256}, False),
        ({"aud": ["parley"]}, True),
        ({"aud": ["parley", "else"], "azp": "parley"}, True),
        ({"aud": []}, False),
        ({"aud": {"parley": 1}}, False),
        ({"iss": [ISSUER]}, False),
        ({"nonce": ["n"]}, False),
    ],
)
def test_token__at_below_and_above_each_bound__is_believed_or_not(different: dict[str, object], believed: bool) -> None:
    token = signed(RSA, "RS256", **different)

    if believed:
        assert judged(token, [RSA]) == {**CLAIMS, **different}
        return
    with pytest.raises(Disbelieved):
        judged(token, [RSA])


@pytest.mark.parametrize("token", [None, "", 7, "x", "a.b", "a.b.c", "." * 70_000, b"a.b.c", "\u00e9.\u00e9.\u00e9"])
def test_token__that_is_none__is_refused(token: object) -> None:
    with pytest.raises(Disbelieved):
        judged(token, [RSA])
