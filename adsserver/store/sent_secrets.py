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
    """The contents that streams were sent, as `contents.ContentMemory` has them."""

    def missing(self, addresses: Iterable[bytes]) -> frozenset[bytes]:
        """The addresses whose bytes are not in memory."""
        ...

    def sealed(self, addresses: Iterable[bytes]) -> frozenset[bytes]:
        """The addresses whose bytes are kept sealed, because they hold secrets (decisions D18)."""
        ...

    def any_bytes(self, content: Content) -> bytes:
        """The bytes of this content, opened if they are sealed. Raises KeyError and SealError."""
        ...


def secrets_in(contents: SentContents, held: Iterable[Content]) -> Secrets | None:
    """The secrets in these sealed contents; None where one cannot be opened or read, or there are more than can be
    looked for.
    """
    try:
        return secrets_of(value for content in held for value in secret_values(contents.any_bytes(content)))
    except (KeyError, DecodeError, TypeError, ValueError, RecursionError):  # SealError is a ValueError
        return None


class Hearing:
    """Turns the NACK texts of one batch into the texts that are kept. A text that many clients send about one response
    is read once. A text for whose reading no `time` is left is not shown; texts about responses without secrets cost no
    time.
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
        """The text to keep of a client's NACK of this response. `accountable` is the key of the caller whose reading
        time it takes.
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
    """A response: the names in it, the contents that are sealed, and whether the bytes of some are not in memory any
    more.
    """

    id: int
    names: list[str]
    sealed: tuple[Content, ...]
    gone: bool
