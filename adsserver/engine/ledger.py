"""What each response of one type held, by nonce, until the client answers it; and when the next may be written.

One outstanding push per (stream, type); newer states coalesce behind it. Answers to a subscription and the EDS re-send
are exempt, up to a number of outstanding nonces (decisions C5). A client that stays silent never blocks a stream for
good (B13).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from adsserver.engine.body import EMPTY_BODY, Body
from adsserver.engine.events import NamedContent
from xdscore.errors import ResourceError
from xdscore.limits import Limits
from xdscore.snapshot import Content


@dataclass(slots=True, eq=False)
class Entry:
    """One response.

    `push`: nobody asked for it. `isolating`: it re-sends suspects of a NACK. `before`: of names whose copy the client
    had acknowledged, that copy (absent: it never acknowledged any). `body`: the full state, where the type has one.
    `changed`: resources whose content this client was not told before. `unresolved`: names said to be aliases of
    nothing (E2). `passed`: the client answered a later response. `heal`: it holds nothing but acknowledged content in
    place of what the client refused (F17a). `beats`: of what it says, without content, that it lives on (G2); then it
    holds nothing else.
    """

    version: str
    resources: tuple[NamedContent, ...]
    changed: tuple[NamedContent, ...]
    errors: tuple[ResourceError, ...] = ()
    removed: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    push: bool = False
    isolating: bool = False
    heal: bool = False
    beats: tuple[NamedContent, ...] = ()
    before: dict[str, Content] = field(default_factory=dict)
    body: Body = EMPTY_BODY
    nonce: str = ""
    sent_at_s: float = 0.0
    passed: bool = False
    _contents: dict[str, Content] | None = None

    @property
    def contents(self) -> Mapping[str, Content]:
        """The content that this response held, by resource name."""
        if self._contents is None:
            self._contents = {member.name: member.content for member in self.resources}
        return self._contents

    def sent_after(self, other: "Entry") -> bool:
        """Whether this response was written later than `other`; nonces of a stream count up."""
        return int(self.nonce) > int(other.nonce)


class Ledger:
    """The unanswered responses of one (stream, type), oldest first, and the nonce sent last.

    Of the limits: `unanswered_responses` at once, and `silent_client_s` after which a silent client is passed.
    """

    __slots__ = ("_max_outstanding", "_outstanding", "_silent_s", "last_acknowledged", "last_nonce")

    def __init__(self, limits: Limits) -> None:
        self._max_outstanding = limits.unanswered_responses
        self._silent_s = limits.silent_client_s
        self._outstanding: dict[str, Entry] = {}
        self.last_nonce = ""
        self.last_acknowledged = False

    @property
    def outstanding(self) -> tuple[Entry, ...]:
        """The responses that the client has not answered, oldest first."""
        return tuple(self._outstanding.values())

    @property
    def idle(self) -> bool:
        """Whether the client answered every response."""
        return not self._outstanding

    @property
    def oldest_sent_s(self) -> float:
        """When the oldest response was sent that the client will still answer; inf when there is none."""
        return min((entry.sent_at_s for entry in self._outstanding.values() if not entry.passed), default=inf)

    def is_outstanding(self, nonce: str) -> bool:
        """Whether the response with this nonce was sent and not yet answered."""
        return nonce in self._outstanding

    def sent(self, entry: Entry, nonce: str, now: float) -> None:
        """Take note of a response; the oldest is forgotten where the client has been silent about too many."""
        if len(self._outstanding) >= self._max_outstanding:
            del self._outstanding[next(iter(self._outstanding))]
        entry.nonce, entry.sent_at_s = nonce, now
        self._outstanding[nonce] = entry
        self.last_nonce, self.last_acknowledged = nonce, False

    def settle(self, nonce: str, *, acknowledged: bool) -> Entry | None:
        """The outstanding response of this nonce, which is hereby answered; None when there is none (N1)."""
        entry = self._outstanding.pop(nonce, None)
        if entry is None:
            return None
        for other in self._outstanding.values():
            # Clients answer in order; one that answered a later response will not answer this one.
            other.passed = other.passed or entry.sent_after(other)
        if nonce == self.last_nonce:
            self.last_acknowledged = acknowledged
        return entry

    def newest_with(self, name: str) -> Entry | None:
        """The last unanswered response that held a resource of this name; None when there is none."""
        for entry in reversed(self._outstanding.values()):
            if name in entry.contents:
                return entry
        return None

    def push_due_s(self) -> float:
        """From when on a push may be written: at once (0), or when the client was silent for too long (B13)."""
        if not self._outstanding:
            return 0.0
        due = (self._free_at(entry) for entry in self._outstanding.values() if entry.push)
        return max(self.answer_due_s(), max(due, default=0.0))

    def answer_due_s(self) -> float:
        """When a response that the client asked for may be written: at once (0), or at this time in seconds."""
        if len(self._outstanding) < self._max_outstanding:
            return 0.0
        return self._free_at(next(iter(self._outstanding.values())))

    def _free_at(self, entry: Entry) -> float:
        return 0.0 if entry.passed else entry.sent_at_s + self._silent_s
