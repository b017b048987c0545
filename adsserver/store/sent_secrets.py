"""The secrets of what a response held, for taking them out of what a client says about it (reliability N8).

Called by the fact thread, for NACKs only. What is opened here is let go with the answer: nothing of a secret is kept
between two batches (architecture decision 8).
"""

from collections.abc import Callable, Iterable

from google.protobuf.message import DecodeError

from adsserver.store.contents import ContentMemory
from xdscore.redaction import NO_SECRETS, Secrets, secrets_of
from xdscore.schema import secret_values
from xdscore.snapshot import Content

SecretsOf = Callable[[Iterable[Content]], Secrets | None]
"""Finds the secrets of these contents; None where they cannot be told."""


def nothing_known(_: Iterable[Content]) -> None:
    """For who has no contents: whatever was sent may have held secrets."""


def secrets_in(contents: ContentMemory, sent: Iterable[Content]) -> Secrets | None:
    """The secrets of everything that was sent. None where something of it is not here any more, cannot be opened or
    read, or holds more than can be looked for.

    Whatever holds a secret is kept sealed (resolutions D18): the others are not looked at.
    """
    held = tuple(sent)
    addresses = {content.blob for content in held}
    if contents.missing(addresses):
        return None
    sealed = contents.sealed(addresses)
    if not sealed:
        return NO_SECRETS
    values: set[bytes] = set()
    try:
        for content in held:
            if content.blob in sealed:
                values |= secret_values(contents.any_bytes(content))
    except (KeyError, DecodeError, TypeError, ValueError, RecursionError):  # SealError is a ValueError
        return None
    return secrets_of(values)
