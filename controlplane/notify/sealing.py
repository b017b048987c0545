"""Keeps the secrets of channels out of the database's sight: sealed under the keys that are outside of it."""

import secrets

from controlplane.catalog.key_marks import keys_permit
from controlplane.catalog.sealing import SealError, key_ring
from controlplane.catalog.services import Resealed
from controlplane.notify.models import Channel
from controlplane.outside.posting import SECRET_MARK

SECRET_BYTES = 32


def secret_make() -> str:
    """Make a new key with which a webhook channel signs, as the text that is shown to its owner once."""
    return SECRET_MARK + secrets.token_urlsafe(SECRET_BYTES)


def secret_seal(channel: Channel, plaintext: str) -> None:
    """Encrypt a secret and set it on its channel, without saving the channel. Raises KeysForeign where what is stored
    was encrypted with keys that this process does not have.
    """
    keys_permit()
    channel.secret = key_ring().seal(plaintext.encode(), _address(channel))


def channel_secret(channel: Channel) -> bytes:
    """The decrypted key with which a webhook channel signs. Raises SealError, a ValueError, when no configured key
    decrypts it.
    """
    return key_ring().open(bytes(channel.secret), _address(channel))


def secrets_foreign() -> int:
    """The number of channels whose secret no configured key decrypts."""
    ring = key_ring()
    sealed = Channel.objects.exclude(secret=b"").values_list("secret", flat=True)
    return sum(not ring.may_open(bytes(each)) for each in sealed)


def secrets_reseal() -> Resealed:
    """Encrypt with the first configured key the secret of every channel that is encrypted with an older one."""
    ring = key_ring()
    moved = 0
    lost: list[str] = []
    for channel in Channel.objects.exclude(secret=b"").order_by("pk"):
        before = bytes(channel.secret)
        if ring.is_current(before):
            continue
        try:
            after = ring.seal(ring.open(before, _address(channel)), _address(channel))
        except SealError:
            lost.append(channel.name)
        else:
            moved += Channel.objects.filter(pk=channel.pk, secret=before).update(secret=after)
    return Resealed(moved, tuple(lost))


def _address(channel: Channel) -> bytes:
    return f"channel:{channel.public_id}".encode()
