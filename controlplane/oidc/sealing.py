"""Keeps the identity provider's tokens out of the database's sight: sealed under the keys that are outside of it."""

import json
from dataclasses import astuple

from controlplane.accounts.models import ProviderSignIn
from controlplane.catalog.key_marks import keys_permit
from controlplane.catalog.sealing import SealError, key_ring
from controlplane.catalog.services import Resealed
from controlplane.oidc.provider import Tokens


def tokens_seal(key: str, tokens: Tokens) -> bytes:
    """The tokens of the sign-in with this key, encrypted. Raises KeysForeign where what is stored was encrypted with
    keys that this process does not have.
    """
    keys_permit()
    return key_ring().seal(json.dumps(astuple(tokens)).encode(), _address(key))


def tokens_open(sign_in: ProviderSignIn) -> Tokens:
    """The decrypted tokens of a sign-in. Raises SealError, a ValueError, when no configured key decrypts them."""
    return Tokens(*json.loads(key_ring().open(bytes(sign_in.sealed), _address(sign_in.key))))


def tokens_reseal() -> Resealed:
    """Encrypt with the first configured key the tokens of every sign-in that are encrypted with an older one. Those
    that no key decrypts are of no use to anybody: their sign-ins end, and nothing is lost.
    """
    ring = key_ring()
    moved = 0
    for sign_in in ProviderSignIn.objects.order_by("pk"):
        before = bytes(sign_in.sealed)
        if ring.is_current(before):
            continue
        try:
            after = ring.seal(ring.open(before, _address(sign_in.key)), _address(sign_in.key))
        except SealError:
            sign_in.delete()
        else:
            moved += ProviderSignIn.objects.filter(pk=sign_in.pk, sealed=before).update(sealed=after)
    return Resealed(moved, ())


def _address(key: str) -> bytes:
    return f"provider-sign-in:{key}".encode()
