"""The secrets of what a response held, for taking them out of what a client says about it (reliability N8).

Called by the fact thread, for NACKs only. What is opened here is let go with the answer: nothing of a secret is kept
between two batches (architecture decision 8).
"""

from collections.abc import Callable, Iterable
from typing import Final

from google.protobuf.message import DecodeError

from adsserver.engine.events import NamedContent
from adsserver.store.contents import ContentMemory
from controlplane.clients.foreign_text import KeptText, nack_text
from xdscore.redaction import NO_SECRETS, Secrets, secrets_of
from xdscore.resource_types import ResourceType
from xdscore.schema import secret_values
from xdscore.snapshot import Content

# Of one batch: so many texts about secrets are read, and the secrets of so many responses. That is some seconds of the
# thread at worst, which must also say that the process lives. What is said beyond them is withheld.
MAX_READINGS: Final = 256

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


class Hearing:
    """Turns what clients say, in one batch, into what is kept of it. What many say of one response is read once."""

    def __init__(self, secrets_of: SecretsOf, *, max_bytes: int) -> None:
        self._secrets_of = secrets_of
        self._max_bytes = max_bytes
        self._left = MAX_READINGS
        # By the identity of the response's resources, which streams share and the batch holds.
        self._texts: dict[tuple[int, str], KeptText] = {}
        self._harmless: dict[int, list[str]] = {}
        # Of one response at a time: they take more memory than all texts.
        self._last: tuple[int, Secrets | None, list[str]] | None = None

    def kept(self, message: str, kind: ResourceType, resources: tuple[NamedContent, ...]) -> KeptText:
        """The words of a client about this response as they are kept."""
        key = (id(resources), message)
        text = self._texts.get(key)
        if text is None:
            held, names = self._held(resources)
            text = self._texts[key] = nack_text(
                message, secret=kind.secret, held=held, max_bytes=self._max_bytes, names=names
            )
        return text

    def _held(self, resources: tuple[NamedContent, ...]) -> tuple[Secrets | None, list[str]]:
        """The secrets to look for, and the names of the resources."""
        sent = id(resources)
        if sent in self._harmless:
            return NO_SECRETS, self._harmless[sent]
        if self._left <= 0:
            return None, []
        if self._last is None or self._last[0] != sent:
            names = [member.name for member in resources]
            secrets = self._secrets_of(member.content for member in resources)
            if secrets == NO_SECRETS:
                self._harmless[sent] = names
                return NO_SECRETS, names
            self._left -= 1
            self._last = (sent, secrets, names)
        self._left -= 1
        return self._last[1:]
