"""Keeps the secrets of authenticator apps out of the database's sight: sealed under the keys that are outside of it."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from controlplane.catalog.key_marks import keys_permit
from controlplane.catalog.sealing import SealError, key_ring
from controlplane.catalog.services import Resealed
from controlplane.factors.models import AuthenticatorApp


def secret_seal(user_id: int, secret: str) -> bytes:
    """The secret of a user's authenticator app, encrypted. Raises KeysForeign where what is stored was encrypted with
    keys that this process does not have.
    """
    keys_permit()
    return key_ring().seal(secret.encode(), _address(user_id))


def secret_open(user_id: int, sealed: bytes) -> str:
    """The decrypted secret. Raises SealError, a ValueError, when no configured key decrypts it."""
    return key_ring().open(sealed, _address(user_id)).decode()


def secret_carry(user_id: int, secret: str) -> str:
    """The encrypted secret as text, for a session: it is no factor before a code of it was right."""
    return urlsafe_b64encode(secret_seal(user_id, secret)).decode()


def secret_carried(user_id: int, text: str) -> str:
    """The secret in a text of `secret_carry`. Raises SealError, a ValueError, where it cannot be opened."""
    return secret_open(user_id, urlsafe_b64decode(text.encode("ascii")))


def secrets_foreign() -> int:
    """The number of authenticator apps whose secret no configured key decrypts."""
    ring = key_ring()
    return sum(not ring.may_open(bytes(each)) for each in AuthenticatorApp.objects.values_list("sealed", flat=True))


def secrets_reseal() -> Resealed:
    """Encrypt with the first configured key the secret of every authenticator app that is encrypted with an older one.
    What cannot be opened is named by its owner.
    """
    ring = key_ring()
    moved = 0
    lost: list[str] = []
    for app in AuthenticatorApp.objects.select_related("user").order_by("pk"):
        before = bytes(app.sealed)
        if ring.is_current(before):
            continue
        try:
            after = ring.seal(ring.open(before, _address(app.user_id)), _address(app.user_id))
        except SealError:
            lost.append(app.user.get_username())
        else:
            moved += AuthenticatorApp.objects.filter(pk=app.pk, sealed=before).update(sealed=after)
    return Resealed(moved, tuple(lost))


def _address(user_id: int) -> bytes:
    return f"authenticator-app:{user_id}".encode()
