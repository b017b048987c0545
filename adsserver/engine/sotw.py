"""State of the world: how a DiscoveryRequest is read, and what a response of a type that comes in parts looks like."""

from collections.abc import Collection, Iterable
from math import inf

from adsserver.engine.by_name import ByName
from adsserver.engine.change import Change
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import Fact, SotwRequest, Subscribed, Violated
from adsserver.engine.ledger import Entry
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import Subscription, is_listed, listed
from adsserver.engine.substream import Later, SubStream
from adsserver.engine.told import Told
from adsserver.engine.versions import mark, version_text
from xdscore.resource_types import ResourceType

# decisions D32: a repeated ask makes a 40-byte request fetch everything; those of one second are answered together.
REPEAT_PAUSE_S = 1.0


class SotwByName(ByName):
    """A type whose SotW responses hold any part of the state.

    That something is gone cannot be said but by an error (D1, F5). No client is told of a ttl in such a type: when it
    runs out, Envoy crashes (G3).
    """

    __slots__ = ("_last_repeat_s", "_repeat_due_s", "_repeated", "_total")

    def __init__(self, kind: ResourceType, settings: EngineSettings, *, heals: bool) -> None:
        super().__init__(kind, settings, heals=heals)
        # The sum of the marks of all this client was told: the version of its state, also of what a response leaves out
        # (B8).
        self._total = 0
        self._repeated: frozenset[str] = frozenset()
        self._repeat_due_s = inf
        self._last_repeat_s = -inf

    def removed_by(self, _losses: Iterable[Change]) -> tuple[str, ...]:
        """No name is listed as removed: a SotW response has no such field."""
        return ()

    def unresolved_by(self, _losses: Iterable[Change]) -> tuple[str, ...]:
        """No name is listed as an alias: the type that has aliases is asked for in delta alone."""
        return ()

    def version_after(self, changes: Iterable[Change], _view: ClientView) -> str:
        """The version of everything this client was told; of a farewell, only in the response that says it (F7)."""
        farewells = 0
        for change in changes:
            now = mark(change.name, change.now)
            farewells += now if change.farewell else 0
            self._total += (0 if change.farewell else now) - mark(change.name, change.before)
        return version_text(self._total + farewells)

    def subscribe(self, subscription: Subscription, asked: frozenset[str]) -> None:
        """Subscribe, and take what the client left out of the sum that is the version of its state (B8)."""
        current = self.subscription
        left = (current.names - subscription.names) | self._memory.members_of(current.globs - subscription.globs)
        stay = current.names & subscription.names
        if len(left) > len(stay) and not (current.globs or subscription.globs):
            # Of 10,000 names it is counted what stays, where that is less.
            super().subscribe(subscription, asked)
            self._total = sum(mark(name, self._told(name)) for name in stay)
            return
        before = {name: self._told(name) for name in left}
        super().subscribe(subscription, asked)
        self._total += sum(mark(name, self._told(name)) - mark(name, told) for name, told in before.items())

    def says_gone(self, name: str, has_copy: bool) -> bool:  # noqa: ARG002  of no name
        """No name is mentioned when it is gone: in these types absence means nothing (D1)."""
        return False

    def count_over(self, name: str, before: Told) -> None:
        """What was told of a name, `before`, is over without a word: it is not part of the state any more (B8)."""
        self._total -= mark(name, before)

    def _arrive(self, view: ClientView) -> set[str]:
        """Stand on `view`; the names of which something may have to be told.

        What is over without a word is so at once: no response says it, but each has its version (I8).

        Of collections that have members now, that is, and of members of which there is nothing to say any more.
        """
        new = self._memory.view is not view
        names = super()._arrive(view)
        subscription = self.subscription
        if not new or not subscription.globs:
            return names
        viewer = self._viewer()
        plain = subscription.names.difference(glob.name for glob in subscription.globs)
        return {name for name in names if name in plain or self._look_at(view, viewer, name) is not None}

    def ask_again(self, now: float) -> None:
        """The client repeats a request that it had acknowledged: it waits for the resources again (B7)."""
        # A collection that has members is answered by them.
        members = frozenset(self._memory.members_of(self.subscription.globs))
        self._repeated = self._unsaid(self.subscription.names, members) | members
        self._repeat_due_s = min(self._repeat_due_s, max(now, self._last_repeat_s + REPEAT_PAUSE_S))

    @property
    def dirty(self) -> bool:
        """Whether there may be a response to write; cheap, and true a little too often."""
        return self._repeat_due_s < inf or super().dirty

    def make(self, now: float, *, gently: bool) -> Entry | Later:
        """The next answer or addition; a repeated request is answered like a new one, once its pause is over (B7)."""
        if self._repeat_due_s <= now:
            self._repeat_due_s, self._last_repeat_s = inf, now
            self.send_again(self._repeated)
        response = super().make(now, gently=gently)
        if isinstance(response, Later):
            return Later(min(response.due_s, self._repeat_due_s))
        if self._repeat_due_s < inf:
            # What is sent meanwhile need not be sent once more for it.
            said = response.contents.keys() | {error.name for error in response.errors}
            self._repeated = self._unsaid(self._repeated, said)
            self._repeat_due_s = self._repeat_due_s if self._repeated else inf
        return response

    def _unsaid(self, names: frozenset[str], said: Collection[str]) -> frozenset[str]:
        """What is left of `names`, names of collections included, once these were `said`."""
        globs = self.subscription.globs
        answered = {glob.name for glob in globs if not self._memory.members_of((glob,)).isdisjoint(said)}
        return names.difference(said, answered)


def receive(stream: SubStream, request: SotwRequest, now: float) -> tuple[Fact, ...]:
    """Read a request: first what it says about a response, then what it asks for (B6)."""
    ledger = stream.ledger
    facts: tuple[Fact, ...] = ()
    repeats = False
    if request.nonce and ledger.last_nonce:
        outstanding = ledger.is_outstanding(request.nonce)
        facts = stream.answered(request.nonce, request.nack)
        if request.nonce != ledger.last_nonce:
            # B3: stale. It was written before our last response was read; the client's next request repeats its names.
            return facts
        repeats = not outstanding and ledger.last_acknowledged and request.nack is None
    elif request.nack is not None:
        # B4: a nonce of another stream, or none. Nothing of ours can have been rejected (N1).
        facts = (Violated("N1", "an error was reported for a response that this stream never sent"),)
    if len(request.names) > stream.settings.limits.names_per_type:
        return (*facts, _too_many(stream, len(request.names)))
    current = stream.subscription
    if stream.asked_before and is_listed(stream.kind, current, request.names):
        if repeats and isinstance(stream, SotwByName) and not current.empty:
            stream.ask_again(now)
        return facts
    stream.asked_before = True
    wanted = listed(stream.kind, current, request.names)
    stream.subscribe(wanted, wanted.names - current.names)
    return (*facts, Subscribed(stream.kind, wanted.wildcard, wanted.names))


def _too_many(stream: SubStream, count: int) -> Violated:
    limit = stream.settings.limits.names_per_type
    return Violated("C11", f"{count} {stream.kind.title} names in one request; at most {limit} are allowed")
