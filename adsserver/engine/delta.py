"""Incremental xDS: how a DeltaDiscoveryRequest is read, and what a loss looks like."""

from collections.abc import Iterable, Mapping, Sequence

from adsserver.engine.by_name import ByName
from adsserver.engine.change import Change
from adsserver.engine.client_view import ClientView
from adsserver.engine.events import DeltaRequest, Fact, NamedContent, Subscribed, Violated
from adsserver.engine.ledger import Entry
from adsserver.engine.name_state import DOUBTFUL
from adsserver.engine.refusals import is_refused
from adsserver.engine.renewals import Renewals, interval_s
from adsserver.engine.settings import EngineSettings
from adsserver.engine.subscription import WILDCARD, edited, legacy_wildcard
from adsserver.engine.substream import NOTHING, Later
from adsserver.engine.told import Absent, same
from xdscore.errors import ResourceError, StatusCode
from xdscore.resource_types import DeltaMissing, ResourceType
from xdscore.snapshot import Content
from xdscore.xdstp import glob_of


class DeltaByName(ByName):
    """One type on a delta stream: how a loss, a kept copy and a version are written in a DeltaDiscoveryResponse."""

    __slots__ = ("_beats", "_to_renew")

    def __init__(self, kind: ResourceType, settings: EngineSettings, *, heals: bool, renewals: Renewals) -> None:
        super().__init__(kind, settings, heals=heals, renewals=renewals)
        # What is due, and does not fit into one response.
        self._to_renew: Sequence[str] = ()
        # Whether the client takes heartbeats. Who refused one is sent the content again instead.
        self._beats = True

    def removed_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """What the client holds of ours, and what it asked for and cannot have.

        The latter only where the type allows it (E2, F12, F13, T10). Not what the client goes on with.
        """
        return tuple(loss.name for loss in losses if self._is_removed(loss))

    def unresolved_by(self, losses: Iterable[Change]) -> tuple[str, ...]:
        """What the client asked for and cannot have, where the type says that by an alias of nothing (E2)."""
        how = DeltaMissing.ENTRY_AND_ALIAS
        return tuple(loss.name for loss in losses if not self._has_copy(loss) and self._is_answered_by(how, loss))

    def _is_removed(self, loss: Change) -> bool:
        if self._has_copy(loss):
            # What passes by itself takes nothing away (F14, F18a).
            return _code(loss) not in {StatusCode.UNAVAILABLE, StatusCode.INTERNAL}
        return isinstance(loss.now, Absent) or self._is_answered_by(DeltaMissing.ENTRY_AND_REMOVAL, loss)

    def _has_copy(self, loss: Change) -> bool:
        return isinstance(loss.before, Content) or self._memory[loss.name].copy is not None

    def _is_answered_by(self, how: DeltaMissing, loss: Change) -> bool:
        """Whether the client is told in this way that there is no such name. What cannot be read now may exist."""
        if self.kind.delta_missing is not how or _code(loss) is StatusCode.UNAVAILABLE:
            return False
        return loss.forced or isinstance(loss.before, Absent)

    def says_gone(self, name: str, has_copy: bool) -> bool:
        """Of a resource, and of a name that a client leaves under its wildcard (C7); not of a collection, which has
        members.
        """
        return has_copy or (self.subscription.wildcard and glob_of(name) is None)

    def version_after(self, _changes: Iterable[Change], view: ClientView) -> str:
        """The version of the shared view; delta clients only show it to people (B10)."""
        return view.version

    # What has a ttl.

    def renew(self, now: float) -> Entry | Later:
        """The next heartbeats; where the client may have dropped something meanwhile, its content is due again."""
        view, renewals = self.view, self.renewals
        if isinstance(view, Absent) or renewals is None:
            return NOTHING
        if not self._to_renew:
            if now < renewals.due_s:
                return Later(renewals.due_s)
            self._to_renew = self._due_names(view, renewals, now)
        if not self._to_renew:
            again = self.make(now, gently=False) if self.dirty else NOTHING
            return again if isinstance(again, Entry) else Later(min(again.due_s, renewals.due_s))
        due_s = self.ledger.answer_due_s()
        if due_s > now:
            return Later(due_s)
        names, limit = self._to_renew, self.settings.limits.names_per_step
        self._to_renew = names[limit:]
        if not (held := self._held_now(view, names[:limit])):
            return Later(now if self._to_renew else renewals.due_s)
        return Entry(version=view.version, resources=(), changed=(), beats=held)

    def _due_names(self, view: ClientView, renewals: Renewals, now: float) -> Sequence[str]:
        """The names whose turn it is, and that the client holds. Content of which it may hold none is sent again."""
        expiring, at_rest = self._expiring(view), self._at_rest(view)
        due = renewals.take_due(expiring, now)
        names: list[str] = []
        again: set[str] = set()
        for interval, since_s in due.items():
            for name in expiring[interval]:
                if not at_rest and not self._is_held(view, name):
                    renewals.missed(name, since_s)
                elif renewals.ran_out(name, interval, since_s, now) or not self._beats:
                    again.add(name)
                else:
                    names.append(name)
        renewals.forget_but(expiring.values())
        if again:
            self.send_again(frozenset(again))
        return tuple(sorted(names)) if len(due) > 1 else tuple(names)

    def _at_rest(self, view: ClientView) -> bool:
        """Whether the client acknowledged all that the view shows: most do, most of the time."""
        return self._memory.view is view and not self._memory and self.ledger.idle

    def _expiring(self, view: ClientView) -> Mapping[int, Sequence[str]]:
        """The names of which the client was told content with a ttl last, which it did not refuse; in order, by
        interval. All streams under a wildcard that rest on a view share them.
        """
        memory, subscription = self._memory, self.subscription
        if memory.view is view and not memory and subscription.wildcard:
            return view.renewed
        every = subscription.wildcard or subscription.globs
        names = (view.expiring if every else view.expiring & subscription.names).union(memory.names)
        found: dict[int, list[str]] = {}
        for name in sorted(filter(subscription.covers, names)):
            told = self._told(name)
            if isinstance(told, Content) and told.ttl_ms and told.version not in memory[name].refused:
                found.setdefault(interval_s(told.ttl_ms), []).append(name)
        return found

    def _is_held(self, view: ClientView, name: str) -> bool:
        """Whether the client holds what it was told of this name last, and may go on with it: it acknowledged it, and
        nothing else is about to be said (G2).
        """
        state, told = self._memory[name], self._told(name)
        if not isinstance(told, Content) or state.acceptance in DOUBTFUL:
            return False
        if not self.ledger.idle and self.ledger.newest_with(name) is not None:
            return False
        member = view.named.get(name)
        if member is None:
            return view.withholds(name)
        return same(told, member.content) or is_refused(view, name, state)

    def _held_now(self, view: ClientView, names: Sequence[str]) -> tuple[NamedContent, ...]:
        """What the client holds of these names, without those that something happened to since they were due."""
        if self._at_rest(view):
            # The same for all streams at rest, and so are its bytes.
            return view.bundle(tuple(names))
        told = ((name, self._told(name)) for name in names if self._is_held(view, name))
        return tuple(NamedContent(name, content) for name, content in told if isinstance(content, Content))

    def _renewal_refused(self, entry: Entry) -> None:
        """Whoever refuses a heartbeat lacks what it is of, or does not know what it is: it is sent content from now on,
        as often. That this goes on for ever costs no more than the heartbeats did.
        """
        self._beats = False
        self._to_renew = ()
        self.send_again(frozenset(member.name for member in entry.beats))


def _code(loss: Change) -> StatusCode | None:
    return loss.now.code if isinstance(loss.now, ResourceError) else None


def receive(stream: DeltaByName, request: DeltaRequest) -> tuple[Fact, ...]:
    """Read a request.

    Its lists count whatever its nonce is; what it says about a response counts only for an outstanding one (B5).
    """
    facts: tuple[Fact, ...] = ()
    if request.nonce:
        facts = stream.answered(request.nonce, request.nack)
    elif request.nack is not None:
        facts = (Violated("N1", "an error was reported without saying for which response"),)
    if stream.asked_before and not request.subscribe and not request.unsubscribe:
        # Most requests: an answer to a response, and nothing else.
        return facts
    return (*facts, *_subscribe(stream, request))


def _subscribe(stream: DeltaByName, request: DeltaRequest) -> tuple[Fact, ...]:
    """Apply the lists of subscriptions of a request, and say what the client is subscribed to if that changed."""
    first, stream.asked_before = not stream.asked_before, True
    current = stream.subscription
    if not request.subscribe and not request.unsubscribe:
        wanted = legacy_wildcard(stream.kind)
    else:
        wanted = edited(stream.kind, current, request.subscribe, request.unsubscribe)
    if max(len(request.subscribe), len(wanted.names)) > stream.settings.limits.names_per_type:
        return (_too_many(stream, max(len(request.subscribe), len(wanted.names))),)
    asked = wanted.names & frozenset(request.subscribe)
    if first:
        # C6: what the client says it has is compared, not answered; E5: saying so is no subscription.
        asked -= request.initial_versions.keys()
    elif wanted.wildcard:
        # C7: under a wildcard the client has to hear what becomes of a name it no longer asks for by itself.
        left = {name for name in request.unsubscribe if name in current.names or stream.was_told(name)}
        asked |= {name for name in left - wanted.names if glob_of(name) is None}
    if WILDCARD in request.subscribe and wanted.wildcard and current.wildcard:
        stream.forget_all()
    stream.subscribe(wanted, asked)
    if first:
        stream.holds(request.initial_versions)
    if wanted == current and not first:
        return ()
    return (Subscribed(stream.kind, wanted.wildcard, wanted.names),)


def _too_many(stream: DeltaByName, count: int) -> Violated:
    limit = stream.settings.limits.names_per_type
    return Violated("C11", f"{count} {stream.kind.title} names on one stream; at most {limit} are allowed")
