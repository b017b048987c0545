"""One resource type on one stream: subscription, ledger and what the client was told; shared by both variants.

`sotw` and `delta` feed it requests, `session` asks it for responses in order. Each response is decided when it can be
written, from what is current then, so that nothing queues and publishes coalesce by construction (A8).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from adsserver.engine.client_view import ClientView
from adsserver.engine.events import Acknowledged, Fact, Nack, NamedContent, Rejected, Violated
from adsserver.engine.holdings import Holdings
from adsserver.engine.ledger import Entry, Ledger
from adsserver.engine.memory import Memory
from adsserver.engine.refusals import is_refused
from adsserver.engine.rejection import evidence_of, turned_against
from adsserver.engine.renewals import Renewals
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import Subscription, memory_of
from adsserver.engine.told import ABSENT, Absent, Told
from xdscore.errors import ResourceError
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing to write before `due_s`; inf: nothing at all, until something happens."""

    due_s: float


NOTHING = Later(inf)


class SubStream(ABC):
    """The part of a stream that concerns one type.

    `view` is what is current, which the client may not have been told yet. `too_large_bytes`: of a state that is not
    sent because no client could read it (F24); 0 at all other times. `heals`: the client may have dropped what it
    refused, and is sent again what it had acknowledged before (F17a). `unheard`: what the client has may be something
    else since its last request, though it may be sent nothing: what it refused is current no more, or is so again, or
    a collection is answered by members that it has. `renewals`: when that is renewed that the client holds for a
    limited time; None where it is told of no ttl. `expires`: whether it may hold anything like that.
    """

    __slots__ = (
        "_memory",
        "asked_before",
        "expires",
        "heals",
        "kind",
        "ledger",
        "losing_since_s",
        "renewals",
        "settings",
        "spelled",
        "subscription",
        "too_large_bytes",
        "unheard",
        "view",
    )

    def __init__(
        self, kind: ResourceType, settings: EngineSettings, *, heals: bool, renewals: Renewals | None = None
    ) -> None:
        self.kind = kind
        self.settings = settings
        self.heals = heals
        self.renewals = renewals
        self.expires = False
        self.subscription = Subscription()
        # H1: by canonical name, how the client writes it, where it writes it otherwise.
        self.spelled: Mapping[str, str] = {}
        self.asked_before = False
        self.ledger = Ledger(settings.limits)
        self.view: ClientView | Absent = ABSENT
        self._memory = Memory(settings.public_url)
        self.losing_since_s = inf
        self.too_large_bytes = 0
        self.unheard = False

    @property
    def name_bytes(self) -> int:
        """The memory of the names that the client made this stream remember, in bytes."""
        spelled = memory_of(self.spelled.values()) if self.spelled else 0
        return self.subscription.name_bytes + spelled

    def show(self, view: ClientView) -> None:
        """Take in that this view is current from now on."""
        before, self.view = self.view, view
        if view.expiring and self.renewals is not None:
            self.expires = True
            self.renewals.look_again()
        if before is not view and isinstance(before, ClientView) and self._memory:
            self.unheard = self.unheard or any(
                is_refused(before, name, state) is not is_refused(view, name, state)
                for name, state in self._memory.refusals.items()
            )

    @property
    @abstractmethod
    def dirty(self) -> bool:
        """Whether there may be something to write; cheap, and true a little too often."""

    @abstractmethod
    def make(self, now: float, *, gently: bool) -> Entry | Later:
        """The next answer or addition.

        `gently`: other types have something to say first before this one takes anything away.
        """

    @abstractmethod
    def take_away(self, now: float) -> Entry | Later:
        """The next response that takes something away; asked for when nothing is left to add on the stream (I1)."""

    def renew(self, now: float) -> Entry | Later:  # noqa: ARG002  where nothing is held for a limited time
        """The next response that renews what would run out otherwise (G2, G3); asked for when nothing else is left to
        say on the stream.
        """
        return NOTHING

    def _renewal_refused(self, entry: Entry) -> None:  # noqa: ARG002
        """The client refused a response of heartbeats, which delta alone has."""
        raise AssertionError

    @abstractmethod
    def subscribe(self, subscription: Subscription, asked: frozenset[str]) -> None:
        """The client is subscribed to this from now on, and waits for an answer about the names in `asked`."""

    @abstractmethod
    def send_again(self, names: frozenset[str]) -> None:
        """Send these names once more although the client was told them (I3, B7); not what it refused."""

    @abstractmethod
    def needed(self) -> Iterator[Content]:
        """Content that the client acknowledged and may be sent again, whether or not a snapshot still has it: what it
        had of names that it was, or is about to be, sent anew (F17, F17a).
        """

    @abstractmethod
    def state(self) -> tuple[tuple[NamedContent, ...], tuple[ResourceError, ...]]:
        """All that the client was told and did not refuse: resources and errors, each by name."""

    @abstractmethod
    def holdings(self, *, tells: bool) -> Holdings:
        """What the client has of each name (truth.md H1). `tells`: whether it is told errors."""

    @abstractmethod
    def _acknowledged(self, entry: Entry) -> None:
        """Take in that the client acknowledged this response."""

    @abstractmethod
    def _new_to_client(self, entry: Entry) -> tuple[NamedContent, ...]:
        """What of this response differs from what the client acknowledged last (reliability N2)."""

    @abstractmethod
    def _rejected(
        self, entry: Entry, nack: Nack, changed: tuple[NamedContent, ...], turned: tuple[NamedContent, ...]
    ) -> tuple[NamedContent, ...]:
        """The client rejected this response, of which `changed` was new to it, and `turned` is what it took before and
        refuses now; gives back whom of `changed` the NACK blames. What it took before stays what it has: there is
        nothing else to go back to, and in a full state absence would take it away (B12, D1).
        """

    @abstractmethod
    def _had(self, entry: Entry, name: str) -> Told:
        """What the client had acknowledged of this name before this response, on this stream."""

    @property
    @abstractmethod
    def _heals_next(self) -> bool:
        """Whether something that the client refused is about to be replaced by what it had acknowledged (F17a)."""

    def answered(self, nonce: str, nack: Nack | None) -> tuple[Fact, ...]:
        """The client answers a response: an ACK or, only with an error, a NACK (B2). Versions prove nothing."""
        entry = self.ledger.settle(nonce, acknowledged=nack is None)
        if entry is None:
            # N1: a NACK counts only for an outstanding nonce.
            return (
                (Violated("N1", "an error was reported for a response that is not outstanding"),)
                if nack is not None
                else ()
            )
        if entry.beats:
            # G5: an answer like any other, that proves nothing of any content.
            if nack is None:
                return ()
            self._renewal_refused(entry)
            return (Violated("G2", "the client refused to hear that what it holds lives on"),)
        if nack is None:
            self._acknowledged(entry)
            return (
                Acknowledged(
                    self.kind, nonce, entry.version, entry.resources, entry.errors, entry.removed, heal=entry.heal
                ),
            )
        changed = self._new_to_client(entry)
        turned = turned_against(self.kind, entry, changed, nack)
        evidence = evidence_of(entry, changed, turned)
        before = {member.name: self._had(entry, member.name) for member in changed}
        suspects = self._rejected(entry, nack, changed, turned)
        kept = tuple(
            NamedContent(member.name, content)
            for member in suspects
            if isinstance(content := before.get(member.name, ABSENT), Content) and content.blob
        )
        return (
            Rejected(
                self.kind,
                nonce,
                entry.version,
                nack,
                entry.resources,
                (*suspects, *turned),
                evidence,
                kept=kept,
                healing=bool(kept) and self._heals_next,
            ),
        )
