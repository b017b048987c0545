"""The secrets of what a response held, for taking them out of what a client says about it (reliability N8).

Called by the fact thread, for NACKs only. What is opened here is let go with the answer: nothing of a secret is kept
between two batches (architecture decision 8).
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from google.protobuf.message import DecodeError

from adsserver.engine.events import NamedContent
from adsserver.store.reading_time import ReadingTime
from controlplane.clients.foreign_text import NOT_SHOWN, KeptText, nack_text
from xdscore.redaction import NO_SECRETS, Secrets, secrets_of
from xdscore.resource_types import ResourceType
from xdscore.schema import secret_values
from xdscore.snapshot import Content


class SentContents(Protocol):
    """The contents that streams were sent, as far as they are in memory (`contents.ContentMemory`)."""

    def missing(self, addresses: Iterable[bytes]) -> frozenset[bytes]:
        """The given addresses whose bytes are not in memory."""
        ...

    def sealed(self, addresses: Iterable[bytes]) -> frozenset[bytes]:
        """The given addresses whose bytes are kept encrypted (sealed), because they hold secrets (decisions D18)."""
        ...

    def any_bytes(self, content: Content) -> bytes:
        """The bytes of this content, decrypted if need be. Raises KeyError when they are not in memory, SealError when
        they cannot be decrypted.
        """
        ...


def secrets_in(contents: SentContents, held: Iterable[Content]) -> Secrets | None:
    """The secrets in these contents, to be looked for in texts; None when one content cannot be read, or there are too
    many to look for.
    """
    try:
        return secrets_of(value for content in held for value in secret_values(contents.any_bytes(content)))
    except (KeyError, DecodeError, TypeError, ValueError, RecursionError):  # SealError is a ValueError
        return None


class Hearing:
    """Turns the NACK texts of one batch into the texts that are kept, which hold no secrets. A text that many clients
    send about one response is read once. Reading takes from `time`, unless the response held no secrets; when none is
    left, "not shown" is kept in place of the text.
    """

    def __init__(self, contents: SentContents, *, max_bytes: int, time: ReadingTime) -> None:
        self._contents = contents
        self._max_bytes = max_bytes
        self._time = time
        # By the identity of the response's resources, which streams share and the batch holds.
        self._texts: dict[tuple[int, str], KeptText] = {}
        self._responses: dict[int, _Sent] = {}
        # Of one response at a time: they take more memory than all texts.
        self._last: tuple[int, Secrets | None] | None = None

    def kept(self, accountable: str, message: str, kind: ResourceType, resources: tuple[NamedContent, ...]) -> KeptText:
        """What is kept of `message`, a client's words in its NACK of a response with these resources: without secrets.
        `accountable` is the key of the caller whose reading time it takes.
        """
        if not message:
            return nack_text(message, secret=kind.secret, held=None, max_bytes=self._max_bytes)
        key = (id(resources), message)
        text = self._texts.get(key)
        if text is None:
            sent = self._responses.get(id(resources)) or self._look(resources)
            if sent.sealed and not self._time.is_left(accountable):
                # What one may not say any more, another still may.
                return NOT_SHOWN
            began = self._time.now()
            held = self._secrets(sent)
            text = nack_text(message, secret=kind.secret, held=held, max_bytes=self._max_bytes, names=sent.names)
            self._texts[key] = text
            if sent.sealed:
                self._time.spend(accountable, began)
        return text

    def _look(self, resources: tuple[NamedContent, ...]) -> "_Sent":
        addresses = {member.content.blob for member in resources}
        sealed = self._contents.sealed(addresses)
        sent = _Sent(
            id(resources),
            [member.name for member in resources],
            tuple(member.content for member in resources if member.content.blob in sealed),
            gone=bool(self._contents.missing(addresses)),
        )
        self._responses[sent.id] = sent
        return sent

    def _secrets(self, sent: "_Sent") -> Secrets | None:
        if sent.gone:
            return None
        if not sent.sealed:
            return NO_SECRETS
        if self._last is None or self._last[0] != sent.id:
            self._last = (sent.id, secrets_in(self._contents, sent.sealed))
        return self._last[1]


class _Sent(NamedTuple):
    """A response: its `id()`, the names in it, the contents that are encrypted (sealed), and whether the bytes of some
    are not in memory any more.
    """

    id: int
    names: list[str]
    sealed: tuple[Content, ...]
    gone: bool
